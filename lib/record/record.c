/* SPDX-License-Identifier: Apache-2.0 */
/* Records of every format, and lines, blocks and fixed sizes themselves. Invariant: nothing is read behind
 * buf + size, and a record that is handed out takes at least one byte. */
#include "lib/record/record.h"

#include <errno.h>
#include <string.h>

#include "lib/record/formats.h"

static int text_next(const uint8_t *buf, size_t size, bool last, struct record *ret) {
        const uint8_t *newline = memchr(buf, '\n', size);
        size_t n = newline ? (size_t)(newline - buf) + 1 : size;

        if (!newline && !last)
                return 0;
        *ret = (struct record){ .data = buf, .size = n, .total = n };
        return 1;
}

static int sized_next(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                      struct record *ret, const char **ret_why) {
        size_t n = size;

        if (f->record_size == 0) {
                *ret_why = "records of size 0";
                return -EBADMSG;
        }
        if (size >= f->record_size)
                n = (size_t)f->record_size;
        else if (!last)
                return 0;
        else if (f->kind == RECORD_FIXED) {
                *ret_why = "the data does not end at the end of a record of recordSize";
                return -EBADMSG;
        }
        *ret = (struct record){ .data = buf, .size = n, .total = n };
        return 1;
}

int record_next(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                struct record *ret, const char **ret_why) {
        if (size == 0)
                return 0;
        switch (f->kind) {
        case RECORD_TEXT:
                return text_next(buf, size, last, ret);
        case RECORD_RAW:
        case RECORD_FIXED:
                return sized_next(f, buf, size, last, ret, ret_why);
        case RECORD_TFRECORD:
                return tfrecord_next(buf, size, last, ret, ret_why);
        case RECORD_TAR:
                return tar_next(buf, size, last, ret, ret_why);
        case RECORD_CSV:
                return csv_next(buf, size, f->multiline, last, ret, ret_why);
        case RECORD_MESSAGE:
                return message_next(buf, size, last, ret, ret_why);
        case _RECORD_KIND_MAX:
                break;
        }
        *ret_why = "not a format of records";
        return -EBADMSG;
}

/* For the formats whose records can only be found one after another. */
static int walk_last(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                     size_t *ret_bytes, uint64_t *ret_records, const char **ret_why) {
        size_t at = 0;
        uint64_t records = 0;

        for (;;) {
                struct record record;
                int r = record_next(f, buf + at, size - at, last, &record, ret_why);

                if (r < 0 && at == 0)
                        return r;
                if (r <= 0)
                        break;
                at += record.total;
                records++;
        }
        *ret_bytes = at;
        *ret_records = records;
        return 0;
}

static int sized_last(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                      size_t *ret_bytes, uint64_t *ret_records, const char **ret_why) {
        struct record record;
        int r = sized_next(f, buf, size, last, &record, ret_why);

        if (r < 0)
                return r;
        *ret_records = size / f->record_size;
        *ret_bytes = (size_t)(*ret_records * f->record_size);
        if (last && f->kind == RECORD_RAW && *ret_bytes < size) {
                *ret_bytes = size;
                (*ret_records)++;
        }
        return 0;
}

int record_last(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                size_t *ret_bytes, uint64_t *ret_records, const char **ret_why) {
        const uint8_t *newline;

        if (size == 0) {
                *ret_bytes = 0;
                *ret_records = 0;
                return 0;
        }
        switch (f->kind) {
        case RECORD_TEXT:
                newline = last ? buf + size - 1 : memrchr(buf, '\n', size);
                *ret_bytes = newline ? (size_t)(newline - buf) + 1 : 0;
                *ret_records = 0;
                return 0;
        case RECORD_CSV:
                return csv_last(buf, size, f->multiline, last, ret_bytes, ret_records, ret_why);
        case RECORD_RAW:
        case RECORD_FIXED:
                return sized_last(f, buf, size, last, ret_bytes, ret_records, ret_why);
        default:
                return walk_last(f, buf, size, last, ret_bytes, ret_records, ret_why);
        }
}

int record_sync(const struct record_format_info *f, const uint8_t *buf, size_t size, uint64_t position,
                bool last, size_t *ret, const char **ret_why) {
        const uint8_t *newline;
        uint64_t behind;

        switch (f->kind) {
        case RECORD_TEXT:
        case RECORD_CSV:
                if (f->kind == RECORD_CSV && f->multiline)
                        return -EOPNOTSUPP; /* whether a newline lies within quotes is known from the start
                                               alone */
                newline = size > 0 ? memchr(buf, '\n', size) : NULL;
                if (!newline && !last)
                        return 0;
                *ret = newline ? (size_t)(newline - buf) + 1 : size;
                return 1;
        case RECORD_RAW:
        case RECORD_FIXED:
                if (f->record_size == 0) {
                        *ret_why = "records of size 0";
                        return -EBADMSG;
                }
                behind = position % f->record_size == 0 ? 0 : f->record_size - position % f->record_size;
                if (behind > size && !last)
                        return 0;
                *ret = behind < size ? (size_t)behind : size;
                return 1;
        case RECORD_TFRECORD:
                return tfrecord_sync(buf, size, last, ret);
        default:
                return -EOPNOTSUPP;
        }
}
