/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are made up, the same ones from the same seed. */
#pragma once

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood 2014), in [0, 1). */
static inline double random_unit(uint64_t *seed) {
        uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}
