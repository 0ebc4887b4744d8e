/* SPDX-License-Identifier: Apache-2.0 */
/* A local (or mounted) file. Read by pread, never mapped: a mapping of a file that somebody cuts short is
 * SIGBUS or zeros. Invariant: what is handed out was there; where a byte that the scan saw is missing, that
 * is an error and no end. Only regular files are read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "executor/read/kind.h"
#include "lib/base/cleanup.h"

struct file_stream {
        struct stream stream;
        const struct task_grant *task;
        uint64_t position;
};

static ssize_t file_read_at(struct stream *stream, uint8_t *buf, size_t size, uint64_t position,
                            char error[static READ_ERROR_MAX]) {
        uint64_t end = stream->size;
        ssize_t n;

        if (end != TASK_UNKNOWN) {
                if (position >= end)
                        return 0;
                size = (size_t)MIN((uint64_t)size, end - position);
        }
        do
                n = pread(stream->fd, buf, size, (off_t)position);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return read_error(error, -errno, stream->path, "cannot be read at byte %" PRIu64 ": %s",
                                  position, strerror(errno));
        if (n == 0 && end != TASK_UNKNOWN && size > 0)
                return read_error(error, -ESTALE, stream->path,
                                  "became shorter while it was read: nothing at byte %" PRIu64 " of %" PRIu64,
                                  position, end);
        return n;
}

static int file_seek(struct stream *stream, uint64_t position, char error[static READ_ERROR_MAX]) {
        struct file_stream *f = (struct file_stream *)stream;

        f->position = position;
        return 0;
}

/* NULL, or what is different from the scan. */
static const char *difference(const struct task_grant *t, const struct stat *st) {
        uint64_t mtime = (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;

        if (t->inode != 0 && st->st_ino != t->inode)
                return "was replaced by another file";
        if (t->size != TASK_UNKNOWN && (uint64_t)st->st_size < t->size)
                return "became shorter";
        if (t->size != TASK_UNKNOWN && (uint64_t)st->st_size > t->size)
                return "became longer";
        if (t->mtime_nsec != 0 && mtime != t->mtime_nsec)
                return "changed";
        return NULL;
}

static int file_unchanged(const struct file_stream *f, char error[static READ_ERROR_MAX]) {
        const char *path = f->stream.path, *different;
        struct stat st;

        if (fstat(f->stream.fd, &st) < 0)
                return read_error(error, -errno, path, "cannot be examined any more: %s", strerror(errno));
        different = difference(f->task, &st);
        return different ? read_error(error, -ESTALE, path, "%s while it was read", different) : 0;
}

static int file_check(struct stream *stream, char error[static READ_ERROR_MAX]) {
        const struct file_stream *f = (struct file_stream *)stream;
        struct stat st;
        int r = file_unchanged(f, error);

        if (r < 0)
                return r;
        /* What was read is the old file, whole; but whoever put another one in its place meant that one. A
         * file that has only been removed is as good as it was. */
        if (f->task->inode != 0 && stat(stream->path, &st) >= 0 && st.st_ino != f->task->inode)
                return read_error(error, -ESTALE, stream->path,
                                  "was replaced by another file while it was read");
        return 0;
}

/* Behind each read, since a file that is cut short and made longer again reads as zeros. */
static ssize_t file_read(struct stream *stream, uint8_t *buf, size_t size,
                         char error[static READ_ERROR_MAX]) {
        struct file_stream *f = (struct file_stream *)stream;
        ssize_t n = file_read_at(stream, buf, size, f->position, error);

        if (n > 0) {
                int r = file_unchanged(f, error);

                if (r < 0)
                        return r;
                f->position += (uint64_t)n;
        }
        return n;
}

static void file_close(struct stream *stream) {
        close_fd(stream->fd);
        free(stream);
}

static const struct stream_ops file_ops = {
        .read = file_read,
        .read_at = file_read_at,
        .seek = file_seek,
        .check = file_check,
        .close = file_close,
};

int stream_open_file(const struct reader_request *q, struct stream **ret, char error[static READ_ERROR_MAX]) {
        const char *path = q->task->path;
        _cleanup_close_ int fd = -EBADF;
        const char *different;
        struct file_stream *f;
        struct stat st;

        if (strncmp(path, "file://", 7) == 0)
                path += 7;
        /* O_NONBLOCK: a FIFO of that name must not hold us up. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
                return read_error(error, -errno, path, "%s", strerror(errno));
        if (!S_ISREG(st.st_mode))
                return read_error(error, -EINVAL, path, "is not a regular file");
        different = difference(q->task, &st);
        if (different)
                return read_error(error, -ESTALE, path, "%s since it was scanned", different);

        f = malloc(sizeof *f);
        if (!f)
                return read_error(error, -ENOMEM, path, "%s", strerror(ENOMEM));
        *f = (struct file_stream){
                .stream = {
                        .ops = &file_ops,
                        .path = path,
                        .cancel = q->cancel,
                        .size = q->task->size != TASK_UNKNOWN ? q->task->size : (uint64_t)st.st_size,
                        .fd = TAKE_FD(fd),
                },
                .task = q->task,
        };
        *ret = &f->stream;
        return 0;
}
