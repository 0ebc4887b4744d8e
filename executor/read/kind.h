/* SPDX-License-Identifier: Apache-2.0 */
/* Behind reader.h: a reader is of one of two kinds, bytes (bytes.c: files, URLs, commands; a stream and a
 * format) or messages (kafka.c). Each embeds struct reader at its start. */
#pragma once

#include "executor/read/reader.h"
#include "executor/read/stream.h"

struct reader_ops {
        /* As reader_next() and so on in reader.h; range and check may be NULL (-EOPNOTSUPP, 0). */
        int (*next)(struct reader *r, uint8_t *buf, size_t size, struct chunk *ret,
                    char error[static READ_ERROR_MAX]);
        uint64_t (*end)(const struct reader *r);
        void (*trim)(struct reader *r, uint64_t position);
        int (*range)(struct reader *r, int *ret_fd, uint64_t *ret_first, uint64_t *ret_last,
                     char error[static READ_ERROR_MAX]);
        int (*check)(struct reader *r, char error[static READ_ERROR_MAX]);
        void (*close)(struct reader *r); /* frees r */
};

struct reader {
        const struct reader_ops *ops;
};

/* A reader of what the stream brings, which it takes over, also on failure. */
int reader_open_bytes(const struct reader_request *q, struct stream *stream, struct reader **ret,
                      char error[static READ_ERROR_MAX]);
int reader_open_kafka(const struct reader_request *q, struct reader **ret, char error[static READ_ERROR_MAX]);

/* Writes "PATH: …" (the path cut where it is very long) and returns r, so that a failure is one line. */
int read_error(char error[static READ_ERROR_MAX], int r, const char *path, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
