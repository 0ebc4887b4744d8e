/* SPDX-License-Identifier: Apache-2.0 */
/* The staging directory and the exchange. Invariant: a directory STATE.restore with the marker in it is an
 * unfinished new state, one without is a state that was in use; so what a killed restore left can be told
 * apart. */
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

#define MARKER ".restoring"
#define DEPTH 16

static bool has_marker(const char *directory) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/" MARKER, directory) < 0) {
                path = NULL;
                return false; /* the careful answer: it is kept */
        }
        return access(path, F_OK) >= 0;
}

static int before_name(const char *state, uint64_t real, char **ret) {
        time_t t = (time_t)(real / USEC_PER_SEC);
        char stamp[32];
        struct tm tm;

        if (!gmtime_r(&t, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm) == 0 ||
            asprintf(ret, "%s.before-restore-%s", state, stamp) < 0) {
                *ret = NULL;
                return say(-ENOMEM, "out of memory");
        }
        return 0;
}

static int sync_path(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* The directory that both lie in. */
static int sync_parent(const struct place *p) {
        _cleanup_free_ char *copy = strdup(p->state);
        char *slash = copy ? strrchr(copy, '/') : NULL;

        if (!slash)
                return -ENOMEM;
        slash[slash == copy] = 0;
        return sync_path(copy);
}

static int clear_away(struct place *p, char **ret_left) {
        struct stat st;
        int r;

        if (lstat(p->staging, &st) < 0)
                return errno == ENOENT ? 0
                                       : say(-errno, "cannot look at %s: %s", p->staging, strerror(errno));
        if (has_marker(p->staging)) {
                r = remove_tree(p->staging);
                return r < 0 ? say(r, "cannot remove %s: %s", p->staging, strerror(-r)) : 0;
        }
        r = before_name(p->state, (uint64_t)st.st_ctime * USEC_PER_SEC, ret_left);
        if (r >= 0 && rename(p->staging, *ret_left) < 0)
                r = say(-errno, "cannot rename %s: %s", p->staging, strerror(errno));
        return r;
}

int place_begin(const char *state, uint64_t now_real, struct place *ret, char **ret_left) {
        struct place p = { .staging_fd = -EBADF };
        int fd, r;

        *ret_left = NULL;
        p.state = strdup(state);
        if (!p.state || asprintf(&p.staging, "%s.restore", state) < 0) {
                free(p.state);
                return say(-ENOMEM, "out of memory");
        }
        r = before_name(state, now_real, &p.before);
        if (r >= 0)
                r = clear_away(&p, ret_left);
        if (r >= 0 && mkdir(p.staging, 0700) < 0)
                r = say(-errno, "cannot make %s: %s", p.staging, strerror(errno));
        if (r >= 0) {
                p.staging_fd = open(p.staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                fd = p.staging_fd < 0
                             ? -1
                             : openat(p.staging_fd, MARKER, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                if (fd < 0) {
                        r = say(-errno, "cannot write to %s: %s", p.staging, strerror(errno));
                        (void)rmdir(p.staging);
                } else
                        (void)close(fd);
        }
        if (r < 0) {
                close_fd(p.staging_fd);
                free(p.state);
                free(p.staging);
                free(p.before);
                free(*ret_left);
                *ret_left = NULL;
                return r;
        }
        *ret = p;
        return 0;
}

/* ---- to that owner, and to disk
 * -------------------------------------------------------------------------------- */

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

int place_finish(struct place *p, uid_t uid, gid_t gid) {
        int r = finish_below(AT_FDCWD, p->staging, uid, gid, 0);

        return r < 0 ? say(r, "cannot finish %s: %s", p->staging, strerror(-r)) : 0;
}

/* ---- what is taken over from the state before
 * ------------------------------------------------------------------ */

static int link_below(const char *from, const char *to, int depth) {
        struct dirent *e;
        DIR *d = opendir(from);
        int r = 0;

        if (!d)
                return errno == ENOENT ? 0 : -errno;
        if (mkdir(to, 0700) < 0)
                r = -errno;
        while (r >= 0 && (e = readdir(d))) {
                _cleanup_free_ char *a = NULL, *b = NULL;
                struct stat st;

                if (e->d_name[0] == '.')
                        continue;
                if (asprintf(&a, "%s/%s", from, e->d_name) < 0 || asprintf(&b, "%s/%s", to, e->d_name) < 0)
                        r = -ENOMEM;
                else if (lstat(a, &st) < 0)
                        r = -errno;
                else if (S_ISDIR(st.st_mode))
                        r = depth > DEPTH ? -ELOOP : link_below(a, b, depth + 1);
                else if (S_ISREG(st.st_mode) && link(a, b) < 0)
                        r = -errno;
        }
        closedir(d);
        return r;
}

int place_keep(struct place *p, const char *name) {
        _cleanup_free_ char *from = NULL, *to = NULL;
        int r;

        if (faccessat(p->staging_fd, name, F_OK, 0) >= 0)
                return 0;
        if (asprintf(&from, "%s/%s", p->state, name) < 0 || asprintf(&to, "%s/%s", p->staging, name) < 0)
                return say(-ENOMEM, "out of memory");
        r = link_below(from, to, 0);
        return r < 0 ? say(r, "cannot take over %s: %s", from, strerror(-r)) : 0;
}

/* ---- the exchange
 * ------------------------------------------------------------------------------------------------ */

/* Nothing but the empty database that store_lock() made. */
static bool worthless(const char *directory) {
        bool any = false;
        struct dirent *e;
        DIR *d = opendir(directory);

        while (d && (e = readdir(d))) {
                struct stat st;

                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                any = any || strcmp(e->d_name, "primus.db") != 0 ||
                      fstatat(dirfd(d), e->d_name, &st, 0) < 0 || st.st_size > 0;
        }
        if (d)
                closedir(d);
        return d && !any;
}

int place_swap(struct place *p) {
        int r = 0;

        if (renameat2(AT_FDCWD, p->staging, AT_FDCWD, p->state, RENAME_EXCHANGE) < 0)
                return say(-errno, "cannot put the restored state into its place, %s: %s%s", p->state,
                           strerror(errno),
                           errno == EXDEV || errno == EBUSY
                                   ? " (a file system of its own is mounted there: unmount it, or "
                                     "let StateDirectory= name a directory in it)"
                                   : "");
        /* From here on the new state is the state. */
        (void)sync_parent(p);
        if (worthless(p->staging)) {
                (void)remove_tree(p->staging);
                free(TAKE_PTR(p->before));
        } else if (rename(p->staging, p->before) < 0) {
                r = -errno;
                say(r, "the state before is in %s: it cannot be renamed to %s: %s", p->staging, p->before,
                    strerror(-r));
        }
        (void)unlinkat(p->staging_fd, MARKER, 0); /* the descriptor went with the directory */
        (void)fsync(p->staging_fd);
        (void)sync_parent(p);
        return 0;
}

void place_done(struct place *p) {
        p->staging_fd = close_fd(p->staging_fd);
        if (p->staging && has_marker(p->staging))
                (void)remove_tree(p->staging);
        free(p->state);
        free(p->staging);
        free(p->before);
        *p = (struct place){ .staging_fd = -EBADF };
}
