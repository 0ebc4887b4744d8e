/* SPDX-License-Identifier: Apache-2.0 */
/* Use of the private file system. Invariant: looking at what a user made takes a bounded time, and leaves it.
 */
#include "agentd/unit/private-usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "agentd/unit/private.h"
#include "lib/base/cleanup.h"

#define DEPTH_MAX 8u /* deeper than anything of ours: whoever hides files there has too many */
#define BLOCK 512u

/* Takes fd. */
static void walk(int fd, unsigned depth, struct private_usage *u) {
        DIR *dir = fdopendir(fd);
        struct dirent *e;
        struct stat st;

        if (!dir) {
                (void)close_fd(fd);
                return;
        }
        while (u->files <= PRIVATE_FILES_MAX && (e = readdir(dir))) {
                int below;
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                /* That one is cut whenever it is read, which ends nobody. */
                if (depth == 0 && strcmp(e->d_name, "progress") == 0 && S_ISREG(st.st_mode) &&
                    st.st_nlink == 1)
                        continue;
                u->files++;
                u->bytes += (uint64_t)st.st_blocks * BLOCK;
                if (!S_ISDIR(st.st_mode))
                        continue;
                if (depth == DEPTH_MAX) {
                        u->files = PRIVATE_FILES_MAX + 1;
                        break;
                }
                below = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (below >= 0)
                        walk(below, depth + 1, u);
        }
        (void)closedir(dir);
}

int private_usage_read(const char *root, const char *unit, struct private_usage *ret) {
        _cleanup_free_ char *path = NULL;
        struct private_usage u = { 0 };
        int fd;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s", root, unit) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        walk(fd, 0, &u);
        *ret = u;
        return 0;
}

int private_filling_read(const char *root, struct private_filling *ret) {
        _cleanup_free_ char *path = NULL;
        struct statvfs v;

        if (asprintf(&path, "%s" PRIVATE_DIR, root) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (statvfs(path, &v) < 0)
                return -errno;
        *ret = (struct private_filling){ .total = v.f_blocks * v.f_frsize,
                                         .used = (v.f_blocks - v.f_bfree) * v.f_frsize,
                                         .total_files = v.f_files,
                                         .used_files = v.f_files - v.f_ffree };
        return 0;
}

static bool beyond(const struct private_filling *f, unsigned quarters) {
        return f->used > f->total / 4 * quarters ||
               (f->total_files > 0 && f->used_files > f->total_files / 4 * quarters);
}

bool private_filling_high(const struct private_filling *f) {
        return beyond(f, 1);
}

/* One measure for both: of two users, files fill the table as bytes fill the memory. */
static double weight(const struct private_filling *f, const struct private_usage *u) {
        double bytes = (double)u->bytes / (double)(f->total ?: 1),
               files = f->total_files > 0 ? (double)u->files / (double)f->total_files : 0;

        return bytes > files ? bytes : files;
}

ssize_t private_usage_pick(const struct private_filling *f, const struct private_share *shares, size_t n) {
        const struct private_usage used = { .bytes = f->used,
                                            .files = f->used_files > UINT_MAX ? UINT_MAX
                                                                              : (unsigned)f->used_files };
        double most = 0, largest = -1, found_in_all = 0;
        ssize_t found = -ENOENT;
        uint32_t uid = 0;

        for (size_t i = 0; i < n; i++)
                if (shares[i].usage.bytes > PRIVATE_BYTES_MAX || shares[i].usage.files > PRIVATE_FILES_MAX)
                        return (ssize_t)i;
        if (!beyond(f, 3))
                return -ENOENT;
        for (size_t i = 0; i < n; i++)
                found_in_all += weight(f, &shares[i].usage);
        /* Most of it is in files without a name, or of nobody here: ending those who are seen would not help,
         * and is what somebody may want who does that. */
        if (found_in_all < weight(f, &used) / 2)
                return -ENODATA;
        for (size_t i = 0; i < n; i++) {
                double sum = 0;
                for (size_t k = 0; k < n; k++)
                        sum += shares[k].uid == shares[i].uid ? weight(f, &shares[k].usage) : 0;
                if (sum > most) {
                        most = sum;
                        uid = shares[i].uid;
                }
        }
        for (size_t i = 0; most > 0 && i < n; i++)
                if (shares[i].uid == uid && weight(f, &shares[i].usage) > largest) {
                        largest = weight(f, &shares[i].usage);
                        found = (ssize_t)i;
                }
        return found;
}
