/* SPDX-License-Identifier: Apache-2.0 */
/* Files as sources of tasks. Invariant: only regular files are read. */
#include "executor/source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"

#define ALIGN_CHUNK (64u << 10)

static bool as_scanned(const struct task *t, const struct stat *st) {
        uint64_t mtime = (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;

        return (uint64_t)st->st_size == t->size && (t->inode == 0 || st->st_ino == t->inode) &&
               (t->mtime_nsec == 0 || mtime == t->mtime_nsec);
}

const char *source_check(const struct task *t) {
        struct stat st;

        if (t->fd < 0)
                return NULL; /* was compared when its last byte was copied */
        if (fstat(t->fd, &st) < 0)
                return "cannot be examined any more";
        return as_scanned(t, &st) ? NULL : "changed while it was read";
}

int source_line_ends(const struct task *t, uint64_t offset) {
        char last;
        ssize_t l;

        do
                l = pread(t->fd, &last, 1, (off_t)offset - 1);
        while (l < 0 && errno == EINTR);
        return l < 0 ? -errno : l == 1 && last == '\n';
}

/* The offset behind the last newline before offset; 0 when there is none. */
static int line_start(int fd, uint64_t offset, uint64_t *ret) {
        _cleanup_free_ char *buf = malloc(ALIGN_CHUNK);

        if (!buf)
                return -ENOMEM;
        while (offset > 0) {
                size_t n = (size_t)MIN(offset, (uint64_t)ALIGN_CHUNK);
                const char *newline;
                ssize_t l = pread(fd, buf, n, (off_t)(offset - n));

                if (l < 0 && errno == EINTR)
                        continue;
                if (l < 0)
                        return -errno;
                if ((size_t)l < n)
                        return -ESTALE; /* it has become shorter */
                newline = memrchr(buf, '\n', n);
                if (newline) {
                        *ret = offset - n + (uint64_t)(newline - buf) + 1;
                        return 0;
                }
                offset -= n;
        }
        *ret = 0;
        return 0;
}

int source_open(struct task *t, uint64_t *ret_start, char error[static SOURCE_ERROR_MAX]) {
        _cleanup_close_ int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0) {
                snprintf(error, SOURCE_ERROR_MAX, "%.400s: %s", t->path, strerror(errno));
                return -1;
        }
        if (!S_ISREG(st.st_mode)) {
                snprintf(error, SOURCE_ERROR_MAX, "%.400s: is not a regular file", t->path);
                return -1;
        }
        if (!as_scanned(t, &st)) {
                snprintf(error, SOURCE_ERROR_MAX, "%.400s: changed since it was scanned", t->path);
                return -1;
        }
        r = line_start(fd, t->granted, ret_start);
        if (r < 0) {
                snprintf(error, SOURCE_ERROR_MAX, "%.400s: %s", t->path, strerror(-r));
                return -1;
        }
        t->fd = TAKE_FD(fd);
        return 0;
}
