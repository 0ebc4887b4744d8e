/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one task: chunks of whole records, in the order of delivery, each with the position behind it.
 * Blocking; used by one thread (the feeder's producer). Whatever goes wrong with the data is an error of that
 * task alone, said in one line.
 *
 *   stream (bytes of a file, URL, command …) -> decompression -> records (alignment, bounds, shuffle, skip)
 * -> chunk */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/input.h"
#include "lib/wire/tasks.h"

#define READ_ERROR_MAX 512u

struct reader;

struct reader_request {
        const struct input *input;
        const struct input_source *source;
        const struct task_grant *task; /* its path must live as long as the reader */
        const atomic_bool *cancel; /* set by another thread: every call answers -ECANCELED soon (<= 200 ms) */
        bool framed; /* false: what goes to a pipe (TEXT's last line gets its \n, CSV begins with its header,
                      * messages lose their framing); true: the format's own framing, for a ring */
};

enum {
        CHUNK_FIRST = 1,   /* a part of a record that does not fit the buffer: its first, ... */
        CHUNK_MORE = 2,    /* ... and more of it follows in the next chunk */
        CHUNK_COUNTED = 4, /* the order of delivery is not that of the file: acknowledge by (position, skip +
                              records), not by bytes */
        CHUNK_HEADER = 8,  /* a CSV's header line, which every reader delivers first, whatever its task begins
                              with; no record of the task: position and end are where that goes on */
};

struct chunk {
        uint64_t position; /* of its first byte: where a new reader would begin to get this chunk */
        uint64_t skip;     /* records behind position that came in earlier chunks (CHUNK_COUNTED) */
        uint64_t end; /* position behind it; CHUNK_COUNTED: still the window's start, until the last record of
                         the window is in it. end - position is not always size: a newline was added, what
                         ends an archive left out */
        uint64_t records; /* whole records that end in it; 0 where they were not counted (TEXT without skip or
                             shuffle) */
        size_t size;      /* bytes */
        uint32_t flags;
};

/* 0, or a negative errno with a line in error that begins with the path. */
int reader_open(const struct reader_request *q, struct reader **ret, char error[static READ_ERROR_MAX]);
struct reader *reader_close(struct reader *r);
static inline void reader_close_p(struct reader **r) {
        reader_close(*r);
}

/* 1: buf holds a chunk. 0: the task is over; the file has been compared with the scan. -EAGAIN: a stream has
 * nothing now (Kafka): the task goes back (RETURNED) from the position reached. Other negative: failed, error
 * says why. */
int reader_next(struct reader *r, uint8_t *buf, size_t size, struct chunk *ret,
                char error[static READ_ERROR_MAX]);

/* Where the task ends as far as known: the position behind its last record, so for a part of a file somewhat
 * behind the granted end. TASK_TO_END: not yet (it ends with the stream; known once reader_next() said 0). */
uint64_t reader_end(const struct reader *r);

/* Asks that the task ends at the first record that begins at or behind position (rounded up to what has been
 * delivered; where reader_range() was used, the caller's position counts, who knows how far it has gone).
 * Callable from another thread. reader_end() tells what came of it once reader_next() or reader_range() has
 * been called again: the same end as before where the file cannot be cut (compressed, tar). */
void reader_trim(struct reader *r, uint64_t position);

/* A local, uncompressed file whose range can be handed out as it is (descriptor mode, splice): the descriptor
 * (owned by the reader) and the range [*ret_first, *ret_last) aligned to records, from where the task goes
 * on. -EOPNOTSUPP: it has to be read by the reader (with framed false also where something is to be checked,
 * added or left out: TFRECORD, CSV, TAR, a last line without newline). A CSV's header is not in the range.
 * Nobody looks for records longer than maxRecord in it. */
int reader_range(struct reader *r, int *ret_fd, uint64_t *ret_first, uint64_t *ret_last,
                 char error[static READ_ERROR_MAX]);
/* Compares the file with the scan again. 0, or -ESTALE with the line. */
int reader_check(struct reader *r, char error[static READ_ERROR_MAX]);
