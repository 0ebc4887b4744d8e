/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes lie in one piece, so that a reader never sees a seam; they move down only once at least as many
 * were consumed as have to be moved, so that every byte is moved at most once on average. */
#include "lib/wire/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* A master has thousands of connections that carry a heartbeat a second, and now and then a flood: what a
 * flood needed is kept while it lasts, and given back once little has come RING_CALM times in a row. */
#define RING_SMALL ((size_t)1 << 10)
#define RING_FIRST ((size_t)16 << 10)
#define RING_KEEP ((size_t)64 << 10)
#define RING_CALM 8u

void ring_done(struct ring *r) {
        free(r->data);
        *r = (struct ring){ .max = r->max, .filled = r->filled };
}

int ring_space(struct ring *r, uint8_t **ret, size_t *ret_size) {
        if (r->begin > 0 && r->begin >= ring_size(r)) {
                memmove(r->data, r->data + r->begin, ring_size(r));
                r->end -= r->begin;
                r->begin = 0;
        }
        if (r->begin == r->end && r->capacity == RING_SMALL && r->filled)
                ring_done(r); /* it was too small all at once */
        if (r->end == r->capacity && !ring_full(r)) {
                /* Twice max leaves room to go on until the next move. */
                size_t doubled =
                        r->capacity == 0 && !r->filled ? RING_SMALL : MAX(2 * r->capacity, RING_FIRST);
                size_t bigger = MIN(doubled, 2 * r->max);
                uint8_t *data = realloc(r->data, bigger);
                if (!data)
                        return -ENOMEM;
                r->data = data;
                r->capacity = bigger;
        }
        *ret = r->data ? r->data + r->end : NULL;
        *ret_size = ring_full(r) ? 0 : MIN(r->capacity - r->end, r->max - ring_size(r));
        return 0;
}

void ring_fill(struct ring *r, size_t n) {
        assert(n <= r->capacity - r->end);
        r->end += n;
        r->filled |= r->end == r->capacity;
}

void ring_consume(struct ring *r, size_t n) {
        assert(n <= ring_size(r));
        r->begin += n;
        if (r->begin < r->end)
                return;
        r->calm = r->end <= RING_SMALL ? r->calm + 1 : 0;
        r->begin = r->end = 0;
        if (r->calm >= RING_CALM)
                r->filled = false;
        if (r->capacity > RING_KEEP || (r->capacity > RING_SMALL && r->calm >= RING_CALM))
                ring_done(r);
}
