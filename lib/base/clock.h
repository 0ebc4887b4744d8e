/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks: BOOTTIME for every timer and timeout, REALTIME for what people read. Microseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

#define USEC_PER_SEC UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_INFINITY UINT64_MAX

static inline uint64_t clock_usec(clockid_t clock) {
        struct timespec ts;
        clock_gettime(clock, &ts);
        return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static inline uint64_t now_boot(void) {
        return clock_usec(CLOCK_BOOTTIME);
}

static inline uint64_t now_real(void) {
        return clock_usec(CLOCK_REALTIME);
}

/* a + b that stays at USEC_INFINITY instead of wrapping. */
static inline uint64_t usec_add(uint64_t a, uint64_t b) {
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

/* a - b that stays at 0. */
static inline uint64_t usec_sub(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}
