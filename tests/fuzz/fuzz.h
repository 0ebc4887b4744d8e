/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets share: a condition that ends the program in every build, and bytes that are used up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* __builtin_trap() rather than assert(), which a release build drops. */
#define MUST(condition)                                                                                      \
        do {                                                                                                 \
                if (!(condition))                                                                            \
                        __builtin_trap();                                                                    \
        } while (0)

struct fuzz_input {
        const uint8_t *data;
        size_t size;
};

/* 0 where nothing is left. */
static inline uint8_t fuzz_byte(struct fuzz_input *in) {
        if (in->size == 0)
                return 0;
        in->size--;
        return *in->data++;
}

/* Small and boundary values more often than others. */
static inline uint64_t fuzz_number(struct fuzz_input *in) {
        static const uint64_t odd[] = { 0,
                                        1,
                                        2,
                                        127,
                                        128,
                                        255,
                                        256,
                                        65535,
                                        65536,
                                        INT32_MAX,
                                        (uint64_t)INT32_MAX + 1,
                                        UINT32_MAX,
                                        (uint64_t)UINT32_MAX + 1,
                                        INT64_MAX,
                                        (uint64_t)INT64_MAX + 1,
                                        UINT64_MAX };
        uint8_t how = fuzz_byte(in);
        uint64_t v = 0;

        if (how < 64)
                return how;
        if (how < 128)
                return odd[how % (sizeof(odd) / sizeof(*odd))];
        for (int n = how & 7; n >= 0; n--)
                v = v << 8 | fuzz_byte(in);
        return v;
}
