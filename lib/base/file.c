/* SPDX-License-Identifier: Apache-2.0 */
/* Whole-file input and output. Invariant: a reader sees the old content or the new, never a part. */
#include "lib/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"

int read_fd(int fd, size_t max, char **ret, size_t *ret_size) {
        _cleanup_free_ char *buf = NULL;
        size_t n = 0, allocated = 0;

        for (;;) {
                ssize_t l;

                /* One byte more than allowed is read, so that "too large" is seen also where st_size lies
                 * (/proc). */
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
                n += (size_t)l;
                if (n > max)
                        return -EFBIG;
        }
        buf[n] = 0;
        *ret = TAKE_PTR(buf);
        if (ret_size)
                *ret_size = n;
        return 0;
}

int read_file_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        return fd < 0 ? -errno : read_fd(fd, max, ret, ret_size);
}

int read_file(const char *path, size_t max, char **ret, size_t *ret_size) {
        return read_file_at(AT_FDCWD, path, max, ret, ret_size);
}

int read_file_below(const char *root, const char *path, size_t max, char **ret) {
        _cleanup_free_ char *full = NULL;

        if (asprintf(&full, "%s%s", root, path) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        return read_file(full, max, ret, NULL);
}

int write_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t l = write(fd, p, size);
                if (l < 0 && errno == EAGAIN) {
                        struct pollfd pfd = { .fd = fd, .events = POLLOUT };
                        (void)poll(&pfd, 1, -1);
                        continue;
                }
                if (l < 0 && errno == EINTR)
                        continue;
                if (l < 0)
                        return -errno;
                p += l;
                size -= (size_t)l;
        }
        return 0;
}

int sync_directory_of(const char *path) {
        _cleanup_free_ char *directory = strdup(path);
        char *slash = directory ? strrchr(directory, '/') : NULL;
        _cleanup_close_ int fd = -EBADF;

        if (!directory)
                return -ENOMEM;
        if (slash)
                slash[slash == directory] = 0;
        fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
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
                (void)unlink(temporary);
        else if (durable) /* the rename itself is only once the directory is */
                return sync_directory_of(path);
        return r;
}

int make_directories(const char *path, mode_t mode) {
        _cleanup_free_ char *copy = strdup(path);
        struct stat st;

        if (!copy)
                return -ENOMEM;
        if (!*copy)
                return -ENOENT;
        for (char *p = copy + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = 0;
                if (mkdir(copy, mode) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        if (mkdir(copy, mode) >= 0)
                return 0;
        if (errno != EEXIST || stat(copy, &st) < 0)
                return -errno;
        return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* How deep remove_below() goes before it moves what lies deeper up to the top: bounds descriptors and stack.
 */
#define REMOVE_DEPTH_MAX 64
#define MOVES_MAX 1000

struct removal {
        int top;        /* directory that deeper ones are moved to */
        dev_t device;   /* other file systems are left alone */
        unsigned moved; /* names given so far */
        bool again;     /* the top got new entries */
        int error;      /* the first one */
};

static void remove_entry(struct removal *t, int dir_fd, const char *name, unsigned depth);

/* Empties a directory; takes the descriptor. */
static void remove_below(struct removal *t, int fd, unsigned depth) {
        DIR *dir = fdopendir(fd);
        struct dirent *entry;

        if (!dir) {
                close_fd(fd);
                t->error = t->error ?: -ENOMEM;
                return;
        }
        while ((entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        remove_entry(t, dirfd(dir), entry->d_name, depth);
        (void)closedir(dir);
}

static void remove_entry(struct removal *t, int dir_fd, const char *name, unsigned depth) {
        char moved[32];
        struct stat st;
        int fd;

        if (unlinkat(dir_fd, name, 0) >= 0 || errno == ENOENT)
                return;
        if (errno != EISDIR && errno != EPERM) {
                t->error = t->error ?: -errno;
                return;
        }
        if (depth >= REMOVE_DEPTH_MAX) {
                /* The tree may have such names of its own: those are passed over, some of them. */
                for (unsigned i = 0; i < MOVES_MAX; i++) {
                        snprintf(moved, sizeof(moved), ".deep-%u", t->moved++);
                        if (renameat(dir_fd, name, t->top, moved) >= 0) {
                                t->again = true;
                                return;
                        }
                        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
                                break;
                }
                t->error = t->error ?: -errno;
                return;
        }
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0) {
                t->error = t->error ?: -errno;
                close_fd(fd);
                return;
        }
        if (st.st_dev != t->device) {
                t->error = t->error ?: -EXDEV;
                close_fd(fd);
                return;
        }
        remove_below(t, fd, depth + 1);
        if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                t->error = t->error ?: -errno;
}

int remove_tree(const char *path) {
        struct removal t = { .top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };
        struct stat st;

        if (t.top < 0) {
                if (errno == ENOENT || ((errno == ENOTDIR || errno == ELOOP) && unlink(path) >= 0))
                        return 0;
                return -errno;
        }
        if (fstat(t.top, &st) < 0)
                t.error = -errno;
        t.device = st.st_dev;
        do {
                /* A descriptor of its own: readdir() moves the offset that duplicates share. */
                int fd = openat(t.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                t.again = false;
                if (fd < 0)
                        t.error = t.error ?: -errno;
                else
                        remove_below(&t, fd, 0);
        } while (t.again && t.error == 0);
        close_fd(t.top);
        if (t.error == 0 && rmdir(path) < 0 && errno != ENOENT)
                t.error = -errno;
        return t.error;
}
