/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from somewhere, one after another from a position on: what the reader stands on. One implementation
 * for each kind of source (stream-file.c, stream-http.c with s3, stream-command.c); decompression is a stream
 * over another (stream-inflate.c). Kafka has no bytes but messages and is a reader of its own (kafka.c).
 * Blocking; used by one thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "executor/read/reader.h"

struct stream;

struct stream_ops {
        /* Up to size bytes; 0: the end (of the file, or of the range asked for); negative errno with a line
         * in error. -ECANCELED once cancel is set. */
        ssize_t (*read)(struct stream *s, uint8_t *buf, size_t size, char error[static READ_ERROR_MAX]);
        /* The same at a place, where the stream can (NULL: it cannot): does not move where read goes on. */
        ssize_t (*read_at)(struct stream *s, uint8_t *buf, size_t size, uint64_t position,
                           char error[static READ_ERROR_MAX]);
        /* Goes on from position; NULL: only forward, by reading. */
        int (*seek)(struct stream *s, uint64_t position, char error[static READ_ERROR_MAX]);
        /* Whether what was read is what was scanned. 0 or -ESTALE with the line. NULL: cannot be told. */
        int (*check)(struct stream *s, char error[static READ_ERROR_MAX]);
        void (*close)(struct stream *s); /* frees s */
};

struct stream {
        const struct stream_ops *ops;
        const char *path;          /* for errors; the request's */
        const atomic_bool *cancel; /* NULL: never */
        uint64_t size;             /* TASK_UNKNOWN: not known */
        int fd;                    /* a local file's; -EBADF */
};

/* Open what q->task->path and q->source say. http and s3 keep to [first, last) in their requests. */
int stream_open_file(const struct reader_request *q, struct stream **ret, char error[static READ_ERROR_MAX]);
int stream_open_http(const struct reader_request *q, struct stream **ret, char error[static READ_ERROR_MAX]);
int stream_open_command(const struct reader_request *q, struct stream **ret,
                        char error[static READ_ERROR_MAX]);
/* Takes over below, also on failure. */
int stream_open_gzip(struct stream *below, struct stream **ret, char error[static READ_ERROR_MAX]);
int stream_open_zstd(struct stream *below, struct stream **ret, char error[static READ_ERROR_MAX]);
struct stream *stream_close(struct stream *s);
