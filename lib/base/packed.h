/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in records and packets: little-endian, at any address. */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t packed_u32(const uint8_t *from) {
        uint32_t value;

        memcpy(&value, from, sizeof(value));
        return le32toh(value);
}

static inline uint64_t packed_u64(const uint8_t *from) {
        uint64_t value;

        memcpy(&value, from, sizeof(value));
        return le64toh(value);
}

static inline double packed_double(const uint8_t *from) {
        uint64_t bits = packed_u64(from);
        double value;

        memcpy(&value, &bits, sizeof(value));
        return value;
}

/* A LEB128 number, at most PACKED_VARINT_MAX bytes. Returns what is behind it; NULL: there is none. */
#define PACKED_VARINT_MAX 10u
static inline const uint8_t *packed_varint(const uint8_t *from, const uint8_t *end, uint64_t *ret) {
        *ret = 0;
        for (unsigned shift = 0; from < end && shift < 64; shift += 7) {
                if (shift == 63 && *from > 1)
                        break;
                *ret |= (uint64_t)(*from & 0x7f) << shift;
                if (!(*from++ & 0x80))
                        return from;
        }
        return NULL;
}

/* These return what is behind. */
static inline uint8_t *packed_put_varint(uint8_t *to, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                *to++ = (uint8_t)(value | 0x80);
        *to++ = (uint8_t)value;
        return to;
}

static inline uint8_t *packed_put_u32(uint8_t *to, uint32_t value) {
        value = htole32(value);
        memcpy(to, &value, sizeof(value));
        return to + sizeof(value);
}

static inline uint8_t *packed_put_u64(uint8_t *to, uint64_t value) {
        value = htole64(value);
        memcpy(to, &value, sizeof(value));
        return to + sizeof(value);
}

static inline uint8_t *packed_put_double(uint8_t *to, double value) {
        uint64_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return packed_put_u64(to, bits);
}
