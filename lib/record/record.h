/* SPDX-License-Identifier: Apache-2.0 */
/* What a record is, for every format: where it begins and ends in bytes that are in memory. Pure: used by the
 * feeder (executor/read) and by the trainer's library (lib/primus), which both see the same bytes in the
 * format's own framing. Stands on nothing but libc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum record_kind { /* the values of enum record_format in lib/wire/input.h */
        RECORD_TEXT,
        RECORD_RAW,
        RECORD_FIXED,
        RECORD_TFRECORD,
        RECORD_TAR,
        RECORD_CSV,
        RECORD_MESSAGE,
        _RECORD_KIND_MAX
};

struct record_format_info {
        enum record_kind kind;
        uint64_t record_size; /* RAW, FIXED */
        bool multiline;       /* CSV */
};

struct record {
        const uint8_t *data; /* what the trainer wants: a line with its \n, the payload of a TFRecord, a tar
                                group's members */
        size_t size;
        size_t total; /* bytes of the record with its framing: the next one begins so much further */
        /* RECORD_MESSAGE: */
        const uint8_t *key;
        size_t key_size;
        uint64_t offset; /* of the message */
        int64_t timestamp_msec;
};

/* RECORD_MESSAGE framing in slots and blocks: this header, key, value; padded to 8 bytes. */
struct record_message_header {
        uint64_t offset;
        int64_t timestamp_msec;
        uint32_t key_size; /* UINT32_MAX: none */
        uint32_t value_size;
};

#define RECORD_LENGTH_MAX (UINT64_C(1) << 30) /* a longer record is none, whatever its framing says */

/* The record at the start of buf. last: nothing comes behind buf. 1: *ret filled; 0: more bytes are needed
 * (with last: there is no record any more; TAR: what is left is padding); -EBADMSG with *ret_why (a constant)
 * for bytes that are no record. TEXT and CSV: the last line may lack its \n. A CSV's header line is a record
 * as any other. */
int record_next(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                struct record *ret, const char **ret_why);

/* The end of the last whole record in buf, without looking at each record where the format allows that (TEXT:
 * the last newline): bytes of whole records, 0: not one. -EBADMSG: the first one is broken (those before a
 * broken one are handed out first). *ret_records: how many, 0: not counted. */
int record_last(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                size_t *ret_bytes, uint64_t *ret_records, const char **ret_why);

/* The first place in buf where a record begins, where that can be told without reading from the start of the
 * file. buf is what lies at position of the file (for TEXT and CSV, it has to begin one byte earlier than the
 * place asked for). 1: *ret is the distance (with last: size when none begins in buf); 0: more is needed; the
 * answer does not depend on how much is offered at once. -EOPNOTSUPP: not with this format. TFRECORD: a place
 * where a record with two right checksums begins, and behind it the header of another, or the end. */
int record_sync(const struct record_format_info *f, const uint8_t *buf, size_t size, uint64_t position,
                bool last, size_t *ret, const char **ret_why);

/* A member of a tar record. */
struct record_tar_member {
        const char *name; /* points into the record, or to joined; not NUL-ended */
        size_t name_size;
        const uint8_t *data;
        size_t size;
        char joined[260]; /* an old name in two parts */
};

/* Walks the files of a tar record (struct record's data, size); *iterator begins as 0. 1; 0: no more;
 * -EBADMSG. */
int record_tar_next(const uint8_t *buf, size_t size, size_t *iterator, struct record_tar_member *ret);

/* CRC-32C of data behind what crc is of (0: nothing); by hardware where there is any. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);
uint32_t crc32c_tables(uint32_t crc, const void *data, size_t size); /* without, for the tests */
