/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where records begin in the middle of a file. Invariant: two tasks that meet at a place find the same
 * record there, so that a record belongs to the one in which it begins. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "executor/read/bytes.h"
#include "lib/base/cleanup.h"

#define ALIGN_STEP (64u << 10)

/* Exactly size bytes. */
static int read_whole(struct bytes_reader *r, uint8_t *buf, size_t size, uint64_t at,
                      char error[static READ_ERROR_MAX]) {
        for (size_t got = 0; got < size;) {
                ssize_t n;

                if (bytes_canceled(r))
                        return read_error(error, -ECANCELED, r->stream->path, "given up");
                n = r->stream->ops->read_at(r->stream, buf + got, size - got, at + got, error);
                if (n < 0)
                        return (int)n;
                if (n == 0)
                        return read_error(error, -ESTALE, r->stream->path,
                                          "became shorter while it was read: nothing at byte %" PRIu64,
                                          at + got);
                got += (size_t)n;
        }
        return 0;
}

static bool is_lines(const struct bytes_reader *r) {
        return r->format.kind == RECORD_TEXT || r->format.kind == RECORD_CSV;
}

int align_back(struct bytes_reader *r, uint64_t at, uint64_t *ret, char error[static READ_ERROR_MAX]) {
        _cleanup_free_ uint8_t *buf = NULL;

        if (!is_lines(r)) {
                *ret = at - at % r->format.record_size;
                return 0;
        }
        buf = malloc(ALIGN_STEP);
        if (!buf)
                return bytes_no_memory(r, error);
        while (at > r->first) {
                size_t n = (size_t)MIN(at - r->first, (uint64_t)ALIGN_STEP);
                const uint8_t *newline;
                int k = read_whole(r, buf, n, at - n, error);

                if (k < 0)
                        return k;
                newline = memrchr(buf, '\n', n);
                if (newline) {
                        *ret = at - n + (uint64_t)(newline - buf) + 1;
                        return 0;
                }
                at -= n;
        }
        *ret = at;
        return 0;
}

/* The line that at lies in does not end in time. */
static int line_too_long(struct bytes_reader *r, uint64_t at, char error[static READ_ERROR_MAX]) {
        uint64_t start;
        int k = align_back(r, at, &start, error);

        return k < 0 ? k : bytes_too_long(r, start, error);
}

/* Behind the newline at or behind at - 1; nothing of it need be kept. */
static int align_line(struct bytes_reader *r, uint64_t at, uint64_t limit, uint64_t *ret,
                      char error[static READ_ERROR_MAX]) {
        uint64_t bound = r->q.input->max_record + RECORD_SLACK, size = r->stream->size;
        _cleanup_free_ uint8_t *buf = malloc(ALIGN_STEP);

        if (!buf)
                return bytes_no_memory(r, error);
        for (uint64_t from = at - 1;;) {
                size_t n = (size_t)MIN(size - from, (uint64_t)ALIGN_STEP), distance;
                int k = read_whole(r, buf, n, from, error);
                const char *why;

                if (k < 0)
                        return k;
                if (record_sync(&r->format, buf, n, from, from + n == size, &distance, &why) > 0) {
                        *ret = from + distance;
                        return 0;
                }
                from += n;
                if (from >= limit) {
                        *ret = limit;
                        return 0;
                }
                if (limit == TASK_TO_END && from - at >= bound)
                        return line_too_long(r, at - 1, error);
        }
}

/* A record has to be seen whole, and the next one's header behind it. */
static int align_tfrecord(struct bytes_reader *r, uint64_t at, uint64_t *ret,
                          char error[static READ_ERROR_MAX]) {
        uint64_t bound = 2 * r->q.input->max_record + RECORD_SLACK, rest = r->stream->size - at;
        _cleanup_free_ uint8_t *buf = NULL;
        size_t have = 0;

        while (have < bound) {
                size_t wanted = (size_t)MIN(rest, MAX((uint64_t)have * 2, (uint64_t)ALIGN_STEP)), distance;
                uint8_t *larger = realloc(buf, wanted);
                const char *why;
                int k;

                if (!larger)
                        return bytes_no_memory(r, error);
                buf = larger;
                k = read_whole(r, buf + have, wanted - have, at + have, error);
                if (k < 0)
                        return k;
                have = wanted;
                if (record_sync(&r->format, buf, have, at, have == rest, &distance, &why) > 0) {
                        *ret = at + distance;
                        return 0;
                }
        }
        return read_error(error, -EBADMSG, r->stream->path,
                          "no TFRecord begins within %" PRIu64 " bytes behind byte %" PRIu64
                          ": set split to 0",
                          bound, at);
}

int align_forward(struct bytes_reader *r, uint64_t at, uint64_t limit, uint64_t *ret,
                  char error[static READ_ERROR_MAX]) {
        uint64_t size = r->stream->size, unit = r->format.record_size, behind;

        if (at == 0 || at >= size) {
                *ret = MIN(at, size);
                return 0;
        }
        if (is_lines(r))
                return align_line(r, at, limit, ret, error);
        if (r->format.kind == RECORD_TFRECORD)
                return align_tfrecord(r, at, ret, error);
        behind = at % unit == 0 ? 0 : unit - at % unit;
        *ret = behind < size - at ? at + behind : size;
        return 0;
}
