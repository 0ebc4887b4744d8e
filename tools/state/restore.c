/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl restore. Invariant: nothing that was there is touched before all of the backup has been read and
 * found good; then the state changes by one rename, and what was there before is kept. */
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "masterd/store/revive.h"
#include "tools/state/entry.h"
#include "tools/state/hooks.h"
#include "tools/state/place.h"
#include "tools/state/rights.h"
#include "tools/state/say.h"
#include "tools/state/seal.h"
#include "tools/state/state.h"
#include "tools/state/tarball.h"

#define CLOCK_SLACK (3600 * USEC_PER_SEC)

struct restoring {
        const struct restore_options *options;
        struct passwd *user;
        struct place place;
        struct manifest manifest;
        struct seal_key key;
        enum seal seal;
        char seal_id[17];
        struct store_summary summary, previous;
        bool have_previous;
        int source_fd, lock_fd;
        char *kept; /* the directory for settings that are replaced: root's, since they may be programs that
                       root runs */
        uint64_t now_real;
};

/* ---- is it good? ---- */

static int check_database(const char *directory, const struct manifest *m, struct store_summary *ret) {
        _cleanup_free_ char *path = NULL;
        char cluster[33];
        int r;

        if (asprintf(&path, "%s/" ENTRY_DATABASE_NAME, directory) < 0)
                return say(-ENOMEM, "out of memory");
        r = store_summarize(path, ret);
        if (r == -EPROTONOSUPPORT)
                return say(r,
                           "the backup was made by a newer Primus (%s, store version %lld; this one knows "
                           "%lld): upgrade "
                           "this host first",
                           m->program, (long long)ret->version, (long long)store_version());
        if (r < 0)
                return say(r, "the database in the backup %s",
                           r == -EUCLEAN || r == -EMEDIUMTYPE ? "is damaged" : strerror(-r));
        snprintf(cluster, sizeof(cluster), SD_ID128_FORMAT_STR, SD_ID128_FORMAT_VAL(ret->cluster));
        if (strcmp(cluster, m->cluster) != 0)
                return say(-EBADMSG,
                           "refused: the manifest and the database in the backup name different clusters");
        return 0;
}

/* Terms and certificates need a clock that does not lie behind what the hosts of the cluster have seen. */
static int check_clock(const struct manifest *m, uint64_t now) {
        char then[FORMAT_TIME_MAX], here[FORMAT_TIME_MAX];

        if (usec_add(now, CLOCK_SLACK) >= m->created_real)
                return 0;
        return say(-EINVAL, "this host's clock says %s, but the backup was made at %s: set the clock first",
                   format_time(now, here, sizeof(here)), format_time(m->created_real, then, sizeof(then)));
}

static void describe(const struct manifest *m, const struct store_summary *s) {
        char when[FORMAT_TIME_MAX];

        printf("Backup of %s by Primus %s on %s: cluster %s, %u hosts, last job %u, %u jobs active, %s "
               "bundles\n",
               format_time(m->created_real, when, sizeof(when)), m->program, m->host, m->cluster, s->nodes,
               s->last_job, s->active_jobs, m->bundles ? "with" : "without");
        for (size_t i = 0; i < m->n_left_out; i++)
                printf("Not in it: %s\n", m->left_out[i]);
}

/* Whose word there is for it. Negative, and said: it is not to be restored as it was asked for. */
static int check_seal(const struct restoring *x) {
        const char *key = x->options->key ?: SEAL_KEY_FILE;
        bool waived = x->options->without_mac;

        switch (x->seal) {
        case SEAL_GOOD:
                return 0;
        case SEAL_NONE:
                return waived ? 0
                              : say(-EBADMSG,
                                    "refused: nobody vouches for this backup, it has no MAC. Whoever wrote "
                                    "it decides "
                                    "what this master does; where you know who that was, --without-mac takes "
                                    "its state alone, no settings and no hooks");
        case SEAL_NO_KEY:
                return waived ? 0
                              : say(-ENOKEY,
                                    "refused: there is no %s to check the backup's MAC with. Bring that file "
                                    "from the "
                                    "host that made the backup, or from where it is kept (key %s), and give "
                                    "--key "
                                    "FILE; or --without-mac, which takes the state alone, no settings and no "
                                    "hooks",
                                    key, x->seal_id);
        case SEAL_OTHER_KEY:
                return waived ? 0
                              : say(-ENOKEY,
                                    "refused: the backup's MAC is of key %s, and %s is key %s. Bring the "
                                    "other from the "
                                    "host that made the backup, or from where it is kept, and give --key "
                                    "FILE; or "
                                    "--without-mac, which takes the state alone, no settings and no hooks",
                                    x->seal_id, key, x->key.id);
        default:
                return say(-EBADMSG, "refused: the backup's MAC is wrong: it was changed after it was made");
        }
}

/* With what the backup has of both. */
static bool takes_settings(const struct restoring *x) {
        return !x->options->no_settings && !x->options->without_mac;
}

/* Before anything is changed. */
static void describe_hooks(const struct restoring *x) {
        size_t n = hooks_compare(&x->manifest, PRIMUS_SYSCONFDIR);

        if (n == 0 || x->options->no_settings)
                return;
        if (x->options->without_mac)
                puts("Settings and hooks are not taken, for nobody vouches for them. Look at them, and copy "
                     "those that "
                     "you want yourself: tar -xf FILE settings");
        else if (!x->options->with_hooks)
                puts("Hooks are left as they are here; --with-hooks takes those of the backup. To look at "
                     "one: tar -xOf "
                     "FILE settings/hooks/NAME");
}

static int read_key(struct restoring *x) {
        int r = seal_key_read(x->options->key ?: SEAL_KEY_FILE, &x->key);

        if (r == -ENOENT && x->options->key)
                return say(r, "there is no %s", x->options->key);
        return r == -ENOENT ? 0 : r;
}

static int open_source(const char *from) {
        int fd = strcmp(from, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                        : open(from, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? say(-errno, "cannot read %s: %s", from, strerror(errno)) : fd;
}

/* What the state directory is given to, and what is made in it, is the user's. */
static int as_user(const struct restoring *x) {
        return rights_of(x->user->pw_uid, x->user->pw_gid);
}

/* Looks at it in a directory of its own. */
static int look(struct restoring *x) {
        char directory[] = "/var/tmp/primus-check.XXXXXX";
        _cleanup_close_ int dir = -EBADF;
        int r;

        if (!mkdtemp(directory))
                return say(-errno, "cannot make %s: %s", directory, strerror(errno));
        dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = dir < 0 ? say(-errno, "cannot open %s: %s", directory, strerror(errno))
                    : archive_unpack(x->source_fd, dir, &x->key, &x->manifest, &x->seal, x->seal_id);
        if (r >= 0)
                r = check_database(directory, &x->manifest, &x->summary);
        if (r >= 0)
                r = check_clock(&x->manifest, x->now_real);
        (void)remove_tree(directory);
        return r;
}

static int check_only(struct restoring *x) {
        int r = x->source_fd = open_source(x->options->from);

        if (r >= 0 && geteuid() == 0)
                r = read_key(x);
        /* Whose it is nobody knows: it is read with no more rights than it takes. */
        x->user = getpwnam(STATE_USER);
        if (r >= 0 && x->user)
                r = as_user(x);
        if (r >= 0)
                r = look(x);
        rights_back();
        if (r < 0)
                return r;
        describe(&x->manifest, &x->summary);
        describe_hooks(x);
        if (geteuid() != 0)
                puts("It is whole; whether it is what root has made, root alone can tell. Nothing was "
                     "changed.");
        else if ((r = check_seal(x)) >= 0)
                printf("It is whole, and this program can restore it%s. Nothing was changed.\n",
                       x->seal == SEAL_GOOD ? "; its MAC is good" : ", its state alone");
        return r;
}

/* ---- the state that is there ---- */

/* Makes it the user's, as systemd would; the database too, where somebody has put one there as root. */
static int own_state(const struct restoring *x, const char *state) {
        uid_t uid = x->user->pw_uid;
        gid_t gid = x->user->pw_gid;
        _cleanup_close_ int dir = -EBADF, fd = -EBADF;
        struct stat st;
        int r = make_directories(state, 0700);

        if (r < 0)
                return say(r, "cannot make %s: %s", state, strerror(-r));
        dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || fstat(dir, &st) < 0 ||
            ((st.st_uid != uid || st.st_gid != gid) && fchown(dir, uid, gid) < 0))
                return say(-errno, "cannot give %s to user " STATE_USER ": %s", state, strerror(errno));
        fd = openat(dir, ENTRY_DATABASE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        /* With a second name it may be anybody's file. */
        if (fd >= 0 && fstat(fd, &st) >= 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid != uid &&
            fchown(fd, uid, gid) < 0)
                return say(-errno, "cannot give the database in %s to user " STATE_USER ": %s", state,
                           strerror(errno));
        return 0;
}

/* Nobody may use it from here on. A damaged one is no obstacle: it may be why we are here. */
static int lock_state(struct restoring *x, const char *state) {
        _cleanup_free_ char *path = NULL;
        struct stat st;
        int r;

        if (asprintf(&path, "%s/" ENTRY_DATABASE_NAME, state) < 0) {
                path = NULL;
                return say(-ENOMEM, "out of memory");
        }
        r = stat(path, &st) >= 0 && st.st_size > 0 ? store_summarize(path, &x->previous) : -ENOENT;
        x->have_previous = r >= 0;
        if (r != -EBUSY)
                r = store_lock(path, &x->lock_fd);
        if (r == -EBUSY)
                return say(r,
                           "%s is in use: stop the master first (systemctl stop primus-masterd); any "
                           "primusctl here "
                           "starts it again, unless it is masked (systemctl mask --runtime primus-masterd)",
                           path);
        return r < 0 ? say(r, "cannot lock %s: %s", path, strerror(-r)) : 0;
}

/* The settings say where the state is: the two must agree, or masterd would start with another one. */
static int check_directory(const struct restoring *x) {
        if (!takes_settings(x) || strcmp(x->manifest.state_directory, x->place.state) == 0)
                return 0;
        return say(-EINVAL,
                   "the settings in the backup keep the state in %s, those of this host in %s: set "
                   "StateDirectory= "
                   "in masterd.conf to the first, or give --no-settings",
                   x->manifest.state_directory, x->place.state);
}

static int revive(struct restoring *x) {
        _cleanup_free_ char *path = NULL;
        uint64_t term = store_revived_term(&x->summary, x->now_real);
        int r;

        if (x->have_previous)
                term = MAX(term, usec_add(x->previous.term, 1));
        if (asprintf(&path, "%s/" ENTRY_DATABASE_NAME, x->place.staging) < 0)
                return say(-ENOMEM, "out of memory");
        r = store_revive(path, term, store_revived_job(&x->summary, x->manifest.created_real, x->now_real));
        return r < 0 ? say(r, "cannot prepare the restored state: %s", strerror(-r)) : 0;
}

/* ---- settings ---- */

static int keep_setting(const struct restoring *x, const char *path, const char *name, const char *text,
                        size_t size, mode_t mode) {
        _cleanup_free_ char *kept = NULL, *directory = NULL;
        char *slash;

        if (asprintf(&kept, "%s/%s", x->kept, name) < 0) {
                kept = NULL;
                return -ENOMEM;
        }
        directory = strdup(kept);
        slash = directory ? strrchr(directory, '/') : NULL;
        if (!slash)
                return -ENOMEM;
        *slash = 0;
        int r = make_directories(directory, 0700);
        if (r >= 0)
                r = write_file_atomic(kept, text, size, mode, false);
        if (r >= 0)
                printf("%s was replaced; the one before is %s\n", path, kept);
        return r;
}

/* Of the staging directory, which is the user's: what is taken from it is what the manifest says. */
static int read_staged(const struct restoring *x, const struct manifest_file *f, char **ret,
                       size_t *ret_size) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = as_user(x);

        if (r >= 0)
                r = read_file_at(x->place.staging_fd, f->name, ENTRY_SETTING_BYTES_MAX, &text, &size);
        rights_back();
        if (r < 0)
                return r;
        if (!archive_same_bytes(f, text, size))
                return -EBADMSG;
        *ret = TAKE_PTR(text);
        *ret_size = size;
        return 0;
}

/* Each file is replaced as a whole, and only where it differs. */
static int place_setting(const struct restoring *x, const struct manifest_file *f) {
        const char *name = f->name + strlen(ENTRY_SETTINGS_PREFIX);
        _cleanup_free_ char *path = NULL, *directory = NULL, *text = NULL, *there = NULL;
        size_t size, there_size = 0;
        struct stat st = {};
        int r;

        if (asprintf(&path, PRIMUS_SYSCONFDIR "/%s", name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        directory = strdup(path);
        if (!directory)
                return -ENOMEM;
        *strrchr(directory, '/') = 0;
        r = read_staged(x, f, &text, &size);
        if (r < 0)
                return r;
        if (read_file(path, ENTRY_SETTING_BYTES_MAX, &there, &there_size) >= 0 && there_size == size &&
            memcmp(there, text, size) == 0)
                return 0;
        if (there && stat(path, &st) >= 0) {
                r = keep_setting(x, path, name, there, there_size, st.st_mode & 0777);
                if (r < 0)
                        return r;
        }
        r = make_directories(directory, 0755);
        if (r >= 0)
                r = write_file_atomic(path, text, size, f->mode & 0755, true);
        if (r >= 0 && !there)
                printf("%s was not here, and is now\n", path);
        return r;
}

static void place_settings(const struct restoring *x) {
        (void)umask(022); /* masterd's user reads them */
        for (size_t i = 0; i < x->manifest.n_files && takes_settings(x); i++) {
                const struct manifest_file *f = x->manifest.files + i;
                bool wanted = entry_kind_of(f->name) == ENTRY_SETTING &&
                              (!hooks_are(f->name) || x->options->with_hooks);
                int r = wanted ? place_setting(x, f) : 0;

                if (r < 0)
                        say(r, "cannot restore %s: %s; take it from the backup by tar", f->name,
                            strerror(-r));
        }
}

/* ---- all of it ---- */

static int take_place(struct restoring *x) {
        int r = archive_unpack(x->source_fd, x->place.staging_fd, &x->key, &x->manifest, &x->seal,
                               x->seal_id);

        if (r >= 0)
                r = check_seal(x);
        if (r >= 0)
                r = check_database(x->place.staging, &x->manifest, &x->summary);
        if (r >= 0)
                r = check_clock(&x->manifest, x->now_real);
        if (r >= 0)
                r = check_directory(x);
        if (r >= 0)
                r = revive(x);
        if (r >= 0)
                r = place_finish(&x->place, x->user->pw_uid, x->user->pw_gid);
        return r < 0 ? r : place_swap(&x->place);
}

static void tell(const struct restoring *x) {
        printf("Restored to %s.", x->place.state);
        if (x->place.before)
                printf(" The state before is kept in %s (remove it when all is well: it holds keys too).",
                       x->place.before);
        printf("\nTokens made before are void. The next job's number is above %u.\n",
               store_revived_job(&x->summary, x->manifest.created_real, x->now_real));
        if (x->summary.active_jobs > 0)
                puts("Jobs that were active then are taken up again; those that have ended since run once "
                     "more.");
        if (x->summary.active_with_files > 0 && !x->manifest.bundles)
                printf("%u active jobs came with files, and bundles are not in the backup: those whose files "
                       "are not in "
                       "%s/bundles cannot be started on another host.\n",
                       x->summary.active_with_files, x->place.state);
        puts("Next: systemctl start primus-masterd   (and let the agents find it: primus-masterd(8), "
             "RESTORE)");
}

/* The empty database that was made to be locked. */
static void unlock_state(struct restoring *x, const char *state) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (asprintf(&path, "%s/" ENTRY_DATABASE_NAME, state) < 0) {
                path = NULL;
                return;
        }
        if (stat(path, &st) >= 0 && st.st_size == 0)
                (void)unlink(path);
}

/* With the user's rights, but for the settings. */
static int in_state(struct restoring *x, const char *state) {
        int r = lock_state(x, state);

        if (r >= 0)
                r = place_begin(state, x->now_real, &x->place);
        if (r < 0)
                return r;
        if (asprintf(&x->kept, PRIMUS_SYSCONFDIR "%s", strrchr(x->place.before, '/')) < 0) {
                x->kept = NULL;
                r = say(-ENOMEM, "out of memory");
        }
        if (r >= 0)
                r = take_place(x);
        if (r >= 0) {
                rights_back();
                describe(&x->manifest, &x->summary);
                describe_hooks(x);
                place_settings(x);
                tell(x);
                (void)as_user(x);
        } else
                say(r, "nothing was changed");
        place_done(&x->place);
        if (r < 0)
                unlock_state(x, state);
        return r;
}

static int restore(struct restoring *x) {
        _cleanup_free_ char *state = NULL;
        int r;

        if (geteuid() != 0)
                return say(-EPERM, "restore replaces the state of the master: run it as root");
        x->user = getpwnam(STATE_USER);
        if (!x->user)
                return say(-ENOENT,
                           "there is no user " STATE_USER " here: install the package primus-master first");
        r = x->source_fd = open_source(x->options->from);
        if (r >= 0)
                r = read_key(x);
        if (r >= 0)
                r = state_directory(&state);
        if (r >= 0)
                r = own_state(x, state);
        if (r >= 0)
                r = as_user(x);
        if (r >= 0)
                r = in_state(x, state);
        rights_back();
        if (r < 0 && state)
                (void)rmdir(state); /* unless there is something in it */
        return r;
}

int state_restore(const struct restore_options *o) {
        struct restoring x = { .options = o,
                               .source_fd = -EBADF,
                               .lock_fd = -EBADF,
                               .now_real = now_real(),
                               .place.staging_fd = -EBADF };
        int r;

        (void)umask(077);
        if (strcmp(o->from, "-") == 0 && isatty(STDIN_FILENO)) {
                say(0, "there is no backup on a terminal; name a file");
                return 2;
        }
        r = o->check ? check_only(&x) : restore(&x);
        place_done(&x.place);
        close_fd(x.source_fd);
        close_fd(x.lock_fd);
        free(x.kept);
        manifest_done(&x.manifest);
        seal_key_done(&x.key);
        return r < 0 ? 1 : 0;
}
