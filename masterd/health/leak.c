/* SPDX-License-Identifier: Apache-2.0 */
/* The line through what an executor holds at least. Invariant: nothing fits that has come down again, or has
 * come to rest. */
#include "masterd/health/leak.h"

#include <string.h>

#include "lib/base/cleanup.h"

/* So much has to have come in the window, or it is noise. */
#define GROWN_LEAST_BYTES (UINT64_C(4) << 20)
#define GROWN_LEAST_OF_LIMIT 100u /* the limit's n-th part */

void leak_init(struct leak *l, uint64_t now_usec, uint64_t after_usec) {
        *l = (struct leak){ .begin_usec = now_usec,
                            .width_usec = MAX(after_usec / LEAK_WINDOW, UINT64_C(1)) };
}

void leak_enter(struct leak *l, uint64_t now_usec, uint64_t bytes) {
        uint64_t i = now_usec > l->begin_usec ? (now_usec - l->begin_usec) / l->width_usec : 0;

        if (i >= LEAK_BUCKETS) {
                uint64_t shift = i - LEAK_BUCKETS + 1;

                if (shift >= l->n)
                        l->n = 0;
                else {
                        l->n -= (uint32_t)shift;
                        memmove(l->least, l->least + shift, l->n * sizeof(*l->least));
                }
                l->begin_usec += shift * l->width_usec;
                i -= shift;
        }
        while (l->n <= i)
                l->least[l->n++] = UINT64_MAX;
        l->least[i] = MIN(l->least[i], bytes);
}

/* A line through the known of n values, one apart: slope, and how much of their variation it explains. */
static bool line(const uint64_t *v, uint32_t n, double *ret_slope, double *ret_explained) {
        double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, base = -1, count = 0, vx, vy, c;

        for (uint32_t i = 0; i < n; i++) {
                double x = i, y;

                if (v[i] == UINT64_MAX)
                        continue;
                if (base < 0)
                        base = (double)v[i];
                y = (double)v[i] - base;
                count++;
                sx += x;
                sy += y;
                sxx += x * x;
                sxy += x * y;
                syy += y * y;
        }
        if (count < 3)
                return false;
        vx = sxx - sx * sx / count;
        vy = syy - sy * sy / count;
        c = sxy - sx * sy / count;
        if (vx <= 0 || vy <= 0)
                return false;
        *ret_slope = c / vx;
        *ret_explained = c * c / (vx * vy);
        return true;
}

/* It has been as high before, and came down: a sawtooth with long teeth. */
static bool came_down(const struct leak *l, uint32_t from, uint64_t lowest, uint64_t highest) {
        uint64_t top = 0;

        for (uint32_t i = 0; i < from; i++)
                if (l->least[i] != UINT64_MAX)
                        top = MAX(top, l->least[i]);
        return top > lowest + (highest - lowest) / 4 && highest < top + top / 50;
}

bool leak_fits(const struct leak *l, uint64_t bytes, uint64_t limit, struct leak_fit *ret) {
        uint32_t from, unknown = 0;
        const uint64_t *v;
        uint64_t first, last, before, grown;
        double slope, explained, latest, ignored;

        /* The last bucket is not full. What is before the window is the start, which may grow as it likes. */
        if (limit == 0 || bytes >= limit || l->n < LEAK_WINDOW + 1 + LEAK_WINDOW / 4)
                return false;
        from = l->n - 1 - LEAK_WINDOW;
        v = l->least + from;
        for (uint32_t i = 0; i < LEAK_WINDOW; i++)
                unknown += v[i] == UINT64_MAX;
        if (unknown > 1 || v[0] == UINT64_MAX || v[LEAK_WINDOW - 1] == UINT64_MAX)
                return false;
        first = v[0];
        last = v[LEAK_WINDOW - 1];
        if (last <= first)
                return false;
        grown = last - first;
        if (grown < MAX(GROWN_LEAST_BYTES, limit / GROWN_LEAST_OF_LIMIT))
                return false;
        if (!line(v, LEAK_WINDOW, &slope, &explained) || slope <= 0 || explained < 0.9)
                return false;
        /* Still, and not slower than before: what fills up and rests is a cache. */
        if (!line(v + LEAK_WINDOW / 2, LEAK_WINDOW - LEAK_WINDOW / 2, &latest, &ignored) ||
            latest < 0.75 * slope)
                return false;
        before = v[LEAK_WINDOW - 4];
        if (before == UINT64_MAX || last < before || (double)(last - before) / 3 < 0.5 * slope)
                return false;
        if (came_down(l, from, first, last))
                return false;
        *ret = (struct leak_fit){
                .bytes_per_hour = health_whole(slope / (double)l->width_usec * 3600e6),
                .over_usec = LEAK_WINDOW * l->width_usec,
                .grown_bytes = grown,
                .left_usec = health_whole((double)(limit - bytes) / slope * (double)l->width_usec),
        };
        return true;
}
