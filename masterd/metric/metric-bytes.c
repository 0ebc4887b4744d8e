/* SPDX-License-Identifier: Apache-2.0 */
/* A version, then each series: the length of its name and the name, attempt, width, filled, how many points;
 * and each of these: what step and time are behind those of the point before, the count, the last value, and
 * where it is more than one report lowest, highest and mean. Numbers are LEB128, values the bytes of a
 * double. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/packed.h"
#include "masterd/metric/internal.h"

#define VERSION 1u
#define POINT_MAX (3 * PACKED_VARINT_MAX + 4 * sizeof(uint64_t))
#define HEAD_MAX (1 + METRIC_NAME_MAX + 4 * PACKED_VARINT_MAX)

/* What is behind the one before, also where clocks or steps went back. */
static uint64_t difference(uint64_t a, uint64_t b) {
        uint64_t d = a - b;

        return d << 1 ^ (d >> 63 ? UINT64_MAX : 0);
}

static uint64_t add_difference(uint64_t b, uint64_t d) {
        return b + (d >> 1 ^ (d & 1 ? UINT64_MAX : 0));
}

static uint8_t *put_point(uint8_t *to, const struct metric_point *p, const struct metric_point *before) {
        to = packed_put_varint(to, difference(p->step, before->step));
        to = packed_put_varint(to, difference(p->usec, before->usec));
        to = packed_put_varint(to, p->count);
        to = packed_put_double(to, p->last);
        if (p->count == 1)
                return to;
        return packed_put_double(packed_put_double(packed_put_double(to, p->min), p->max), p->mean);
}

static const uint8_t *get_point(const uint8_t *from, const uint8_t *end, struct metric_point *p,
                                const struct metric_point *before) {
        uint64_t step, usec, count;

        from = packed_varint(from, end, &step);
        from = from ? packed_varint(from, end, &usec) : NULL;
        from = from ? packed_varint(from, end, &count) : NULL;
        if (!from || count == 0 || count > UINT32_MAX || end - from < (count == 1 ? 8 : 32))
                return NULL;
        *p = (struct metric_point){ .step = add_difference(before->step, step),
                                    .usec = add_difference(before->usec, usec),
                                    .count = (uint32_t)count,
                                    .last = packed_double(from) };
        if (count == 1) {
                *p = metric_single(p->step, p->usec, p->last);
                return from + 8;
        }
        p->min = packed_double(from + 8);
        p->max = packed_double(from + 16);
        p->mean = packed_double(from + 24);
        return from + 32;
}

int metric_source_write(const struct metrics *m, const struct metric_source *s, uint8_t **ret,
                        size_t *ret_size) {
        static const struct metric_point none = {};
        uint8_t *bytes, *to;
        size_t size = 1;

        for (uint32_t i = 0; i < s->n; i++)
                size += HEAD_MAX + s->series[i].n * POINT_MAX;
        to = bytes = malloc(size);
        if (!bytes)
                return -ENOMEM;
        *to++ = VERSION;
        for (uint32_t i = 0; i < s->n; i++) {
                const struct metric_series *x = s->series + i;
                const char *name = m->names[x->name];
                size_t length = strlen(name);

                *to++ = (uint8_t)length;
                to = mempcpy(to, name, length);
                to = packed_put_varint(packed_put_varint(to, x->attempt), x->width);
                to = packed_put_varint(packed_put_varint(to, x->filled), x->n);
                for (uint32_t k = 0; k < x->n; k++)
                        to = put_point(to, x->points + k, k > 0 ? x->points + k - 1 : &none);
        }
        *ret_size = (size_t)(to - bytes);
        *ret = bytes;
        return 0;
}

/* One series; NULL: it is none. *ret_r: -ENOMEM, or 0, also where there is no room for it. */
static const uint8_t *get_series(struct metrics *m, struct metric_source *s, const uint8_t *from,
                                 const uint8_t *end, int *ret_r) {
        struct metric_point p = {};
        struct metric_series *x = NULL;
        char name[METRIC_NAME_MAX + 1];
        uint64_t attempt, width, filled, n;
        size_t length = *from++;

        if (length > METRIC_NAME_MAX || (size_t)(end - from) < length)
                return NULL;
        memcpy(name, from, length);
        name[length] = 0;
        from = packed_varint(from + length, end, &attempt);
        from = from ? packed_varint(from, end, &width) : NULL;
        from = from ? packed_varint(from, end, &filled) : NULL;
        from = from ? packed_varint(from, end, &n) : NULL;
        if (!from || strlen(name) != length || !metric_name_is_valid(name) || attempt > UINT32_MAX ||
            width == 0 || width > UINT32_MAX / 2 || filled > width || n > METRIC_CAP_MAX)
                return NULL;
        *ret_r = metric_series_find(m, s, name, &x);
        if (*ret_r >= 0 && x->n > 0)
                return NULL; /* twice */
        for (uint64_t i = 0; i < n; i++) {
                struct metric_point before = p;

                from = get_point(from, end, &p, &before);
                if (!from)
                        return NULL;
                if (*ret_r >= 0)
                        *ret_r = metric_series_put(m, x, &p);
        }
        if (*ret_r >= 0) {
                x->attempt = (uint32_t)attempt;
                x->width =
                        (uint32_t)MIN(x->width * width, UINT32_MAX / 2); /* may have been halved on the way */
                x->filled = (uint32_t)MIN(filled, x->width);
        }
        *ret_r = *ret_r == -ENOBUFS ? 0 : *ret_r;
        return from;
}

int metric_source_read(struct metrics *m, struct metric_source *s, const uint8_t *data, size_t size) {
        const uint8_t *end = data + size;
        int r = 0;

        if (size == 0 || *data++ != VERSION)
                return -EBADMSG;
        while (r >= 0 && data && data < end)
                data = get_series(m, s, data, end, &r);
        return r < 0 ? r : data ? 0 : -EBADMSG;
}
