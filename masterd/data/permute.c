/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/data/permute.h"

#define FEISTEL_ROUNDS 6u

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t x) {
        x += UINT64_C(0x9E3779B97F4A7C15);
        x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
        return x ^ (x >> 31);
}

uint64_t permute_hash(uint64_t a, uint64_t b) {
        return mix(mix(a) ^ b);
}

static unsigned half_bits(uint64_t n) {
        unsigned bits = n <= 1 ? 1 : 64 - (unsigned)__builtin_clzll(n - 1);

        return (bits + 1) / 2;
}

uint64_t permute(uint64_t key, uint64_t n, uint64_t i) {
        unsigned half = half_bits(n);
        uint64_t mask = (UINT64_C(1) << half) - 1;

        if (n <= 1)
                return 0;
        do {
                uint64_t left = i >> half, right = i & mask;
                for (unsigned round = 0; round < FEISTEL_ROUNDS; round++) {
                        uint64_t next =
                                left ^ (mix((key + round * UINT64_C(0xD1B54A32D192ED03)) ^ right) & mask);
                        left = right;
                        right = next;
                }
                i = left << half | right;
        } while (i >= n);
        return i;
}
