/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the reader of bytes: bytes.c opens it and makes chunks, align.c finds where records begin without
 * reading what lies before them, hold.c keeps what was read and not delivered, window.c shuffles.
 *
 * Positions: hold begins at position, which is where the next record to be delivered begins (or the record of
 * which parts are being delivered); the stream goes on behind the hold. */
#pragma once

#include "executor/read/kind.h"
#include "lib/record/record.h"

#define HOLD_STEP (256u << 10)
/* What a format may need to see behind a record before it knows that it is whole: the next header with long
 * names, the end of a tar. */
#define RECORD_SLACK (64u << 10)
#define WINDOW_BYTES (64u << 20) /* a window ends early when its records take so much */

struct window {
        uint32_t n, next; /* records in it; delivered */
        size_t bytes;     /* of the hold, from its start */
        struct window_record {
                size_t at, total;       /* in the hold, from its start */
                size_t data, data_size; /* what is delivered of it */
        } * records;
        uint32_t *order;
        size_t allocated;
};

struct bytes_reader {
        struct reader reader;
        struct reader_request q;
        struct record_format_info format;
        struct stream *stream;
        bool ranges; /* the stream can be read anywhere, and records be found in its middle */

        uint64_t first;        /* where the task's first record begins */
        _Atomic uint64_t last; /* where its last one ends; TASK_TO_END: at the end of the stream */
        uint64_t position;     /* see above */
        _Atomic uint64_t trim; /* asked for; TASK_UNKNOWN: nothing */
        bool stream_over, over;

        uint8_t *hold;
        size_t hold_at, hold_size, hold_allocated; /* the bytes [hold_at, hold_size) */

        uint8_t *header; /* CSV */
        size_t header_size;
        bool header_due;

        struct {
                size_t at, size, done; /* in the hold, from its start; size 0: no record is being delivered in
                                          parts */
                size_t total;          /* of its record */
                bool newline;          /* to be added */
        } part;

        uint64_t to_skip;
        struct window window;
};

/* ---- hold.c ---- */
static inline size_t hold_available(const struct bytes_reader *r) {
        return r->hold_size - r->hold_at;
}
static inline const uint8_t *hold_bytes(const struct bytes_reader *r) {
        return r->hold + r->hold_at;
}

/* Up to n bytes of the stream into buf, not beyond the task's end; held bytes stand before it. 0: the task's
 * bytes are over. */
ssize_t bytes_pull(struct bytes_reader *r, uint8_t *buf, size_t n, uint64_t at,
                   char error[static READ_ERROR_MAX]);
/* Whether nothing follows behind at. */
bool bytes_over(const struct bytes_reader *r, uint64_t at);
/* The record that begins ahead bytes behind position, read from the stream as far as needed. 1, 0: there is
 * none, negative. */
int hold_record(struct bytes_reader *r, size_t ahead, struct record *ret, char error[static READ_ERROR_MAX]);
/* What was copied from the hold or read from the stream, and is not delivered: size bytes at the end of what
 * was taken go back. */
int hold_put_back(struct bytes_reader *r, const uint8_t *buf, size_t size, char error[static READ_ERROR_MAX]);
/* Goes on behind n bytes of it. */
void hold_advance(struct bytes_reader *r, size_t n);

int bytes_broken(const struct bytes_reader *r, uint64_t at, const char *why,
                 char error[static READ_ERROR_MAX]);
int bytes_too_long(const struct bytes_reader *r, uint64_t at, char error[static READ_ERROR_MAX]);
int bytes_no_memory(const struct bytes_reader *r, char error[static READ_ERROR_MAX]);
static inline bool bytes_canceled(const struct bytes_reader *r) {
        return r->q.cancel && atomic_load_explicit(r->q.cancel, memory_order_relaxed);
}

/* ---- align.c ---- */
/* Where the first record begins at or behind at; limit: when none begins before limit, anything from limit on
 * may be the answer (TASK_TO_END: no limit). */
int align_forward(struct bytes_reader *r, uint64_t at, uint64_t limit, uint64_t *ret,
                  char error[static READ_ERROR_MAX]);
/* Where the record begins that the byte at at lies in; TEXT, CSV, RAW, FIXED. */
int align_back(struct bytes_reader *r, uint64_t at, uint64_t *ret, char error[static READ_ERROR_MAX]);

/* ---- window.c ---- */
/* Which of n records comes when: order[i] is the i-th to be delivered. Depends on seed and position alone. */
void window_order(uint32_t *order, uint32_t n, uint64_t seed, uint64_t position);
/* Fills the window from position on. 1; 0: there are no records any more; negative. */
int window_fill(struct bytes_reader *r, char error[static READ_ERROR_MAX]);
