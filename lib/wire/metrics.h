/* SPDX-License-Identifier: Apache-2.0 */
/* What a trainer says of its training (a loss, a rate), as it travels: from libprimus to agentd in packets of
 * feed.sock, and from there to masterd in messages of the link. agentd does not look into it; masterd reads
 * it with metric_get(), which believes nothing. Headers alone, since libprimus stands on libc.
 *
 * A point is what one series came to within about a second: most often one report, and where a trainer
 * reports more often, what several came to. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/packed.h"

#define METRIC_NAME_MAX 64u      /* bytes of a name */
#define METRIC_LOCAL_MAX 1023u   /* number of a process of an executor */
#define METRIC_NAMES_MAX 128u    /* names of one process */
#define METRICS_BYTES_MAX 16384u /* of one packet's points */
#define METRIC_POINT_BYTES_MAX (1 + METRIC_NAME_MAX + 2 * 8 + 4 + 4 * 8)
static_assert(METRIC_NAMES_MAX * METRIC_POINT_BYTES_MAX <= METRICS_BYTES_MAX,
              "all that a process has to say fits a packet");

struct metric_point {
        uint64_t step;         /* of the last report in it */
        uint64_t usec;         /* of the last report: CLOCK_REALTIME of its host */
        uint32_t count;        /* reports, at least 1 */
        double last;           /* NaN: it was no number */
        double min, max, mean; /* of those that were numbers; NaN: none was */
};

/* Letters, digits and _ - . / : of ASCII, the first a letter or a digit: it is a file's name in an export, a
 * word of a command line and a part of an address. */
static inline bool metric_name_is_valid(const char *name) {
        static const char also[] = "_-./:";
        size_t i;

        for (i = 0; name[i]; i++) {
                char c = name[i];
                bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                if (i == METRIC_NAME_MAX || (!alnum && (i == 0 || !strchr(also, c))))
                        return false;
        }
        return i > 0;
}

/* One report. What is infinite is kept as the last value, and has no mean. */
static inline struct metric_point metric_single(uint64_t step, uint64_t usec, double value) {
        double counts = isfinite(value) ? value : (double)NAN;

        return (struct metric_point){ step, usec, 1, value, counts, counts, counts };
}

/* to has room for METRIC_POINT_BYTES_MAX; the name is valid. Returns what is behind. */
static inline uint8_t *metric_put(uint8_t *to, const char *name, const struct metric_point *p) {
        size_t n = strlen(name);

        *to++ = (uint8_t)n;
        memcpy(to, name, n);
        to = packed_put_u64(to + n, p->step);
        to = packed_put_u64(to, p->usec);
        to = packed_put_u32(to, p->count);
        to = packed_put_double(to, p->last);
        to = packed_put_double(to, p->min);
        to = packed_put_double(to, p->max);
        return packed_put_double(to, p->mean);
}

/* The next point: 1; 0: no more; -EBADMSG. *at is moved behind it. */
static inline int metric_get(const uint8_t **at, const uint8_t *end, char name[static METRIC_NAME_MAX + 1],
                             struct metric_point *ret) {
        const uint8_t *from = *at;
        size_t n;

        if (from == end)
                return 0;
        n = *from++;
        if (n > METRIC_NAME_MAX || (size_t)(end - from) < n + METRIC_POINT_BYTES_MAX - 1 - METRIC_NAME_MAX)
                return -EBADMSG;
        memcpy(name, from, n);
        name[n] = 0;
        from += n;
        *ret = (struct metric_point){ .step = packed_u64(from),
                                      .usec = packed_u64(from + 8),
                                      .count = packed_u32(from + 16),
                                      .last = packed_double(from + 20),
                                      .min = packed_double(from + 28),
                                      .max = packed_double(from + 36),
                                      .mean = packed_double(from + 44) };
        if (ret->count == 1)
                *ret = metric_single(ret->step, ret->usec, ret->last);
        *at = from + 52;
        return ret->count > 0 && strlen(name) == n && metric_name_is_valid(name) ? 1 : -EBADMSG;
}

/* b follows a: what both come to. */
static inline struct metric_point metric_join(const struct metric_point *a, const struct metric_point *b) {
        struct metric_point c = *b;
        double wa = a->mean == a->mean ? a->count : 0, wb = b->mean == b->mean ? b->count : 0;

        c.count = a->count > UINT32_MAX - b->count ? UINT32_MAX : a->count + b->count;
        if (wb == 0) {
                c.min = a->min;
                c.max = a->max;
                c.mean = a->mean;
        } else if (wa > 0) {
                c.min = a->min < b->min ? a->min : b->min;
                c.max = a->max > b->max ? a->max : b->max;
                c.mean = a->mean * (wa / (wa + wb)) + b->mean * (wb / (wa + wb)); /* of huge ones, too */
        }
        return c;
}

/* n points, each of width of those that came, but the last of filled: two neighbours become one. Returns how
 * many points there are then. */
static inline uint32_t metric_halve(struct metric_point *points, uint32_t n, uint32_t *width,
                                    uint32_t *filled) {
        uint32_t joined = 0;

        for (uint32_t i = 0; i < n; i += 2)
                points[joined++] = i + 1 < n ? metric_join(points + i, points + i + 1) : points[i];
        *filled += n % 2 == 0 ? *width : 0;
        *width *= 2;
        return joined;
}
