/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: no link is followed and nothing of a user's is opened but directories; what is removed is a
 * job's as a whole. */
#include "starter/files/artifacts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "starter/files/private.h"

#define DEPTH_MAX 80u       /* deeper than what is fetched */
#define TOO_DEEP UINT64_MAX /* nothing is hidden by going deeper: that is more than anybody may have */
#define BLOCK 512u

struct kept {
        char name[WORK_NAME_MAX];
        uid_t uid;
        struct timespec changed;
        uint64_t bytes;
        bool used;
};

struct list {
        struct kept *entries;
        size_t n;
};

/* Takes fd. A file with several names counts for each of them. */
static uint64_t measure(int fd, unsigned depth) {
        DIR *dir = fdopendir(fd);
        uint64_t bytes = 0;
        struct dirent *e;
        struct stat st;

        if (!dir) {
                (void)close_fd(fd);
                return 0;
        }
        while ((e = readdir(dir))) {
                uint64_t more;
                int below;

                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                bytes += (uint64_t)st.st_blocks * BLOCK;
                if (!S_ISDIR(st.st_mode))
                        continue;
                if (depth == DEPTH_MAX) {
                        bytes = TOO_DEEP;
                        break;
                }
                below = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (below < 0)
                        continue;
                more = measure(below, depth + 1);
                bytes = more > TOO_DEEP - bytes ? TOO_DEEP : bytes + more;
                if (bytes == TOO_DEEP)
                        break;
        }
        (void)closedir(dir);
        return bytes;
}

static bool is_named(char *const *names, const char *name) {
        for (; names && *names; names++)
                if (strcmp(*names, name) == 0)
                        return true;
        return false;
}

static int add_file(struct list *l, int dir, const char *name, char *const *keep) {
        struct kept k = { .used = is_named(keep, name) }, *more;
        struct stat st;
        uint32_t job;
        sd_id128_t uid;
        int fd;

        if (work_name_parse(name, &job, &uid) < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return 0;
        (void)work_name(job, uid, k.name);
        k.uid = st.st_uid;
        k.changed = st.st_ctim;
        k.bytes = measure(fd, 0);
        more = reallocarray(l->entries, l->n + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        l->entries = more;
        l->entries[l->n++] = k;
        return 0;
}

static int by_user_and_age(const void *a, const void *b) {
        const struct kept *x = a, *y = b;

        if (x->uid != y->uid)
                return x->uid < y->uid ? -1 : 1;
        if (x->changed.tv_sec != y->changed.tv_sec)
                return x->changed.tv_sec < y->changed.tv_sec ? -1 : 1;
        return (x->changed.tv_nsec > y->changed.tv_nsec) - (x->changed.tv_nsec < y->changed.tv_nsec);
}

/* A job that came (back) while was measured: it has a work directory, and artifacts_create() has touched what
 * it had. Not the one without the other: its user can touch that, too. */
static bool has_come(const char *root, const struct kept *k, const struct timespec *since) {
        _cleanup_free_ char *path = NULL, *work = NULL;
        struct stat st;

        if (asprintf(&path, "%s" ARTIFACTS_DIR "/%s", root, k->name) < 0)
                path = NULL;
        if (asprintf(&work, "%s" WORK_DIR "/%s", root, k->name) < 0)
                work = NULL;
        if (!path || !work)
                return true;
        return lstat(path, &st) >= 0 &&
               (st.st_ctim.tv_sec > since->tv_sec ||
                (st.st_ctim.tv_sec == since->tv_sec && st.st_ctim.tv_nsec >= since->tv_nsec)) &&
               access(work, F_OK) >= 0;
}

static int remove_one(const char *root, const struct kept *k, const struct timespec *since) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (has_come(root, k, since))
                return 0;
        r = artifacts_detach(root, k->name, &path);
        if (r < 0 || !path)
                return r;
        log_notice("Artifacts %s of uid %u are removed: that user's are more than ArtifactsMax=", k->name,
                   k->uid);
        return remove_tree(path);
}

/* Entries of one user, oldest first. */
static int trim_user(const char *root, uint64_t max, const struct kept *list, size_t n,
                     const struct timespec *since) {
        const uint64_t most = UINT64_MAX / n; /* so the sum is one */
        uint64_t bytes = 0;
        int result = 0;

        for (size_t i = 0; i < n; i++)
                bytes += MIN(list[i].bytes, most);
        for (size_t i = 0; i < n && bytes > max; i++) {
                int r;

                if (list[i].used)
                        continue;
                r = remove_one(root, list + i, since);
                if (r < 0)
                        result = r;
                bytes -= MIN(list[i].bytes, most);
        }
        return result;
}

int artifacts_trim(const char *root, uint64_t max, char *const *keep, const struct timespec *since) {
        _cleanup_free_ char *path = NULL;
        _cleanup_closedir_ DIR *dir = NULL;
        struct list l = {};
        struct dirent *e;
        int result = 0;

        if (asprintf(&path, "%s" ARTIFACTS_DIR, root) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        dir = opendir(path);
        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        while (result >= 0 && (e = readdir(dir)))
                result = add_file(&l, dirfd(dir), e->d_name, keep);
        if (l.n > 0)
                qsort(l.entries, l.n, sizeof(*l.entries), by_user_and_age);
        for (size_t i = 0, n; i < l.n && result != -ENOMEM; i += n) {
                int r;

                for (n = 1; i + n < l.n && l.entries[i + n].uid == l.entries[i].uid; n++)
                        ;
                r = trim_user(root, max, l.entries + i, n, since);
                if (r < 0)
                        result = r;
        }
        free(l.entries);
        return result;
}
