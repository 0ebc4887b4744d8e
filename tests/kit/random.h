/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are the same again for the same seed, on any machine: splitmix64 (Steele, Lea, Flood 2014). */
#pragma once

#include <stdint.h>

static uint64_t seed;

/* 0 to n - 1 */
static inline uint32_t random_below(uint32_t n) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (uint32_t)((z ^ (z >> 31)) % n);
}
