/* SPDX-License-Identifier: Apache-2.0 */
/* What record.c puts together: one set of functions for each format that needs more than a line. Each is as
 * record_next() and record_sync() in record.h, for a size of at least 1. */
#pragma once

#include "lib/record/record.h"

/* CRC-32C with TensorFlow's mask. */
uint32_t tfrecord_checksum(const void *data, size_t size);
int tfrecord_next(const uint8_t *buf, size_t size, bool last, struct record *ret, const char **ret_why);
int tfrecord_sync(const uint8_t *buf, size_t size, bool last, size_t *ret);

int tar_next(const uint8_t *buf, size_t size, bool last, struct record *ret, const char **ret_why);

int csv_next(const uint8_t *buf, size_t size, bool multiline, bool last, struct record *ret,
             const char **ret_why);
/* As record_last(). */
int csv_last(const uint8_t *buf, size_t size, bool multiline, bool last, size_t *ret_bytes,
             uint64_t *ret_records, const char **ret_why);

int message_next(const uint8_t *buf, size_t size, bool last, struct record *ret, const char **ret_why);

static inline uint64_t load_le64(const uint8_t *p) {
        uint64_t v = 0;

        for (int i = 7; i >= 0; i--)
                v = v << 8 | p[i];
        return v;
}

static inline uint32_t load_le32(const uint8_t *p) {
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
