/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in records: little-endian, at any address. */
#pragma once

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint32_t bytes_u32(const uint8_t *from) {
        uint32_t value;

        memcpy(&value, from, sizeof(value));
        return le32toh(value);
}

static inline uint64_t bytes_u64(const uint8_t *from) {
        uint64_t value;

        memcpy(&value, from, sizeof(value));
        return le64toh(value);
}

/* These return what is behind. */
static inline uint8_t *bytes_put_u32(uint8_t *to, uint32_t value) {
        value = htole32(value);
        memcpy(to, &value, sizeof(value));
        return to + sizeof(value);
}

static inline uint8_t *bytes_put_u64(uint8_t *to, uint64_t value) {
        value = htole64(value);
        memcpy(to, &value, sizeof(value));
        return to + sizeof(value);
}

/* An array with room for n: 0; -ENOMEM, and it is as it was. */
#define ARRAY_GROW(array, n)                                                                                 \
        ({                                                                                                   \
                __typeof__(array) _bigger = reallocarray(array, n, sizeof(*(array)));                        \
                if (_bigger)                                                                                 \
                        (array) = _bigger;                                                                   \
                _bigger ? 0 : -ENOMEM;                                                                       \
        })
