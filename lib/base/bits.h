/* SPDX-License-Identifier: Apache-2.0 */
/* A double as its bits, for what keeps integers alone. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint64_t double_bits(double d) {
        uint64_t bits;

        memcpy(&bits, &d, sizeof(bits));
        return bits;
}

static inline double bits_double(uint64_t bits) {
        double d;

        memcpy(&d, &bits, sizeof(d));
        return d;
}
