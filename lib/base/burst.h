/* SPDX-License-Identifier: Apache-2.0 */
/* So many of something within a time that begins with the first of them, and the next ones after it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"

struct burst {
        uint64_t since; /* CLOCK_BOOTTIME: when the count began */
        uint32_t n;
};

/* Counts n more. False: it was max already. */
static inline bool burst_admit_many(struct burst *b, uint64_t now, uint64_t interval, uint32_t max,
                                    uint32_t n) {
        if (now >= usec_add(b->since, interval))
                *b = (struct burst){ .since = now };
        if (b->n >= max)
                return false;
        b->n += n;
        return true;
}

/* Counts one more. False: there were max of them already. */
static inline bool burst_admit(struct burst *b, uint64_t now, uint64_t interval, uint32_t max) {
        if (now >= usec_add(b->since, interval))
                *b = (struct burst){ .since = now };
        return b->n++ < max;
}
