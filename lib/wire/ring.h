/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of bytes: grows on demand up to max, gives its memory back when little goes through. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
        uint8_t *data;
        size_t capacity, max;
        size_t begin, end; /* the bytes lie at data[begin ... end) */
        bool filled;       /* there was more than fitted, not long ago */
        uint32_t calm;     /* so many times in a row it was emptied with little in it */
};

void ring_done(struct ring *r);
static inline size_t ring_size(const struct ring *r) {
        return r->end - r->begin;
}
static inline bool ring_full(const struct ring *r) {
        return ring_size(r) >= r->max;
}
/* Where bytes can be written: 0 and *ret_size free bytes at *ret (size 0 when full), or -ENOMEM. */
int ring_space(struct ring *r, uint8_t **ret, size_t *ret_size);
void ring_fill(struct ring *r, size_t n);    /* n bytes were written there */
void ring_consume(struct ring *r, size_t n); /* the first n bytes are done with */
