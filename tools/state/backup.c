/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl backup. Invariant: a backup is never readable by others, and has its name only when all of it is
 * on disk. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "tools/state/entry.h"
#include "tools/state/rights.h"
#include "tools/state/say.h"
#include "tools/state/snapshot.h"
#include "tools/state/state.h"
#include "tools/state/tarball.h"

#define KEPT_PREFIX "primus-"
#define KEPT_SUFFIX ".tar.zst"
#define HALF_SEC 86400

/* ---- what goes in ---- */

/* A file that is not there, or not ours to read, does not spoil the rest. */
static int add_file(struct archive_out *o, struct manifest *m, const char *path, const char *name) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int e = fd < 0 ? errno : 0;
        struct stat st;

        if (entry_kind_of(name) < 0 && strncmp(name, ENTRY_BUNDLES_PREFIX, strlen(ENTRY_BUNDLES_PREFIX)) == 0)
                return 0; /* an upload under way */
        if (entry_kind_of(name) < 0)
                return manifest_leave_out(m, path, "not a name that a backup takes");
        if (fd < 0)
                return e == ENOENT ? 0 : manifest_leave_out(m, path, strerror(e));
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return manifest_leave_out(m, path, "not a regular file");
        if (entry_kind_of(name) == ENTRY_SETTING && st.st_size > ENTRY_SETTING_BYTES_MAX)
                return manifest_leave_out(m, path, "larger than a setting can be");
        return archive_out_file(o, m, name, fd);
}

/* What is in the directory, one level of directories deeper too where that is wanted; in the order of the
 * names, so that two backups of the same state look the same. */
static int add_directory(struct archive_out *o, struct manifest *m, const char *path, const char *name,
                         bool deeper) {
        struct dirent **list;
        int n = scandir(path, &list, NULL, alphasort), r = 0;

        if (n < 0)
                return errno == ENOENT ? 0 : manifest_leave_out(m, path, strerror(errno));
        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *from = NULL, *to = NULL;
                struct stat st;

                if (r < 0 || list[i]->d_name[0] == '.') {
                        free(list[i]);
                        continue;
                }
                if (asprintf(&from, "%s/%s", path, list[i]->d_name) < 0 ||
                    asprintf(&to, "%s/%s", name, list[i]->d_name) < 0)
                        r = say(-ENOMEM, "out of memory");
                else if (deeper && stat(from, &st) >= 0 && S_ISDIR(st.st_mode))
                        r = add_directory(o, m, from, to, false);
                else
                        r = add_file(o, m, from, to);
                free(list[i]);
        }
        free(list);
        return r;
}

static int add_all(struct archive_out *o, struct manifest *m, int database) {
        _cleanup_free_ char *bundles = NULL;
        int r = archive_out_file(o, m, ENTRY_DATABASE_NAME, database);

        if (r >= 0)
                r = add_file(o, m, PRIMUS_SYSCONFDIR "/masterd.conf", ENTRY_SETTINGS_PREFIX "masterd.conf");
        if (r >= 0)
                r = add_directory(o, m, PRIMUS_SYSCONFDIR "/masterd.conf.d",
                                  ENTRY_SETTINGS_PREFIX "masterd.conf.d", false);
        if (r >= 0)
                r = add_directory(o, m, PRIMUS_SYSCONFDIR "/job-defaults.d",
                                  ENTRY_SETTINGS_PREFIX "job-defaults.d", false);
        if (r >= 0)
                r = add_directory(o, m, PRIMUS_SYSCONFDIR "/hooks", ENTRY_SETTINGS_PREFIX "hooks", true);
        if (r >= 0 && m->bundles) {
                if (asprintf(&bundles, "%s/bundles", m->state_directory) < 0)
                        return say(-ENOMEM, "out of memory");
                /* A link there leads to what masterd may read itself. */
                r = rights_of_owner(m->state_directory);
                if (r >= 0)
                        r = add_directory(o, m, bundles, "bundles", true);
                rights_back();
        }
        return r;
}

static int write_archive(int fd, const struct backup_options *o, struct manifest *m) {
        _cleanup_(archive_out_free_p) struct archive_out *out = NULL;
        _cleanup_(seal_key_done) struct seal_key key = {};
        _cleanup_close_ int database = -EBADF;
        char host[HOST_NAME_MAX + 1] = "";
        int r;

        (void)gethostname(host, sizeof(host) - 1);
        m->program = strdup(PRIMUS_VERSION);
        m->host = strdup(host);
        m->bundles = o->bundles;
        if (!m->program || !m->host)
                return say(-ENOMEM, "out of memory");
        r = state_directory(&m->state_directory);
        if (r >= 0) {
                m->created_real = now_real(); /* the copy is not older */
                r = snapshot(m->state_directory, &database, m);
        }
        if (r >= 0)
                r = seal_key_for_backup(&key);
        if (r >= 0 && !key.known)
                say(0, "the backup gets no MAC, since " SEAL_KEY_FILE
                       " is root's: a restore takes its state alone, and only with --without-mac");
        if (r >= 0)
                r = archive_out_new(fd, !o->plain, &out);
        if (r >= 0)
                r = add_all(out, m, database);
        return r < 0 ? r : archive_out_end(out, m, &key);
}

/* ---- where it goes ---- */

static int to_standard_output(const struct backup_options *o, struct manifest *m) {
        struct stat st;

        if (isatty(STDOUT_FILENO))
                return say(-EINVAL,
                           "a backup holds the key of the cluster: it is not for a terminal; name a file");
        if (fstat(STDOUT_FILENO, &st) < 0 || (S_ISREG(st.st_mode) && (st.st_mode & 077)))
                return say(
                        -EINVAL,
                        "a backup holds the key of the cluster, and others may read the file that standard "
                        "output goes to: name the file instead (primusctl backup FILE), or umask 077 before");
        return write_archive(STDOUT_FILENO, o, m);
}

static int to_file(const struct backup_options *o, const char *path, struct manifest *m) {
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        int r;

        if (lstat(path, &st) >= 0 && !S_ISREG(st.st_mode))
                return say(-EEXIST, "%s is there and is no regular file", path);
        if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
                return say(-ENOMEM, "out of memory");
        fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
        if (fd < 0)
                return say(-errno, "cannot write %s: %s", path, strerror(errno));
        r = write_archive(fd, o, m);
        if (r >= 0 && fsync(fd) < 0)
                r = say(-errno, "cannot write %s: %s", temporary, strerror(errno));
        if (r >= 0 && rename(temporary, path) < 0)
                r = say(-errno, "cannot write %s: %s", path, strerror(errno));
        if (r < 0)
                (void)unlink(temporary);
        else if ((r = sync_directory_of(path)) < 0)
                say(r, "cannot write %s: %s", path, strerror(-r));
        return r;
}

static int is_kept(const struct dirent *d) {
        size_t n = strlen(d->d_name);

        return n == strlen(KEPT_PREFIX "20260131T120000Z" KEPT_SUFFIX) &&
               strncmp(d->d_name, KEPT_PREFIX, strlen(KEPT_PREFIX)) == 0 &&
               strcmp(d->d_name + n - strlen(KEPT_SUFFIX), KEPT_SUFFIX) == 0;
}

/* What a backup that was killed, or lost its power, has left: with keys in it, and as large. */
static int is_half(const struct dirent *d) {
        size_t n = strlen(KEPT_PREFIX "20260131T120000Z" KEPT_SUFFIX);

        return strlen(d->d_name) == n + strlen(".XXXXXX") && d->d_name[n] == '.' &&
               strncmp(d->d_name, KEPT_PREFIX, strlen(KEPT_PREFIX)) == 0 &&
               strncmp(d->d_name + n - strlen(KEPT_SUFFIX), KEPT_SUFFIX, strlen(KEPT_SUFFIX)) == 0;
}

static void drop_halves(const char *directory) {
        struct dirent **list;
        int n = scandir(directory, &list, is_half, NULL);
        struct stat st;

        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *path = NULL;

                /* A younger one may be under way. */
                if (asprintf(&path, "%s/%s", directory, list[i]->d_name) < 0)
                        path = NULL;
                else if (lstat(path, &st) >= 0 && S_ISREG(st.st_mode) && st.st_mtime + HALF_SEC < time(NULL))
                        (void)unlink(path);
                free(list[i]);
        }
        if (n >= 0)
                free(list);
}

/* The oldest go; their names are in the order of their times. */
static void drop_old(const char *directory, uint32_t keep) {
        struct dirent **list;
        int n = scandir(directory, &list, is_kept, alphasort);

        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *path = NULL;

                if (n - i > (int)keep && asprintf(&path, "%s/%s", directory, list[i]->d_name) >= 0 &&
                    unlink(path) < 0)
                        say(0, "cannot remove %s: %s", path, strerror(errno));
                free(list[i]);
        }
        if (n >= 0)
                free(list);
}

static int to_directory(const struct backup_options *o, struct manifest *m, char **ret_path) {
        time_t now = time(NULL);
        char stamp[32];
        struct tm tm;
        int r;

        if (!gmtime_r(&now, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm) == 0)
                return say(-EINVAL, "the clock cannot be read");
        if (asprintf(ret_path, "%s/" KEPT_PREFIX "%s" KEPT_SUFFIX, o->to, stamp) < 0) {
                *ret_path = NULL;
                return say(-ENOMEM, "out of memory");
        }
        r = to_file(o, *ret_path, m);
        if (r >= 0)
                drop_old(o->to, o->keep);
        drop_halves(o->to);
        return r;
}

int state_backup(const struct backup_options *o) {
        _cleanup_(manifest_done) struct manifest m = {};
        _cleanup_free_ char *kept = NULL;
        char size_text[FORMAT_SIZE_MAX];
        const char *path = o->to;
        struct stat st;
        int r;

        if (o->keep > 0 && o->plain) {
                say(0, "--keep writes compressed files: without --plain");
                return 2;
        }
        if (strcmp(o->to, "-") == 0)
                return to_standard_output(o, &m) < 0 ? 1 : 0;
        r = o->keep > 0 ? to_directory(o, &m, &kept) : to_file(o, o->to, &m);
        if (r < 0)
                return 1;
        path = kept ?: o->to;
        for (size_t i = 0; i < m.n_left_out; i++)
                say(0, "left out of the backup: %s", m.left_out[i]);
        if (stat(path, &st) >= 0)
                printf("%s: cluster %s, %zu files, %s. It holds the key of the cluster and secrets of jobs: "
                       "whoever has it "
                       "can pose as the master.\n",
                       path, m.cluster, m.n_files,
                       format_size((uint64_t)st.st_size, size_text, sizeof(size_text)));
        return 0;
}
