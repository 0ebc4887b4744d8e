/* SPDX-License-Identifier: Apache-2.0 */
/* Whole-file input and output. Invariant: a reader sees the old content or the new, never a part. */
#include "lib/base/file.h"

#include <fcntl.h>
#include <fts.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"

int read_file_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        _cleanup_free_ char *buf = NULL;
        size_t n = 0, allocated = 0;

        if (fd < 0)
                return -errno;
        for (;;) {
                ssize_t l;

                /* One byte more than allowed is read, so that "too large" is seen also where st_size lies (/proc). */
                if (n + 1 >= allocated) {
                        char *bigger;
                        allocated = allocated ? allocated * 2 : 4096;
                        bigger = realloc(buf, allocated);
                        if (!bigger)
                                return -ENOMEM;
                        buf = bigger;
                }
                l = read(fd, buf + n, allocated - n - 1);
                if (l < 0 && errno == EINTR)
                        continue;
                if (l < 0)
                        return -errno;
                if (l == 0)
                        break;
                n += (size_t) l;
                if (n > max)
                        return -EFBIG;
        }
        buf[n] = 0;
        *ret = TAKE_PTR(buf);
        if (ret_size)
                *ret_size = n;
        return 0;
}

int read_file(const char *path, size_t max, char **ret, size_t *ret_size) {
        return read_file_at(AT_FDCWD, path, max, ret, ret_size);
}

int write_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t l = write(fd, p, size);
                if (l < 0 && errno == EAGAIN) {
                        struct pollfd pfd = { .fd = fd, .events = POLLOUT };
                        (void) poll(&pfd, 1, -1);
                        continue;
                }
                if (l < 0 && errno == EINTR)
                        continue;
                if (l < 0)
                        return -errno;
                p += l;
                size -= (size_t) l;
        }
        return 0;
}

int write_file_atomic(const char *path, const void *data, size_t size, mode_t mode, bool durable) {
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
                return -ENOMEM;
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r >= 0 && fchmod(fd, mode) < 0)
                r = -errno;
        if (r >= 0 && durable && fsync(fd) < 0)
                r = -errno;
        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temporary);
        else if (durable) {
                /* The rename itself is durable only once the directory is. */
                char *slash = strrchr(temporary, '/');
                if (slash)
                        slash[slash == temporary] = 0;
                _cleanup_close_ int dir = open(slash ? temporary : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (dir < 0 || fsync(dir) < 0)
                        return -errno;
        }
        return r;
}

int make_directories(const char *path, mode_t mode) {
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *p = copy + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = 0;
                if (mkdir(copy, mode) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
                return -errno;
        return 0;
}

int remove_tree(const char *path) {
        char *paths[] = { (char *) path, NULL };
        FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
        FTSENT *entry;
        int r = 0;

        if (!fts)
                return -errno;
        while ((entry = fts_read(fts))) {
                switch (entry->fts_info) {
                case FTS_D:
                        continue; /* removed when left, FTS_DP */
                case FTS_NS:
                case FTS_DNR:
                case FTS_ERR:
                        if (entry->fts_errno != ENOENT && r == 0)
                                r = -entry->fts_errno;
                        continue;
                default:
                        if (remove(entry->fts_accpath) < 0 && errno != ENOENT && r == 0)
                                r = -errno;
                }
        }
        (void) fts_close(fts);
        return r;
}
