/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in records and packets: little-endian, at any address. */
#pragma once

#include <endian.h>
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

/* These return what is behind. */
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
