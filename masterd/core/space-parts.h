/* SPDX-License-Identifier: Apache-2.0 */
/* What space.c remembers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct space {
        uint64_t limit; /* of the unit's memory, bytes; 0: not looked up yet; UINT64_MAX: none */
        uint64_t look_boot;
        bool is_short;
};
