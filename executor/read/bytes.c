/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of bytes: a stream and a format become chunks of whole records. Where nothing has to be known of
 * each record, bytes go from the file straight into the caller's buffer, and only the last newline is looked
 * for. Invariant: the bytes [position, ...) that were not delivered are in the hold or still in the stream.
 */
#include "executor/read/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* A stream that brings little at a time is not waited for until a buffer is full. */
#define ENOUGH (64u << 10)

static void bytes_close(struct reader *reader) {
        struct bytes_reader *r = (struct bytes_reader *)reader;

        stream_close(r->stream);
        free(r->hold);
        free(r->header);
        free(r->window.records);
        free(r->window.order);
        free(r);
}

static bool shuffles(const struct bytes_reader *r) {
        return r->q.input->window > 1;
}

/* What is delivered of a record lies within its framing. A pipe has no use for what ends an archive: a reader
 * of several would take the first end for the last. */
static bool unwraps(const struct bytes_reader *r) {
        return r->format.kind == RECORD_TAR && !r->q.framed;
}

static bool is_lines(const struct bytes_reader *r) {
        return r->format.kind == RECORD_TEXT || r->format.kind == RECORD_CSV;
}

/* ---- delivery ---- */

/* The next piece of a record that does not fit the buffer. */
static int deliver_part(struct bytes_reader *r, uint8_t *buf, size_t size, struct chunk *ret) {
        size_t left = r->part.size - r->part.done, n = MIN(left, size), copied = n;
        bool first = r->part.done == 0;
        struct chunk c = {};

        memcpy(buf, hold_bytes(r) + r->part.at + r->part.done, n);
        r->part.done += n;
        if (r->part.newline && r->part.done == r->part.size && n < size)
                buf[n++] = '\n', r->part.newline = false;
        if (r->part.done < r->part.size || r->part.newline)
                c.flags = CHUNK_MORE | (first ? CHUNK_FIRST : 0);
        else
                c.records = 1;
        c.size = n;

        if (shuffles(r)) {
                c.flags |= CHUNK_COUNTED;
                c.position = c.end = r->position;
                c.skip = r->window.next;
                if (!(c.flags & CHUNK_MORE)) {
                        r->part.size = 0;
                        if (++r->window.next == r->window.n) {
                                hold_advance(r, r->window.bytes);
                                r->window.n = 0;
                                c.end = r->position;
                        }
                }
        } else {
                c.position = r->position + r->part.at + r->part.done - copied;
                c.end = c.position + copied;
                if (!(c.flags & CHUNK_MORE)) {
                        hold_advance(r, r->part.total);
                        r->part.size = 0;
                        c.end = r->position;
                }
        }
        *ret = c;
        return 1;
}

/* A record of the hold, at bytes behind position, which does not fit the buffer. */
static void part_begin(struct bytes_reader *r, size_t data, size_t size, size_t total, bool newline) {
        r->part.at = data;
        r->part.size = size;
        r->part.total = total;
        r->part.done = 0;
        r->part.newline = newline;
}

static bool lacks_newline(const struct bytes_reader *r, const uint8_t *data, size_t size) {
        return is_lines(r) && size > 0 && data[size - 1] != '\n';
}

/* Leaves out to_skip records. 1; 0: the task ends before. */
static int skip_records(struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        for (; r->to_skip > 0; r->to_skip--) {
                struct record record;
                int k = hold_record(r, 0, &record, error);

                if (k <= 0)
                        return k;
                hold_advance(r, record.total);
        }
        return 1;
}

static int next_shuffled(struct bytes_reader *r, uint8_t *buf, size_t size, struct chunk *ret,
                         char error[static READ_ERROR_MAX]) {
        struct window *w = &r->window;
        struct chunk c = { .flags = CHUNK_COUNTED };

        while (w->n == 0) {
                int k = window_fill(r, error);

                if (k <= 0)
                        return k;
                if (r->to_skip < w->n) {
                        w->next = (uint32_t)r->to_skip;
                        r->to_skip = 0;
                        break;
                }
                r->to_skip -= w->n;
                hold_advance(r, w->bytes);
                w->n = 0;
        }
        c.position = c.end = r->position;
        c.skip = w->next;
        while (w->next < w->n) {
                const struct window_record *record = &w->records[w->order[w->next]];
                bool whole = !unwraps(r);
                size_t at = whole ? record->at : record->data, n = whole ? record->total : record->data_size;
                const uint8_t *bytes = hold_bytes(r) + at;
                /* Also in a ring: another record may follow it. */
                bool newline = lacks_newline(r, bytes, n);

                if (n + newline > size - c.size) {
                        if (c.size > 0)
                                break;
                        part_begin(r, at, n, record->total, newline);
                        return deliver_part(r, buf, size, ret);
                }
                memcpy(buf + c.size, bytes, n);
                c.size += n;
                if (newline)
                        buf[c.size++] = '\n';
                c.records++;
                w->next++;
        }
        if (w->next == w->n) {
                hold_advance(r, w->bytes);
                w->n = 0;
                c.end = r->position;
        }
        *ret = c;
        return 1;
}

/* Looks at each of the records in [0, bytes) of buf, which has got bytes: behind them lies what says where
 * the last one ends. Moves what is delivered of them together where their framing is not; refuses too long
 * ones. 0 with *ret, the bytes to be delivered. */
static int each_record(const struct bytes_reader *r, uint8_t *buf, size_t bytes, size_t got, bool last,
                       size_t *ret, char error[static READ_ERROR_MAX]) {
        size_t at = 0, out = 0;

        while (at < bytes) {
                struct record record;
                const char *why = "";
                int k = record_next(&r->format, buf + at, got - at, last, &record, &why);

                if (k <= 0)
                        return bytes_broken(r, r->position + at, k < 0 ? why : "no record", error);
                if (record.size > r->q.input->max_record)
                        return bytes_too_long(r, r->position + at, error);
                if (unwraps(r)) {
                        memmove(buf + out, record.data, record.size);
                        out += record.size;
                } else
                        out += record.total;
                at += record.total;
        }
        *ret = out;
        return 0;
}

/* buf has got bytes, of which none is the end of a record: it goes on in the hold, and is delivered in parts.
 */
static int next_long(struct bytes_reader *r, uint8_t *buf, size_t got, size_t size, struct chunk *ret,
                     char error[static READ_ERROR_MAX]) {
        struct record record;
        size_t at, n;
        int k = hold_put_back(r, buf, got, error);

        if (k < 0)
                return k;
        k = hold_record(r, 0, &record, error);
        if (k <= 0) {
                if (k == 0)
                        r->over = true;
                return k;
        }
        at = unwraps(r) ? (size_t)(record.data - hold_bytes(r)) : 0;
        n = unwraps(r) ? record.size : record.total;
        part_begin(r, at, n, record.total, !r->q.framed && lacks_newline(r, record.data, record.size));
        return deliver_part(r, buf, size, ret);
}

static int next_bytes(struct bytes_reader *r, uint8_t *buf, size_t size, struct chunk *ret,
                      char error[static READ_ERROR_MAX]) {
        size_t room = size, got, enough, bytes = 0;
        struct chunk c = { .position = r->position };
        bool last = false;
        int k;

        if (!r->q.framed && is_lines(r) && room > 1)
                room--; /* for the newline of the last line */
        if ((r->format.kind == RECORD_RAW || r->format.kind == RECORD_FIXED) && r->format.record_size <= room)
                room -= room % r->format.record_size; /* nothing is left over then */
        enough = r->stream->fd >= 0                    ? room
                 : r->q.source->kind == SOURCE_COMMAND ? 1
                                                       : MIN(room, (size_t)ENOUGH);

        got = MIN(hold_available(r), room);
        if (got > 0)
                memcpy(buf, hold_bytes(r), got);
        r->hold_at += got;
        for (;;) {
                const char *why = "";
                ssize_t n = 0;

                /* What is held and does not fit stands before the stream. */
                if (hold_available(r) == 0 && got < room) {
                        n = bytes_pull(r, buf + got, room - got, r->position + got, error);
                        if (n < 0)
                                return (int)n;
                        got += (size_t)n;
                }
                last = hold_available(r) == 0 && bytes_over(r, r->position + got);
                if (!last && got < enough && n > 0)
                        continue;
                k = record_last(&r->format, buf, got, last, &bytes, &c.records, &why);
                if (k < 0)
                        return bytes_broken(r, r->position, why, error);
                if (bytes > 0)
                        break;
                if (last) {
                        r->position += got; /* what ends an archive */
                        return 0;
                }
                if (got == room)
                        return next_long(r, buf, got, size, ret, error);
        }
        k = hold_put_back(r, buf + bytes, got - bytes, error);
        if (k < 0)
                return k;
        c.size = bytes;
        if (unwraps(r) || bytes > r->q.input->max_record) {
                k = each_record(r, buf, bytes, got, last, &c.size, error);
                if (k < 0)
                        return k;
        }
        if (!r->q.framed && last && bytes == got && lacks_newline(r, buf, bytes))
                buf[c.size++] = '\n';
        r->position += bytes;
        c.end = r->position;
        *ret = c;
        return 1;
}

/* A CSV's header begins every task. */
static int next_header(struct bytes_reader *r, uint8_t *buf, size_t size, struct chunk *ret,
                       char error[static READ_ERROR_MAX]) {
        size_t left = r->header_size - r->part.done, n = MIN(left, size);
        struct record record;

        if (r->part.done == 0) {
                int k = hold_record(r, 0, &record, error);

                if (k <= 0)
                        return k; /* not for nothing */
        }
        *ret = (struct chunk){
                .position = r->position,
                .end = r->position,
                .size = n,
                .flags = CHUNK_HEADER | (r->part.done == 0 && n < left ? CHUNK_FIRST : 0) |
                         (n < left ? CHUNK_MORE : 0),
        };
        memcpy(buf, r->header + r->part.done, n);
        r->part.done += n;
        if (n == left) {
                r->header_due = false;
                r->part.done = 0;
        }
        return 1;
}

/* ---- trim ---- */

/* What is held behind the end is not the task's. */
static void end_at(struct bytes_reader *r, uint64_t last) {
        atomic_store(&r->last, last);
        if (hold_available(r) > last - r->position)
                r->hold_size = r->hold_at + (size_t)(last - r->position);
}

static int trim_apply(struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        uint64_t at = atomic_exchange(&r->trim, TASK_UNKNOWN), last = atomic_load(&r->last), end;
        int k;

        if (at == TASK_UNKNOWN || !r->ranges)
                return 0;
        at = MAX(at, r->position + (r->window.n > 0    ? r->window.bytes
                                    : r->part.size > 0 ? r->part.total
                                                       : 0));
        if (at >= last)
                return 0;
        at = MAX(at, r->first);
        k = align_forward(r, at, last, &end, error);
        if (k < 0)
                return k;
        end = MAX(end, r->first);
        if (end >= last)
                return 0;
        end_at(r, end);
        return 0;
}

static void bytes_trim(struct reader *reader, uint64_t position) {
        struct bytes_reader *r = (struct bytes_reader *)reader;

        atomic_store(&r->trim, position);
}

static uint64_t bytes_end(const struct reader *reader) {
        const struct bytes_reader *r = (const struct bytes_reader *)reader;

        return atomic_load(&r->last);
}

static int bytes_check(struct reader *reader, char error[static READ_ERROR_MAX]) {
        struct bytes_reader *r = (struct bytes_reader *)reader;

        return r->stream->ops->check ? r->stream->ops->check(r->stream, error) : 0;
}

static int bytes_next(struct reader *reader, uint8_t *buf, size_t size, struct chunk *ret,
                      char error[static READ_ERROR_MAX]) {
        struct bytes_reader *r = (struct bytes_reader *)reader;
        int k;

        if (bytes_canceled(r))
                return read_error(error, -ECANCELED, r->stream->path, "given up");
        if (r->over)
                return bytes_check(reader, error);
        k = trim_apply(r, error);
        if (k < 0)
                return k;
        if (r->part.size > 0)
                return deliver_part(r, buf, size, ret);
        k = 1;
        if (r->to_skip > 0 && !shuffles(r))
                k = skip_records(r, error);
        if (k > 0 && r->header_due) {
                k = next_header(r, buf, size, ret, error);
                if (k != 0)
                        return k;
        }
        if (k > 0)
                k = shuffles(r) ? next_shuffled(r, buf, size, ret, error)
                                : next_bytes(r, buf, size, ret, error);
        if (k != 0)
                return k;
        r->over = true;
        /* The position behind everything, now that it is known (and what a decompressor has checked). */
        if (atomic_load(&r->last) == TASK_TO_END)
                atomic_store(&r->last, r->position + hold_available(r));
        return bytes_check(reader, error);
}

/* ---- range ---- */

static int bytes_range(struct reader *reader, int *ret_fd, uint64_t *ret_first, uint64_t *ret_last,
                       char error[static READ_ERROR_MAX]) {
        struct bytes_reader *r = (struct bytes_reader *)reader;
        uint64_t last;
        uint8_t byte;
        int k;

        if (r->stream->fd < 0 || r->stream->size == TASK_UNKNOWN || shuffles(r) || r->to_skip > 0)
                return -EOPNOTSUPP;
        k = trim_apply(r, error);
        if (k < 0)
                return k;
        last = MIN(atomic_load(&r->last), r->stream->size);
        if (r->format.kind == RECORD_FIXED && (last - r->first) % r->format.record_size != 0)
                return bytes_broken(r, last - last % r->format.record_size,
                                    "the data does not end at the end of a record of recordSize", error);
        if (!r->q.framed && r->position < last) {
                if (r->format.kind != RECORD_TEXT && r->format.kind != RECORD_RAW &&
                    r->format.kind != RECORD_FIXED)
                        return -EOPNOTSUPP; /* there is something to check, to add or to leave out */
                if (r->format.kind == RECORD_TEXT) {
                        ssize_t n = r->stream->ops->read_at(r->stream, &byte, 1, last - 1, error);

                        if (n < 0)
                                return (int)n;
                        if (n == 0 || byte != '\n')
                                return -EOPNOTSUPP;
                }
        }
        *ret_fd = r->stream->fd;
        *ret_first = r->position;
        *ret_last = last;
        return 0;
}

static const struct reader_ops bytes_ops = {
        .next = bytes_next,
        .end = bytes_end,
        .trim = bytes_trim,
        .range = bytes_range,
        .check = bytes_check,
        .close = bytes_close,
};

/* ---- opening ---- */

static int format_of(const struct reader_request *q, struct record_format_info *ret,
                     char error[static READ_ERROR_MAX]) {
        static const enum record_kind kinds[_FORMAT_MAX] = {
                [FORMAT_TEXT] = RECORD_TEXT,         [FORMAT_RAW] = RECORD_RAW, [FORMAT_FIXED] = RECORD_FIXED,
                [FORMAT_TFRECORD] = RECORD_TFRECORD, [FORMAT_TAR] = RECORD_TAR, [FORMAT_CSV] = RECORD_CSV,
                [FORMAT_MESSAGE] = RECORD_MESSAGE,
        };
        enum record_format f = q->source->format;

        if (f < 0 || f >= _FORMAT_MAX)
                return read_error(error, -EINVAL, q->task->path, "its source has no format");
        *ret = (struct record_format_info){
                .kind = kinds[f],
                .record_size = q->source->record_size,
                .multiline = q->source->multiline,
        };
        if ((ret->kind == RECORD_RAW || ret->kind == RECORD_FIXED) && ret->record_size == 0)
                return read_error(error, -EINVAL, q->task->path, "its source has no size of records");
        return 0;
}

static bool has_sync(const struct record_format_info *f) {
        return f->kind != RECORD_TAR && f->kind != RECORD_MESSAGE && !(f->kind == RECORD_CSV && f->multiline);
}

/* The header line lies at the file's start, wherever the task begins. Behind it, the stream is where a reader
 * from the start on would be. */
static int header_read(struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        struct record record;
        int k = hold_record(r, 0, &record, error);

        if (k <= 0)
                return k;
        r->header = malloc(record.total + 1);
        if (!r->header)
                return bytes_no_memory(r, error);
        memcpy(r->header, record.data, record.total);
        r->header_size = record.total;
        if (r->header[r->header_size - 1] != '\n')
                r->header[r->header_size++] = '\n';
        r->header_due = true;
        hold_advance(r, record.total);
        r->first = r->position;
        return 0;
}

/* Goes to at, which is a record's start. */
static int go_to(struct bytes_reader *r, uint64_t at, char error[static READ_ERROR_MAX]) {
        if (at >= r->position && at - r->position <= hold_available(r)) {
                hold_advance(r, (size_t)(at - r->position));
                return 0;
        }
        r->hold_at = r->hold_size = 0;
        r->stream_over = false;
        r->position = at;
        return r->stream->ops->seek(r->stream, at, error);
}

/* Passes by the records that end at or before at. */
static int walk_to(struct bytes_reader *r, uint64_t at, char error[static READ_ERROR_MAX]) {
        while (r->position < at) {
                struct record record;
                int k = hold_record(r, 0, &record, error);

                if (k <= 0)
                        return k;
                if (r->position + record.total > at)
                        break;
                hold_advance(r, record.total);
        }
        return 0;
}

/* A part of a file: from and to the first record at or behind its ends. */
static int begin_range(struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        const struct task_grant *t = r->q.task;
        uint64_t floor = r->first, first, last, at;
        int k = align_forward(r, t->start, t->end, &first, error);

        if (k < 0)
                return k;
        first = MAX(first, floor);
        if (first >= t->end)
                last = first; /* no record begins here */
        else {
                k = align_forward(r, t->end, TASK_TO_END, &last, error);
                if (k < 0)
                        return k;
                last = MAX(last, first);
        }
        r->first = first;
        at = MIN(MAX(t->offset, first), last);
        if (at > first && at < last && r->format.kind != RECORD_TFRECORD) {
                k = align_back(r, at, &at, error);
                if (k < 0)
                        return k;
                at = MAX(at, first);
        }
        if (r->format.kind == RECORD_TFRECORD && at < last) {
                k = go_to(r, first, error);
                if (k < 0)
                        return k;
                end_at(r, last);
                return walk_to(r, at, error);
        }
        k = go_to(r, at, error);
        if (k < 0)
                return k;
        end_at(r, last);
        return 0;
}

static int begin_reading(struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        const struct task_grant *t = r->q.task;
        int k;

        if (r->format.kind == RECORD_CSV) {
                k = header_read(r, error);
                if (k < 0)
                        return k;
        }
        if (r->ranges)
                return begin_range(r, error);
        if (t->start > 0)
                return read_error(error, -EINVAL, r->stream->path,
                                  "cannot be read from its middle on (byte %" PRIu64 "): set split to 0",
                                  t->start);
        return walk_to(r, t->offset, error);
}

int reader_open_bytes(const struct reader_request *q, struct stream *stream, struct reader **ret,
                      char error[static READ_ERROR_MAX]) {
        struct bytes_reader *r = malloc(sizeof *r);
        int k;

        if (!r) {
                stream_close(stream);
                return read_error(error, -ENOMEM, q->task->path, "%s", strerror(ENOMEM));
        }
        *r = (struct bytes_reader){
                .reader.ops = &bytes_ops,
                .q = *q,
                .stream = stream,
                .last = TASK_TO_END,
                .trim = TASK_UNKNOWN,
                .to_skip = q->task->skip + (q->task->failures > 0 ? q->source->rewind_skip : 0),
        };
        k = format_of(q, &r->format, error);
        if (k >= 0) {
                bool anywhere = stream->ops->read_at && stream->ops->seek && stream->size != TASK_UNKNOWN;

                r->ranges = anywhere && has_sync(&r->format);
                if (anywhere)
                        atomic_store(&r->last, stream->size);
                k = begin_reading(r, error);
        }
        if (k < 0) {
                bytes_close(&r->reader);
                return k;
        }
        *ret = &r->reader;
        return 0;
}
