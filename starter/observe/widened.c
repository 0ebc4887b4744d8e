/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes that were made larger. Invariant: each that may still be open has an entry, of at least its size. An
 * entry holds the pipe's inode by a path alone (O_PATH), so that its number is no other pipe's meanwhile, and
 * is neither reader nor writer of it: who closes the last of those ends it. Whether that has happened is
 * found out when there is no room. */
#include "starter/observe/widened.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define SWEEP_USEC USEC_PER_SEC /* a look at all of them takes some milliseconds */

struct entry {
        int path; /* O_PATH */
        ino_t ino;
        uint32_t size;
};

struct widened {
        uint32_t fresh; /* what a new pipe holds */
        unsigned max, n;
        uint64_t bytes_max, bytes;
        uint64_t swept;
        struct entry *entries;
};

int widened_new(unsigned max, uint64_t bytes_max, struct widened **ret) {
        struct widened *w = calloc(1, sizeof(*w));
        int fds[2], size;

        if (!w)
                return -ENOMEM;
        if (pipe2(fds, O_CLOEXEC) < 0) {
                free(w);
                return -errno;
        }
        size = fcntl(fds[1], F_GETPIPE_SZ);
        close_fd(fds[0]);
        close_fd(fds[1]);
        if (size < 0) {
                free(w);
                return -errno;
        }
        w->fresh = (uint32_t)size;
        w->max = max;
        w->bytes_max = bytes_max;
        *ret = w;
        return 0;
}

void widened_free(struct widened *w) {
        if (!w)
                return;
        while (w->n > 0)
                close_fd(w->entries[--w->n].path);
        free(w->entries);
        free(w);
}

static int reopen(int fd, int flags) {
        char path[sizeof("/proc/self/fd/") + 16];
        int r;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = open(path, flags | O_CLOEXEC | O_NOCTTY);
        return r < 0 ? -errno : r;
}

/* Where the last who had the pipe open has closed it, the kernel makes a new one for whoever opens it, which
 * is as small as they all are at first, and none in the list is. Otherwise it has one reader more for a
 * moment.
 */
static bool is_open(const struct entry *e) {
        _cleanup_close_ int fd = reopen(e->path, O_RDONLY | O_NONBLOCK);
        int size = fd < 0 ? -1 : fcntl(fd, F_GETPIPE_SZ);

        return size < 0 || (uint32_t)size >= e->size; /* not known: it counts */
}

static void sweep(struct widened *w) {
        unsigned kept = 0;

        w->bytes = 0;
        for (unsigned i = 0; i < w->n; i++) {
                struct entry e = w->entries[i];

                if (!is_open(&e)) {
                        close_fd(e.path);
                        continue;
                }
                w->bytes += e.size;
                w->entries[kept++] = e;
        }
        w->n = kept;
}

static struct entry *find_entry(struct widened *w, ino_t ino) {
        for (unsigned i = 0; i < w->n; i++)
                if (w->entries[i].ino == ino)
                        return w->entries + i;
        return NULL;
}

static bool fits(const struct widened *w, const struct entry *e, uint32_t size) {
        return (e || w->n < w->max) && w->bytes - (e ? e->size : 0) + size <= w->bytes_max;
}

/* Not counted yet. */
static int prepare_entry(struct widened *w, int fd, ino_t ino, struct entry **ret) {
        struct entry *more = reallocarray(w->entries, w->n + 1, sizeof(*more));
        int path;

        if (!more)
                return -ENOMEM;
        w->entries = more;
        path = reopen(fd, O_PATH);
        if (path < 0)
                return path;
        *ret = w->entries + w->n;
        **ret = (struct entry){ .path = path, .ino = ino };
        return 0;
}

static int set_size(struct widened *w, int fd, struct entry *e, uint32_t size) {
        int r = fcntl(fd, F_SETPIPE_SZ, (int)size);

        if (r < 0 || (r = fcntl(fd, F_GETPIPE_SZ)) < 0)
                return -errno;
        w->bytes += (uint32_t)r - e->size;
        e->size = (uint32_t)r;
        return r;
}

int widened_take(struct widened *w, int fd, uint32_t size, uint64_t now, uint32_t *ret) {
        struct entry *e;
        struct statfs fs;
        struct stat st;
        int r;

        /* A pipe of nobody's file system: one that the caller has made. */
        if (fstatfs(fd, &fs) < 0 || fs.f_type != PIPEFS_MAGIC || fstat(fd, &st) < 0)
                return -EMEDIUMTYPE;
        r = fcntl(fd, F_GETPIPE_SZ);
        if (r < 0)
                return -errno;
        if ((uint32_t)r >= size) {
                *ret = (uint32_t)r;
                return 0;
        }
        size = MAX(size, 2 * w->fresh); /* see is_open() */
        e = find_entry(w, st.st_ino);
        if (!fits(w, e, size) && now >= usec_add(w->swept, SWEEP_USEC)) {
                w->swept = now;
                sweep(w);
                e = find_entry(w, st.st_ino);
        }
        if (!fits(w, e, size))
                return -EDQUOT;
        if (e)
                r = set_size(w, fd, e, size);
        else if ((r = prepare_entry(w, fd, st.st_ino, &e)) >= 0) {
                r = set_size(w, fd, e, size);
                if (r >= 0)
                        w->n++;
                else
                        close_fd(e->path);
        }
        if (r < 0)
                return r;
        *ret = (uint32_t)r;
        return 0;
}
