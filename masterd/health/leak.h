/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that only grows: a line through the lowest points. Each bucket keeps the least that was held in it,
 * so a sawtooth (garbage collection, evaluation) is judged by its troughs. The latest buckets are kept. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LEAK_BUCKETS 24u

/* Without its fraction, within 0 and INT64_MAX, whatever a host's counters made of it. */
static inline uint64_t health_whole(double v) {
        return v >= 0x1p63 ? INT64_MAX : v > 0 ? (uint64_t)v : 0;
}

struct leak {
        uint64_t begin_usec;          /* of the first bucket */
        uint64_t width_usec;          /* of a bucket */
        uint32_t n;                   /* used, the last of them not full */
        uint64_t least[LEAK_BUCKETS]; /* UINT64_MAX: nothing was seen in it */
};

/* after_usec: so long it has to grow; LEAK_WINDOW buckets are that. */
#define LEAK_WINDOW 8u
void leak_init(struct leak *l, uint64_t now_usec, uint64_t after_usec);
void leak_enter(struct leak *l, uint64_t now_usec, uint64_t bytes);

struct leak_fit {
        uint64_t bytes_per_hour;
        uint64_t over_usec;   /* it was watched growing for so long */
        uint64_t grown_bytes; /* in that time */
        uint64_t left_usec;   /* until it reaches the limit */
};

/* True: over the latest after_usec (and that was not the first of its life) memory has grown steadily, still
 * does, and comes to the limit at that pace. bytes: it has now. */
bool leak_fits(const struct leak *l, uint64_t bytes, uint64_t limit, struct leak_fit *ret);
