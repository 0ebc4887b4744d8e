/* SPDX-License-Identifier: Apache-2.0 */
/* Saving: files are written beside, flushed and summed, and one rename makes them a checkpoint. Invariant:
 * whoever is killed at any moment leaves the checkpoint before, or the new one, whole. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/checkpoint/store.h"
#include "lib/primus/environment.h"
#include "lib/primus/text.h"

#define KEEP_DEFAULT 2u

DEFINE_CLEANUP(struct primus_saved *, primus_saved_free)

static _Thread_local char open_error[WHY_MAX];

int store_fail(struct primus_store *s, int error, const char *format, ...) {
        va_list ap;

        errno = error; /* for %m */
        va_start(ap, format);
        (void)vsnprintf(s->error, sizeof(s->error), format, ap);
        va_end(ap);
        return -error;
}

const char *primus_store_error(const struct primus_store *s) {
        return s ? s->error : open_error;
}

/* ---- the directory ---- */

static char *below_store(const struct primus_store *s, const char *name) {
        return text_make("%s/%s", s->directory, name);
}

/* No other rank makes a whole of its parts meanwhile, or takes its own away, until the descriptor is closed.
 */
static int lock_directory(struct primus_store *s) {
        _cleanup_free_ char *path = below_store(s, ".lock");
        _cleanup_close_ int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
        int r;

        if (fd < 0)
                return store_fail(s, path ? errno : ENOMEM, "%s/.lock: %m", s->directory);
        do
                r = flock(fd, LOCK_EX);
        while (r < 0 && errno == EINTR);
        return r < 0 ? store_fail(s, errno, "%s: %m", path) : TAKE_FD(fd);
}

/* What this rank has begun of that step and not ended. The lock is held. */
static void remove_part(struct primus_store *s, const char *part) {
        static const struct {
                const char *before, *behind;
        } names[] = {
                { "manifest-", ".json" }, { ".manifest-", ".json" }, { "rank-", "" }, { ".rank-", "" }
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *path =
                        text_make("%s/%s%" PRIu32 "%s", part, names[i].before, s->rank, names[i].behind);

                if (path)
                        tree_remove(path);
        }
        (void)rmdir(part); /* where nobody else has anything there */
}

static int clean_parts(struct primus_store *s) {
        _cleanup_close_ int lock = lock_directory(s);
        _cleanup_closedir_ DIR *d = lock < 0 ? NULL : opendir(s->directory);
        struct dirent *e;

        if (lock < 0)
                return lock;
        while (d && (e = readdir(d)))
                if (strncmp(e->d_name, ".step-", 6) == 0) {
                        _cleanup_free_ char *part = below_store(s, e->d_name);

                        if (part)
                                remove_part(s, part);
                }
        return 0;
}

static int make_directories(struct primus_store *s) {
        for (char *slash = s->directory; (slash = strchr(slash + 1, '/'));) {
                *slash = 0;
                int r = mkdir(s->directory, 0777) < 0 && errno != EEXIST ? -errno : 0;
                *slash = '/';
                if (r < 0)
                        return store_fail(s, -r, "%s: %m", s->directory);
        }
        return mkdir(s->directory, 0777) < 0 && errno != EEXIST ? store_fail(s, errno, "%s: %m", s->directory)
                                                                : 0;
}

static char *absolute_path(const char *path) {
        _cleanup_free_ char *here = *path == '/' ? strdup("") : getcwd(NULL, 0);
        char *whole = here ? text_make("%s%s%s", here, *path == '/' ? "" : "/", path) : NULL;

        for (size_t n = whole ? strlen(whole) : 0; n > 1 && whole[n - 1] == '/'; n--)
                whole[n - 1] = 0;
        return whole;
}

static int number_of(struct primus_store *s, const char *variable, uint32_t otherwise, uint32_t *ret) {
        if (environment_number(variable, otherwise, WORLD_MAX, ret) < 0)
                return store_fail(s, EINVAL, "%s is '%.32s', and no number of a rank", variable,
                                  getenv(variable));
        return 0;
}

static int take_options(struct primus_store *s, const struct primus_store_options *options) {
        const struct primus_store_options o =
                options ? *options : (struct primus_store_options){ .size = sizeof(o) };

        if (o.size < sizeof(o) || (o.flags & ~(PRIMUS_STORE_LOOKS | PRIMUS_STORE_LARGER)))
                return store_fail(s, EINVAL, "options of a later version");
        s->looks = o.flags & PRIMUS_STORE_LOOKS;
        s->larger = o.flags & PRIMUS_STORE_LARGER;
        s->keep = o.keep ? o.keep : KEEP_DEFAULT;
        s->keep_best = o.keep_best;
        s->rank = o.rank;
        s->world = o.world;
        if (s->keep_best && !o.metric)
                return store_fail(s, EINVAL, "the best of what? keep_best needs a metric");
        if (o.world == 0) {
                TRY(number_of(s, "RANK", 0, &s->rank));
                TRY(number_of(s, "WORLD_SIZE", 1, &s->world));
        }
        if (s->rank >= s->world || s->world > WORLD_MAX)
                return store_fail(s, EINVAL, "rank %" PRIu32 " of %" PRIu32, s->rank, s->world);
        s->metric = o.metric ? strdup(o.metric) : NULL;
        return o.metric && !s->metric ? store_fail(s, ENOMEM, "no memory") : 0;
}

static int set_up(struct primus_store *s, const char *directory, const struct primus_store_options *options) {
        TRY(take_options(s, options));
        if (strncmp(directory, "s3://", 5) == 0)
                return store_fail(s, EPROTONOSUPPORT,
                                  "%s: checkpoints in a bucket are primus.checkpoints' of Python alone",
                                  directory);
        s->directory = absolute_path(directory);
        if (!s->directory)
                return store_fail(s, ENOMEM, "no memory");
        if (s->looks)
                return 0;
        TRY(make_directories(s));
        return clean_parts(s);
}

int primus_store_open(const char *directory, const struct primus_store_options *options,
                      struct primus_store **ret) {
        struct primus_store *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        r = set_up(s, directory, options);
        if (r < 0) {
                memcpy(open_error, s->error, sizeof(open_error));
                primus_store_close(s);
                return r;
        }
        *ret = s;
        return 0;
}

void primus_store_close(struct primus_store *s) {
        if (!s)
                return;
        if (s->writing)
                (void)primus_store_abandon(s);
        teller_end(s->teller);
        free(s->directory);
        free(s->metric);
        free(s->here);
        free(s->data);
        free(s);
}

/* ---- saving ---- */

static char *part_of(const struct primus_store *s) {
        char name[STEP_NAME_MAX];

        step_name(s->step, name);
        return text_make("%s/.%s", s->directory, name);
}

static int undo_part(struct primus_store *s) {
        _cleanup_free_ char *part = part_of(s);
        _cleanup_close_ int lock = lock_directory(s);

        if (lock < 0)
                return lock;
        if (part)
                remove_part(s, part);
        return 0;
}

int primus_store_abandon(struct primus_store *s) {
        if (!s->writing)
                return 0;
        s->writing = false;
        return undo_part(s);
}

static int check_step(struct primus_store *s, uint64_t step) {
        _cleanup_free_ uint64_t *steps = NULL;
        size_t n;

        if (s->looks)
                return store_fail(s, EINVAL, "a store that looks saves nothing");
        if (s->writing)
                return store_fail(s, EBUSY, "step %" PRIu64 " is being written", s->step);
        if (step > STEP_MAX)
                return store_fail(s, EINVAL, "step is %" PRIu64 ", and not 0 to %" PRIu64, step, STEP_MAX);
        TRY(store_steps(s, &steps, &n));
        if (n > 0 && steps[0] >= step)
                return store_fail(s, EEXIST,
                                  "%s has a checkpoint of step %" PRIu64
                                  "; primus_store_forget_after() goes back to an earlier one",
                                  s->directory, steps[0]);
        return 0;
}

static int take_data(struct primus_store *s, struct primus *feed) {
        free(s->data);
        s->data = NULL;
        s->feed = feed;
        if (feed && primus_checkpoint(feed, &s->data, &s->data_size) < 0)
                return store_fail(s, EIO, "%s", primus_error(feed));
        return 0;
}

int primus_store_begin(struct primus_store *s, uint64_t step, struct primus *feed,
                       const char **ret_directory) {
        _cleanup_free_ char *part = NULL;

        TRY(primus_store_settle(s));
        TRY(check_step(s, step));
        TRY(take_data(s, feed));
        s->waits = false; /* the others never saved the one before */
        s->step = step;
        TRY(undo_part(s));
        free(s->here);
        part = part_of(s);
        s->here = part ? text_make("%s/.rank-%" PRIu32, part, s->rank) : NULL;
        if (!s->here)
                return store_fail(s, ENOMEM, "no memory");
        if ((mkdir(part, 0777) < 0 && errno != EEXIST) || mkdir(s->here, 0777) < 0)
                return store_fail(s, errno, "%s: %m", s->here);
        s->writing = true;
        *ret_directory = s->here;
        return 0;
}

/* JSON has neither NaN nor infinity: null stands for them. */
static int take_metrics(const char *const names[], const double values[], size_t n, json_t *ret) {
        for (size_t i = 0; i < n; i++)
                if (json_object_set_new(ret, names[i],
                                        isfinite(values[i]) ? json_real(values[i]) : json_null()) < 0)
                        return -EINVAL;
        return 0;
}

static int finish_part(struct primus_store *s, const struct manifest *m) {
        _cleanup_free_ char *part = part_of(s),
                            *done = part ? text_make("%s/rank-%" PRIu32, part, s->rank) : NULL;
        int r;

        if (!done)
                return store_fail(s, ENOMEM, "no memory");
        if (rename(s->here, done) < 0 || tree_flush(part) < 0)
                return store_fail(s, errno, "%s: %m", part);
        r = manifest_write(part, m);
        return r < 0 ? store_fail(s, -r, "%s: %m", part) : 0;
}

static int describe_part(struct primus_store *s, const char *const names[], const double values[], size_t n,
                         const char *metadata, struct manifest *m) {
        json_error_t error;
        struct timespec now;
        char why[WHY_MAX] = "no memory";
        int r;

        clock_gettime(CLOCK_REALTIME, &now);
        m->step = s->step;
        m->rank = s->rank;
        m->world = s->world;
        m->time = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
        m->metrics = json_object();
        if (!m->metrics || take_metrics(names, values, n, m->metrics) < 0)
                return store_fail(s, EINVAL, "a name of a metric is not UTF-8");
        m->metadata = metadata ? json_loads(metadata, JSON_DECODE_ANY, &error) : json_null();
        if (!m->metadata)
                return store_fail(s, EINVAL, "metadata is no JSON: %s", error.text);
        r = tree_sum(s->here, &m->files, why);
        return r < 0 ? store_fail(s, -r, "%s", why) : 0;
}

static int save_part(struct primus_store *s, const char *const names[], const double values[], size_t n,
                     const char *metadata) {
        _cleanup_(manifest_clear) struct manifest m = {};
        int r;

        TRY(describe_part(s, names, values, n, metadata, &m));
        m.data = s->data;
        m.data_size = s->data_size;
        r = finish_part(s, &m);
        m.data = NULL; /* it is the store's */
        return r;
}

int primus_store_commit(struct primus_store *s, const char *const names[], const double values[], size_t n,
                        const char *metadata) {
        char why[WHY_MAX];
        int r;

        if (!s->writing)
                return store_fail(s, EINVAL, "nothing is being written");
        s->writing = false;
        r = save_part(s, names, values, n, metadata);
        if (r < 0) {
                memcpy(why, s->error, sizeof(why));
                (void)undo_part(s);
                return store_fail(s, -r, "%s", why);
        }
        s->waits = true;
        r = primus_store_settle(s);
        return MIN(r, 0);
}

/* ---- making it whole ---- */

static bool all_saved(const struct primus_store *s, const char *part) {
        for (uint32_t rank = 0; rank < s->world; rank++) {
                _cleanup_free_ char *path = manifest_path(part, rank);

                if (!path || access(path, F_OK) < 0)
                        return false;
        }
        return true;
}

/* 1: it is; 0: not all ranks have saved theirs. */
static int make_whole(struct primus_store *s) {
        _cleanup_free_ char *part = part_of(s), *whole = part ? store_path(s, s->step) : NULL;
        _cleanup_close_ int lock = lock_directory(s);

        if (lock < 0)
                return lock;
        if (!whole)
                return store_fail(s, ENOMEM, "no memory");
        if (access(whole, F_OK) < 0) {
                if (!all_saved(s, part))
                        return 0;
                if (rename(part, whole) < 0)
                        return store_fail(s, errno, "%s: %m", whole);
        }
        return tree_flush(s->directory) < 0 ? store_fail(s, errno, "%s: %m", s->directory) : 1;
}

/* By a name under which it is none any more, so that what is left of it after a crash is not taken for one.
 */
static int remove_whole(struct primus_store *s, uint64_t step) {
        _cleanup_free_ char *path = store_path(s, step), *gone = NULL;
        char name[STEP_NAME_MAX];

        step_name(step, name);
        gone = text_make("%s/.gone-%s-%d", s->directory, name, (int)getpid());
        if (!path || !gone)
                return store_fail(s, ENOMEM, "no memory");
        if (rename(path, gone) < 0 || tree_flush(s->directory) < 0)
                return store_fail(s, errno, "%s: %m", path);
        tree_remove(gone);
        store_tell_gone(s, step);
        return 0;
}

/* What is left of those of which a removal was cut short. */
static void collect_gone(struct primus_store *s) {
        _cleanup_closedir_ DIR *d = opendir(s->directory);
        struct dirent *e;

        while (d && (e = readdir(d)))
                if (strncmp(e->d_name, ".gone-", 6) == 0) {
                        _cleanup_free_ char *path = below_store(s, e->d_name);

                        if (path)
                                tree_remove(path);
                }
}

struct judged {
        uint64_t step;
        double worth; /* NAN: nobody knows */
        bool kept;
};

static int best_first(const void *a, const void *b) {
        const struct judged *x = a, *y = b;

        if (isnan(x->worth) || isnan(y->worth))
                return isnan(x->worth) - isnan(y->worth);
        return x->worth < y->worth ? -1 : x->worth > y->worth ? 1 : x->step < y->step ? 1 : -1;
}

/* Those that are whole, the latest first. */
static size_t judge_all(struct primus_store *s, const uint64_t steps[], size_t n, struct judged ret[]) {
        size_t whole = 0;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(primus_saved_free_p) struct primus_saved *c = NULL;
                char why[WHY_MAX];

                if (store_look(s, steps[i], false, &c, why) >= 0)
                        ret[whole++] = (struct judged){ .step = steps[i], .worth = store_worth(s, c) };
        }
        return whole;
}

/* What neither keep nor keep_best keeps goes. Where it cannot be said how good one is, it stays only as one
 * of the latest. */
static int collect_others(struct primus_store *s) {
        _cleanup_free_ struct judged *all = NULL;
        _cleanup_free_ uint64_t *steps = NULL;
        size_t n;

        collect_gone(s);
        TRY(store_steps(s, &steps, &n));
        if (n <= s->keep)
                return 0;
        all = calloc(n, sizeof(*all));
        if (!all)
                return store_fail(s, ENOMEM, "no memory");
        n = judge_all(s, steps, n, all);
        for (size_t i = 0; i < n; i++)
                all[i].kept = i < s->keep;
        if (n > 0)
                qsort(all, n, sizeof(*all), best_first);
        for (size_t i = 0; i < n; i++)
                if (!all[i].kept && (isnan(all[i].worth) || i >= s->keep_best))
                        TRY(remove_whole(s, all[i].step));
        return 0;
}

int primus_store_settle(struct primus_store *s) {
        if (!s->waits)
                return 1;
        int r = make_whole(s);
        if (r <= 0)
                return r;
        if (s->feed && primus_checkpoint_commit(s->feed, s->data, s->data_size) < 0)
                return store_fail(s, EIO, "%s", primus_error(s->feed));
        s->waits = false;
        store_tell_saved(s, s->step);
        if (s->rank == 0 && collect_others(s) < 0) /* this one is whole all the same */
                fprintf(stderr, "primus: what is not kept any more is not removed: %s\n", s->error);
        return 1;
}

int primus_store_forget_after(struct primus_store *s, uint64_t step) {
        _cleanup_free_ uint64_t *steps = NULL;
        size_t n;

        if (s->looks)
                return store_fail(s, EINVAL, "a store that looks removes nothing");
        TRY(store_steps(s, &steps, &n));
        for (size_t i = 0; i < n && steps[i] > step; i++)
                TRY(remove_whole(s, steps[i]));
        return 0;
}
