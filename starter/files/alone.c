/* SPDX-License-Identifier: Apache-2.0 */
/* Names of those that have to end with the link. */
#include "starter/files/alone.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"

#define TRANSIENT_DIR "/run/systemd/transient"

static bool there(const char *root, const char *directory, const char *name) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (asprintf(&path, "%s%s/%s", root, directory, name) < 0) {
                path = NULL;
                return true;
        }
        return lstat(path, &st) >= 0 || errno != ENOENT;
}

int alone_mark(const char *root, const char *unit) {
        _cleanup_free_ char *directory = NULL, *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!there(root, PRIVATE_DIR, unit))
                return -ENOENT;
        if (asprintf(&directory, "%s" ALONE_DIR, root) < 0) {
                directory = NULL;
                return -ENOMEM;
        }
        if (asprintf(&path, "%s/%s", directory, unit) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = make_directories(directory, 0755);
        if (r < 0)
                return r;
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
        return fd < 0 ? -errno : 0;
}

void alone_clear(const char *root, const char *unit) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s" ALONE_DIR "/%s", root, unit) < 0)
                path = NULL;
        if (path)
                (void)unlink(path);
}

int alone_visit(const char *root, int (*f)(const char *unit, void *userdata), void *userdata) {
        _cleanup_free_ char *path = NULL;
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *entry;
        int n = 0, r = 0;

        if (asprintf(&path, "%s" ALONE_DIR, root) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        dir = opendir(path);
        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        while (r >= 0 && n < INT_MAX && (entry = readdir(dir))) {
                const char *name = entry->d_name;
                const bool ours = executor_unit_name_valid(name);

                if (*name == '.')
                        continue;
                /* systemd starts us for whatever there is, and gives up where that is too often. */
                if ((!ours || !there(root, PRIVATE_DIR, name)) && unlinkat(dirfd(dir), name, 0) >= 0)
                        continue;
                n++;
                if (ours && there(root, TRANSIENT_DIR, name))
                        r = f(name, userdata);
        }
        return r < 0 ? r : n;
}
