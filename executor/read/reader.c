/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses how a task is read: which stream its bytes come from, what decompresses them, and the reader on
 * top. */
#include "executor/read/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "executor/read/kind.h"

typedef int (*stream_opener)(const struct reader_request *q, struct stream **ret,
                             char error[static READ_ERROR_MAX]);

/* What is missing was left out of this build. */
static const stream_opener openers[_SOURCE_KIND_MAX] = {
        [SOURCE_FILES] = stream_open_file, [SOURCE_COMMAND] = stream_open_command,
#ifdef HAVE_HTTP
        [SOURCE_HTTP] = stream_open_http,  [SOURCE_S3] = stream_open_http,
        [SOURCE_HDFS] = stream_open_http,
#endif
};

int read_error(char error[static READ_ERROR_MAX], int r, const char *path, const char *format, ...) {
        int n = snprintf(error, READ_ERROR_MAX, "%.350s: ", path);
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(error + n, READ_ERROR_MAX - (size_t)n, format, ap);
        va_end(ap);
        return r;
}

/* A command that is given a compressed file says by "compression" what it prints; that the file's name ends
 * in .gz says nothing of it. */
static enum compression compression_of(const struct reader_request *q) {
        if (q->source->kind == SOURCE_COMMAND && q->source->compression == COMPRESSION_AUTO)
                return COMPRESSION_NONE;
        return input_compression(q->source, q->task->path);
}

int reader_open(const struct reader_request *q, struct reader **ret, char error[static READ_ERROR_MAX]) {
        enum source_kind kind = q->source->kind;
        struct stream *stream;
        int r;

#ifdef HAVE_KAFKA
        if (kind == SOURCE_KAFKA)
                return reader_open_kafka(q, ret, error);
#endif
        if (kind < 0 || kind >= _SOURCE_KIND_MAX || !openers[kind])
                return read_error(error, -EOPNOTSUPP, q->task->path,
                                  "this build of Primus reads no sources of that kind");
        r = openers[kind](q, &stream, error);
        if (r < 0)
                return r;
        switch (compression_of(q)) {
        case COMPRESSION_GZIP:
                r = stream_open_gzip(stream, &stream, error);
                break;
        case COMPRESSION_ZSTD:
                r = stream_open_zstd(stream, &stream, error);
                break;
        default:
                break;
        }
        if (r < 0)
                return r;
        return reader_open_bytes(q, stream, ret, error);
}

struct reader *reader_close(struct reader *r) {
        if (r)
                r->ops->close(r);
        return NULL;
}

int reader_next(struct reader *r, uint8_t *buf, size_t size, struct chunk *ret,
                char error[static READ_ERROR_MAX]) {
        return r->ops->next(r, buf, size, ret, error);
}

uint64_t reader_end(const struct reader *r) {
        return r->ops->end(r);
}

void reader_trim(struct reader *r, uint64_t position) {
        r->ops->trim(r, position);
}

int reader_range(struct reader *r, int *ret_fd, uint64_t *ret_first, uint64_t *ret_last,
                 char error[static READ_ERROR_MAX]) {
        return r->ops->range ? r->ops->range(r, ret_fd, ret_first, ret_last, error) : -EOPNOTSUPP;
}

int reader_check(struct reader *r, char error[static READ_ERROR_MAX]) {
        return r->ops->check ? r->ops->check(r, error) : 0;
}

struct stream *stream_close(struct stream *s) {
        if (s)
                s->ops->close(s);
        return NULL;
}
