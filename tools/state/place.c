/* SPDX-License-Identifier: Apache-2.0 */
/* The staging directory and the rename. Invariant: whatever is in STATE/.restore was never the state; the
 * database that is replaced has a second name before it loses the first. */
#include "tools/state/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "tools/state/say.h"

#define DATABASE "primus.db"
#define DEPTH 16

static int before_name(const char *state, uint64_t real, char **ret) {
        time_t t = (time_t)(real / USEC_PER_SEC);
        char stamp[32];
        struct tm tm;

        if (!gmtime_r(&t, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm) == 0 ||
            asprintf(ret, "%s/before-restore-%s", state, stamp) < 0) {
                *ret = NULL;
                return say(-ENOMEM, "out of memory");
        }
        return 0;
}

static int sync_path(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int place_begin(const char *state, uint64_t now_real, struct place *ret) {
        struct place p = { .staging_fd = -EBADF };
        int r;

        p.state = strdup(state);
        if (!p.state || asprintf(&p.staging, "%s/.restore", state) < 0) {
                free(p.state);
                return say(-ENOMEM, "out of memory");
        }
        r = before_name(state, now_real, &p.before);
        if (r >= 0 && (r = remove_tree(p.staging)) < 0)
                say(r, "cannot remove %s: %s", p.staging, strerror(-r));
        if (r >= 0 && mkdir(p.staging, 0700) < 0)
                r = say(-errno, "cannot make %s: %s", p.staging, strerror(errno));
        if (r >= 0) {
                p.staging_fd = open(p.staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (p.staging_fd < 0)
                        r = say(-errno, "cannot open %s: %s", p.staging, strerror(errno));
        }
        if (r < 0) {
                free(p.state);
                free(p.staging);
                free(p.before);
                return r;
        }
        *ret = p;
        return 0;
}

/* ---- to that owner, and to disk ---- */

static int finish_below(int parent, const char *name, uid_t uid, gid_t gid, int depth) {
        _cleanup_close_ int fd = openat(parent, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct dirent *e;
        struct stat st;
        DIR *d;
        int r = 0;

        if (fd < 0 || fstat(fd, &st) < 0 || fchown(fd, uid, gid) < 0 ||
            fchmod(fd, S_ISDIR(st.st_mode) ? 0700 : 0600) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode)) {
                int copy = depth > DEPTH ? -1 : dup(fd);
                d = copy < 0 ? NULL : fdopendir(copy);
                if (!d)
                        return depth > DEPTH ? -ELOOP : -errno;
                while (r >= 0 && (e = readdir(d)))
                        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                                r = finish_below(fd, e->d_name, uid, gid, depth + 1);
                closedir(d);
        }
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        return r;
}

static int finish(struct place *p, const char *name, uid_t uid, gid_t gid) {
        if (faccessat(p->staging_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        return finish_below(p->staging_fd, name, uid, gid, 0);
}

int place_finish(struct place *p, uid_t uid, gid_t gid) {
        int r = finish(p, DATABASE, uid, gid);

        if (r >= 0)
                r = finish(p, "bundles", uid, gid);
        if (r >= 0 && fsync(p->staging_fd) < 0)
                r = -errno;
        return r < 0 ? say(r, "cannot finish %s: %s", p->staging, strerror(-r)) : 0;
}

/* ---- into its place ---- */

/* Moves what is not there yet; bundles of the same name have the same contents. */
static int move_below(const char *from, const char *to, int depth) {
        struct dirent *e;
        DIR *d;
        int r = 0;

        if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) >= 0 || errno == ENOENT)
                return 0;
        if (errno != EEXIST)
                return -errno;
        d = opendir(from);
        if (!d)
                return errno == ENOTDIR ? 0 : -errno;
        while (r >= 0 && (e = readdir(d))) {
                _cleanup_free_ char *a = NULL, *b = NULL;

                if (e->d_name[0] == '.')
                        continue;
                if (asprintf(&a, "%s/%s", from, e->d_name) < 0 || asprintf(&b, "%s/%s", to, e->d_name) < 0)
                        r = -ENOMEM;
                else
                        r = depth > DEPTH ? -ELOOP : move_below(a, b, depth + 1);
        }
        closedir(d);
        return r >= 0 ? sync_path(to) : r;
}

static int move_bundles(struct place *p) {
        _cleanup_free_ char *from = NULL, *to = NULL;
        int r;

        if (asprintf(&from, "%s/bundles", p->staging) < 0 || asprintf(&to, "%s/bundles", p->state) < 0)
                return say(-ENOMEM, "out of memory");
        r = move_below(from, to, 0);
        return r < 0 ? say(r, "cannot put bundles into %s: %s", to, strerror(-r)) : 0;
}

/* A second name for the database that is there. A log beside it belongs to it: there is one only where the
 * database is too damaged to be opened (else whoever looked into it has moved it there), and it must not be
 * taken for the new one's. */
static int keep_before(struct place *p, const char *database) {
        _cleanup_free_ char *kept = NULL, *log = NULL, *kept_log = NULL;
        struct stat st;
        int r = 0;

        if (lstat(database, &st) < 0 || st.st_size == 0) {
                free(TAKE_PTR(p->before));
                return 0;
        }
        if (asprintf(&kept, "%s/" DATABASE, p->before) < 0 || asprintf(&log, "%s-wal", database) < 0 ||
            asprintf(&kept_log, "%s-wal", kept) < 0)
                return say(-ENOMEM, "out of memory");
        if (mkdir(p->before, 0700) < 0)
                return say(-errno, "cannot make %s: %s", p->before, strerror(errno));
        if (chown(p->before, st.st_uid, st.st_gid) < 0 || link(database, kept) < 0 ||
            (rename(log, kept_log) < 0 && errno != ENOENT))
                r = -errno;
        if (r >= 0)
                r = sync_path(p->before);
        if (r < 0) {
                (void)remove_tree(p->before);
                return say(r, "cannot keep the state before in %s: %s", p->before, strerror(-r));
        }
        return 0;
}

int place_swap(struct place *p) {
        _cleanup_free_ char *database = NULL, *fresh = NULL;
        int r = move_bundles(p);

        if (r < 0)
                return r;
        if (asprintf(&database, "%s/" DATABASE, p->state) < 0 ||
            asprintf(&fresh, "%s/" DATABASE, p->staging) < 0)
                return say(-ENOMEM, "out of memory");
        r = keep_before(p, database);
        if (r >= 0 && (r = sync_path(p->state)) < 0)
                say(r, "cannot write to %s: %s", p->state, strerror(-r));
        if (r < 0)
                return r;
        if (rename(fresh, database) < 0) {
                r = say(-errno, "cannot replace %s: %s", database, strerror(errno));
                if (p->before)
                        (void)remove_tree(p->before);
                return r;
        }
        return (r = sync_path(p->state)) < 0 ? say(r, "cannot write to %s: %s", p->state, strerror(-r)) : 0;
}

void place_done(struct place *p) {
        p->staging_fd = close_fd(p->staging_fd);
        if (p->staging)
                (void)remove_tree(p->staging);
        free(p->state);
        free(p->staging);
        free(p->before);
        *p = (struct place){ .staging_fd = -EBADF };
}
