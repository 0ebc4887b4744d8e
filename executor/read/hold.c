/* SPDX-License-Identifier: Apache-2.0 */
/* What was read and is not delivered yet. Invariant: it grows to one record of maxRecord and what must be
 * seen behind it, or to a window, and no further. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "executor/read/bytes.h"
#include "lib/base/cleanup.h"

int bytes_no_memory(const struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        return read_error(error, -ENOMEM, r->stream->path, "%s", strerror(ENOMEM));
}

int bytes_broken(const struct bytes_reader *r, uint64_t at, const char *why,
                 char error[static READ_ERROR_MAX]) {
        uint64_t last = atomic_load(&r->last);

        /* The part ends where a record was found to begin, and we do not come by there: one of the two is not
         * what it looked like. */
        if (r->format.kind == RECORD_TFRECORD && r->ranges && last < r->stream->size &&
            strncmp(why, "trunc", 5) == 0)
                return read_error(error, -EBADMSG, r->stream->path,
                                  "the records from byte %" PRIu64
                                  " on do not meet the one that was found at byte %" PRIu64
                                  " (a TFRecord file within another?): set split to 0",
                                  at, last);
        return read_error(error, -EBADMSG, r->stream->path, "%s, in the record at byte %" PRIu64, why, at);
}

int bytes_too_long(const struct bytes_reader *r, uint64_t at, char error[static READ_ERROR_MAX]) {
        uint64_t max = r->q.input->max_record;
        bool mib = max >= 1 << 20 && max % (1 << 20) == 0;

        return read_error(error, -EMSGSIZE, r->stream->path,
                          "a record at byte %" PRIu64 " is longer than maxRecord (%" PRIu64 "%s)", at,
                          mib ? max >> 20 : max, mib ? " MiB" : " bytes");
}

bool bytes_over(const struct bytes_reader *r, uint64_t at) {
        return r->stream_over || at >= atomic_load_explicit(&r->last, memory_order_relaxed);
}

ssize_t bytes_pull(struct bytes_reader *r, uint8_t *buf, size_t n, uint64_t at,
                   char error[static READ_ERROR_MAX]) {
        uint64_t last = atomic_load_explicit(&r->last, memory_order_relaxed);
        ssize_t got;

        if (bytes_over(r, at))
                return 0;
        if (bytes_canceled(r))
                return read_error(error, -ECANCELED, r->stream->path, "given up");
        got = r->stream->ops->read(r->stream, buf, (size_t)MIN((uint64_t)n, last - at), error);
        if (got != 0)
                return got;
        if (last != TASK_TO_END)
                return read_error(error, -ESTALE, r->stream->path,
                                  "became shorter while it was read: nothing at byte %" PRIu64 " of %" PRIu64,
                                  at, last);
        r->stream_over = true;
        return 0;
}

static int hold_room(struct bytes_reader *r, size_t n, char error[static READ_ERROR_MAX]) {
        size_t available = hold_available(r), size;
        uint8_t *hold;

        if (r->hold_allocated - r->hold_size >= n)
                return 0;
        if (r->hold_allocated - available >= n) {
                memmove(r->hold, r->hold + r->hold_at, available);
                r->hold_at = 0;
                r->hold_size = available;
                return 0;
        }
        size = MAX(available + n, MIN(r->hold_allocated * 2, r->hold_allocated + (16u << 20)));
        hold = malloc(size);
        if (!hold)
                return bytes_no_memory(r, error);
        if (available > 0)
                memcpy(hold, hold_bytes(r), available);
        free(r->hold);
        r->hold = hold;
        r->hold_allocated = size;
        r->hold_at = 0;
        r->hold_size = available;
        assert(r->hold_allocated - r->hold_size >= n);
        return 0;
}

int hold_record(struct bytes_reader *r, size_t ahead, struct record *ret, char error[static READ_ERROR_MAX]) {
        uint64_t max = r->q.input->max_record;

        for (;;) {
                size_t available = hold_available(r) - ahead;
                uint64_t at = r->position + ahead, end = at + available;
                bool last = bytes_over(r, end);
                const char *why = "";
                ssize_t n;
                int k = available == 0
                                ? 0
                                : record_next(&r->format, hold_bytes(r) + ahead, available, last, ret, &why);

                if (k < 0)
                        return bytes_broken(r, at, why, error);
                if (k > 0)
                        return ret->size > max ? bytes_too_long(r, at, error) : 1;
                if (last)
                        return 0;
                if (available > max + RECORD_SLACK)
                        return bytes_too_long(r, at, error);
                /* Twice as much each time: a format may have to look at it from its start again. */
                k = hold_room(r, MAX((size_t)HOLD_STEP, available), error);
                if (k < 0)
                        return k;
                n = bytes_pull(r, r->hold + r->hold_size, r->hold_allocated - r->hold_size, end, error);
                if (n < 0)
                        return (int)n;
                r->hold_size += (size_t)n;
                assert(r->hold_at <= r->hold_size && r->hold_size <= r->hold_allocated);
        }
}

int hold_put_back(struct bytes_reader *r, const uint8_t *buf, size_t size,
                  char error[static READ_ERROR_MAX]) {
        int k;

        if (size == 0)
                return 0;
        /* All of it came from the hold, and more lies there: it is still where it was. */
        if (hold_available(r) > 0) {
                r->hold_at -= size;
                return 0;
        }
        r->hold_at = r->hold_size = 0;
        k = hold_room(r, size, error);
        if (k < 0)
                return k;
        memcpy(r->hold, buf, size);
        r->hold_size = size;
        return 0;
}

void hold_advance(struct bytes_reader *r, size_t n) {
        r->hold_at += n;
        r->position += n;
}
