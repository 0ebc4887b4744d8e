/* SPDX-License-Identifier: Apache-2.0 */
/* Small state of a record in one column. Pure.
 *
 * A table says which fields of a struct are stored, and under which number. On disk are a byte of version,
 * then the fields that are not zero: a varint of twice the number, one more where a size follows; then the
 * value as a varint, or its size and bytes (texts, and structs within the struct, by their own table).
 * Varints are little-endian groups of seven bits, the highest bit says that more follow.
 *
 * A field that is not there is zero, and one with a number that nobody knows is passed over. So a new field
 * is a member and a row with a new number; numbers are never used again. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Not one of the bytes that such columns began with before there was a codec. */
#define CODEC_VERSION 0x10u

/* No state of the store takes more; test-codec.c has the largest of each. */
#define CODEC_SIZE_MAX 4096u

enum codec_type {
        CODEC_END,
        CODEC_BOOL,
        CODEC_U8,
        CODEC_U32,
        CODEC_U64,
        CODEC_TEXT, /* char[], ended by NUL */
        CODEC_PART, /* a struct */
        CODEC_LIST, /* an array of structs, and a uint32_t of how many there are; their order stays */
};

struct codec_field {
        enum codec_type type;
        uint8_t number;                 /* on disk, from 1 */
        uint16_t offset, size;          /* in the struct; of a list: of one element */
        const struct codec_field *part; /* of parts and lists: fields of one; else NULL */
        uint16_t n, max;                /* of a list: offset of the number of elements; room for */
};

#define CODEC_FIELD(t, number, record, member)                                                               \
        {                                                                                                    \
                CODEC_##t, number, offsetof(struct record, member), sizeof(((struct record *)NULL)->member), \
                        NULL, 0, 0                                                                           \
        }
#define CODEC_STRUCT(number, record, member, part)                                                           \
        {                                                                                                    \
                CODEC_PART, number, offsetof(struct record, member),                                         \
                        sizeof(((struct record *)NULL)->member), part, 0, 0                                  \
        }
#define CODEC_ARRAY(number, record, member, n_member, part)                                                  \
        {                                                                                                    \
                CODEC_LIST, number, offsetof(struct record, member),                                         \
                        sizeof(((struct record *)NULL)->member[0]), part, offsetof(struct record, n_member), \
                        sizeof(((struct record *)NULL)->member) / sizeof(((struct record *)NULL)->member[0]) \
        }

/* Writes the state. Returns its size; -ENOBUFS: there is no room. */
ssize_t codec_write(const struct codec_field *fields, const void *state, void *buf, size_t size);

/* Reads what was written; of no bytes at all everything is zero. state is without meaning after an error:
 * -EBADMSG (cut off, or a value that the struct has no room for), -EPROTONOSUPPORT (another version). */
int codec_read(const struct codec_field *fields, const void *data, size_t size, void *state);
