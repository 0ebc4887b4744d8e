/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor held on a day: its reservation for as long as it had its place. Pure; days are UTC. */
#pragma once

#include <stdint.h>

#define DAY_USEC (UINT64_C(86400) * 1000000)

struct holding {
        uint64_t cpu_milli, memory; /* memory in bytes */
        uint32_t gpus;
};

struct held {
        uint64_t cpu;    /* microseconds of a core */
        uint64_t memory; /* MiB times milliseconds */
        uint64_t gpu;    /* microseconds of a GPU */
};

static inline uint32_t day_of_time(uint64_t real) {
        return (uint32_t)(real / DAY_USEC);
}

/* Of the time from ... to (wall clock) that part which is in the day. Each part is rounded down by itself. */
struct held held_on_day(const struct holding *h, uint64_t from, uint64_t to, uint32_t day);
