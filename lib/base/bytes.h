/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's bytes between two offsets, in a ring of a fixed size. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "lib/base/cleanup.h"

struct bytes {
        uint8_t *ring;
        size_t size;
        uint64_t from, to; /* counted from the stream's first byte */
};

static inline int bytes_init(struct bytes *b, size_t size) {
        *b = (struct bytes){ .ring = malloc(size), .size = size };
        return b->ring ? 0 : -ENOMEM;
}

static inline size_t bytes_room(const struct bytes *b) {
        return b->size - (size_t)(b->to - b->from);
}

/* The piece that begins at an offset, as far as it lies in one. */
static inline size_t bytes_at(const struct bytes *b, uint64_t offset, const uint8_t **ret) {
        size_t at = (size_t)(offset % b->size), n = (size_t)(b->to - offset);

        *ret = b->ring + at;
        return n < b->size - at ? n : b->size - at;
}

/* size: at most bytes_room(). */
static inline void bytes_put(struct bytes *b, const uint8_t *data, size_t size) {
        while (size > 0) {
                size_t at = (size_t)(b->to % b->size), n = size < b->size - at ? size : b->size - at;

                memcpy(b->ring + at, data, n);
                b->to += n;
                data += n;
                size -= n;
        }
}
