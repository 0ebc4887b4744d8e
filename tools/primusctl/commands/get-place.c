/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: every step of a path is opened by its own name below the one before, and none of them is a link;
 * so nothing outside of the directory is made, opened or replaced, whatever a host says and whoever changes
 * the directory meanwhile. */
#include "tools/primusctl/commands/get-place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/record/record.h"
#include "lib/wire/artifacts.h"

#define NSEC_PER_SEC UINT64_C(1000000000)

int place_open(struct place *p, const char *directory) {
        int r = make_directories(directory, 0777);

        if (r < 0 && r != -EEXIST)
                return r;
        p->top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return p->top < 0 ? -errno : 0;
}

void place_done(struct place *p) {
        place_abandon(p);
        p->top = close_fd(p->top);
}

/* The directory that path is in, made where that is wanted, and what is behind the last '/'. */
static int open_parent(const struct place *p, const char *path, bool make, const char **ret_name) {
        _cleanup_close_ int dir = fcntl(p->top, F_DUPFD_CLOEXEC, 3);
        char name[256];

        if (!artifact_path_valid(path, strlen(path)))
                return -EBADMSG;
        for (const char *slash; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
                int next;

                snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
                if (make && mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
                        return -errno;
                next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0)
                        return errno == ENOTDIR ? -ELOOP : -errno;
                close_fd(dir);
                dir = next;
        }
        if (dir < 0)
                return -errno;
        *ret_name = path;
        return TAKE_FD(dir);
}

int place_look(struct place *p, const char *path, uint64_t size, uint64_t mtime_nsec) {
        _cleanup_close_ int dir = -EBADF;
        const char *name;
        struct stat st;

        dir = open_parent(p, path, false, &name);
        if (dir < 0)
                return dir == -ENOENT ? PLACE_MISSING : dir;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? PLACE_MISSING : -errno;
        return S_ISREG(st.st_mode) && (uint64_t)st.st_size == size &&
                               (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec ==
                                       mtime_nsec
                       ? PLACE_EQUAL
                       : PLACE_DIFFERS;
}

int place_directory(struct place *p, const char *path) {
        _cleanup_close_ int dir = -EBADF;
        const char *name;
        struct stat st;

        dir = open_parent(p, path, true, &name);
        if (dir < 0)
                return dir;
        if (mkdirat(dir, name, 0777) >= 0)
                return 0;
        if (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int place_link(struct place *p, const char *path, const char *target) {
        _cleanup_close_ int dir = -EBADF;
        char there[ARTIFACT_PATH_MAX + 1];
        const char *name;
        ssize_t n;

        if (!artifact_link_inside(path, target))
                return -EBADMSG;
        dir = open_parent(p, path, true, &name);
        if (dir < 0)
                return dir;
        if (symlinkat(target, dir, name) >= 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        n = readlinkat(dir, name, there, sizeof(there));
        return n == (ssize_t)strlen(target) && memcmp(there, target, (size_t)n) == 0 ? 0 : -EEXIST;
}

int place_begin(struct place *p, const char *path) {
        uint64_t random = 0;
        const char *name;
        int dir;

        place_abandon(p);
        dir = open_parent(p, path, true, &name);
        if (dir < 0)
                return dir;
        (void)!getrandom(&random, sizeof(random), 0);
        snprintf(p->name, sizeof(p->name), "%s", name);
        snprintf(p->temporary, sizeof(p->temporary), ".primus-get.%016" PRIx64, random);
        p->parent = dir;
        p->file = openat(dir, p->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (p->file < 0) {
                int r = -errno;

                p->parent = close_fd(p->parent);
                return r;
        }
        p->written = 0;
        p->sum = 0;
        p->hole = false;
        return 0;
}

static bool is_zero(const uint8_t *data, size_t size) {
        return size >= 4096 && data[0] == 0 && memcmp(data, data + 1, size - 1) == 0;
}

int place_data(struct place *p, const void *data, size_t size) {
        if (p->file < 0)
                return -EBADMSG;
        p->sum = crc32c(p->sum, data, size);
        p->written += size;
        p->hole = is_zero(data, size);
        if (p->hole) /* what was sparse stays so */
                return lseek(p->file, (off_t)size, SEEK_CUR) < 0 ? -errno : 0;
        return write_all(p->file, data, size);
}

int place_finish(struct place *p, uint32_t mode, uint64_t mtime_nsec) {
        const struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
                                           { .tv_sec = (time_t)(mtime_nsec / NSEC_PER_SEC),
                                             .tv_nsec = (long)(mtime_nsec % NSEC_PER_SEC) } };
        const mode_t mask = umask(022);
        struct stat st;
        int r = 0;

        (void)umask(mask);
        if (p->file < 0)
                return -EBADMSG;
        /* No more rights than a new file here has, and never set-user-ID. */
        if ((p->hole && ftruncate(p->file, (off_t)p->written) < 0) ||
            fchmod(p->file, ((mode & 0777) | 0600) & ~mask) < 0 || futimens(p->file, times) < 0)
                r = -errno;
        if (r >= 0) { /* a network's file system or a quota says here what was not written */
                int copy = fcntl(p->file, F_DUPFD_CLOEXEC, 3);

                if (copy < 0 || close(copy) < 0)
                        r = -errno;
        }
        if (r >= 0 && p->force) {
                if (fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISDIR(st.st_mode))
                        r = -EISDIR;
                else if (renameat(p->parent, p->temporary, p->parent, p->name) < 0)
                        r = -errno;
        } else if (r >= 0 && linkat(p->parent, p->temporary, p->parent, p->name, 0) < 0) {
                r = -errno; /* EEXIST; a file system without links: */
                if (r != -EEXIST &&
                    renameat2(p->parent, p->temporary, p->parent, p->name, RENAME_NOREPLACE) >= 0)
                        r = 0;
        }
        place_abandon(p);
        return r;
}

void place_abandon(struct place *p) {
        if (p->file >= 0)
                (void)unlinkat(p->parent, p->temporary, 0); /* gone already where it has its name */
        p->file = close_fd(p->file);
        p->parent = close_fd(p->parent);
}
