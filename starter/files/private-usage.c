/* SPDX-License-Identifier: Apache-2.0 */
/* Use of the private file system. Invariant: looking at what a user made takes a bounded time, and leaves it.
 */
#include "starter/files/private-usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/unit/files.h"

#define DEPTH_MAX 8u /* deeper than anything of ours: whoever hides files there has too many */
#define BLOCK 512u
#define PROGRESS_BLOCKS 2048 /* a mebibyte of it is on purpose */

/* Takes fd. */
static void walk_tree(int fd, unsigned depth, struct private_usage *u) {
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
                /* That one is cut whenever it is read, which ends nobody who left it readable. */
                if (depth == 0 && strcmp(e->d_name, "progress") == 0 && S_ISREG(st.st_mode) &&
                    st.st_nlink == 1 && st.st_blocks < PROGRESS_BLOCKS)
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
                        walk_tree(below, depth + 1, u);
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
        walk_tree(fd, 0, &u);
        *ret = u;
        return 0;
}
