/* SPDX-License-Identifier: Apache-2.0 */
/* Savepoints. Invariant: a savepoint is one transaction: manifest, files and, with kill, the stop of the job;
 * who asked hears of it when that is on disk. */
#include "masterd/life/savepoints.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/suspension.h"

#define SYNC_USEC (5 * USEC_PER_SEC)
#define DRAIN_USEC                                                                                           \
        (100 * USEC_PER_MSEC) /* how often data that is held back is asked whether it is through             \
                               */
/* Nothing more was acknowledged for so long: then nothing more will be; or, of what was read and not
 * acknowledged, not before the trainer ends. */
#define STILL_USEC (300 * USEC_PER_MSEC)
#define STILL_READ_USEC USEC_PER_SEC

struct making {
        struct manager *manager;
        uint32_t job, by;
        sd_id128_t uid;
        bool kill, held; /* held: the job is SUSPENDED for this alone */
        savepoint_done_t done;
        void *userdata;
        uint64_t until_boot;          /* later it is made of what is known */
        uint64_t acked, changed_boot; /* held: what was acknowledged, and since when */
        sd_event_source *again;       /* ... is asked once more */
        char name[SAVEPOINT_NAME_MAX + 1];
};

static void savepoint_free(struct savepoint *s) {
        free(s->name);
        free(s->job_name);
        free(s);
}

static void savepoint_drop(struct manager *m, struct savepoint *s) {
        HASH_DEL(m->life->savepoints, s);
        savepoint_free(s);
}

static int savepoint_add(struct manager *m, const char *name, uint32_t owner, uint32_t job,
                         const char *job_name, struct savepoint **ret) {
        struct savepoint *s = calloc(1, sizeof(*s));

        if (s)
                *s = (struct savepoint){
                        .name = strdup(name), .owner = owner, .job = job, .job_name = strdup(job_name)
                };
        if (!s || !s->name || !s->job_name) {
                if (s) {
                        free(s->name);
                        free(s->job_name);
                }
                free(s);
                return -ENOMEM;
        }
        HASH_ADD_KEYPTR(hh, m->life->savepoints, s->name, strlen(s->name), s);
        *ret = s;
        return 0;
}

static struct savepoint *find(const struct manager *m, const char *name) {
        struct savepoint *s;

        HASH_FIND_STR(m->life->savepoints, name, s);
        return s;
}

struct savepoint *savepoint_get(const struct manager *m, const char *name) {
        struct savepoint *s = find(m, name);

        return s && s->complete ? s : NULL;
}

struct savepoint *savepoint_next(struct manager *m, const struct savepoint *after) {
        /* The table keeps the order of addition, which is that of time. */
        struct savepoint *s = after                 ? (struct savepoint *)after->hh.prev
                              : m->life->savepoints ? ELMT_FROM_HH(m->life->savepoints->hh.tbl,
                                                                   m->life->savepoints->hh.tbl->tail)
                                                    : NULL;

        while (s && !s->complete)
                s = (struct savepoint *)s->hh.prev;
        return s;
}

static int load(void *userdata, const struct savepoint_record *r) {
        struct manager *m = userdata;
        struct savepoint *s;
        int k = savepoint_add(m, r->name, r->owner, r->job, r->job_name, &s);

        if (k < 0)
                return k;
        s->key = r->key;
        s->created_real = r->created_real;
        s->done = r->done;
        s->acked = r->acked;
        s->records = r->records;
        s->partial = r->partial;
        s->failed = r->failed;
        snprintf(s->bundle, sizeof(s->bundle), "%s", r->bundle);
        s->complete = true;
        return 0;
}

int savepoints_load(struct manager *m) {
        return store_load_savepoints(m->store, load, m);
}

void savepoints_free(struct manager *m) {
        struct savepoint *s, *next;

        HASH_ITER (hh, m->life->savepoints, s, next) {
                if (s->making && s->making->again) { /* else an effect has it */
                        sd_event_source_disable_unref(s->making->again);
                        free(s->making);
                }
                savepoint_drop(m, s);
        }
}

bool savepoints_need(const struct manager *m, uint32_t owner, const char *bundle) {
        for (const struct savepoint *s = m->life->savepoints; s; s = s->hh.next)
                if (s->owner == owner && strcmp(s->bundle, bundle) == 0)
                        return true;
        return false;
}

int savepoint_read(struct manager *m, const struct savepoint *s, store_savepoints_t callback,
                   void *userdata) {
        return store_query_savepoint(m->store, s->name, callback, userdata);
}

int savepoint_delete(struct manager *m, struct savepoint *s) {
        if (s->readers > 0)
                return -EBUSY;
        store_delete_savepoint(m->store, s->name, s->key);
        manager_touch(m);
        savepoint_drop(m, s);
        return 0;
}

/* ---- one is made ---- */

static struct job *job_of(struct manager *m, const struct making *k) {
        struct job *j = manager_job(m, k->job);

        return j && j->data && sd_id128_equal(j->uid, k->uid) ? j : NULL;
}

static void give_up(struct manager *m, struct making *k, int error, const char *why) {
        struct job *j = job_of(m, k);
        char text[SUSPENSION_TEXT_MAX];

        if (k->held && j && j->state == JOB_SUSPENDED && j->held.saving)
                (void)suspension_end(m, j, k->by, text);
        savepoint_drop(m, find(m, k->name));
        k->done(k->userdata, error, why);
        free(k);
}

static void run_made(struct manager *m, void *data) {
        struct making *k = data;
        struct savepoint *s = find(m, k->name);

        s->complete = true;
        s->making = NULL;
        k->done(k->userdata, 0, k->name);
        free(k);
}

static int write_manifest(const struct job *j, const struct savepoint *s, bool all, char **ret) {
        _cleanup_free_ const char **sources = calloc(j->data->input->n_sources, sizeof(*sources));
        _cleanup_free_ char *data = NULL;
        int r;

        if (!sources)
                return -ENOMEM;
        for (size_t i = 0; i < j->data->input->n_sources; i++)
                sources[i] = j->data->input->sources[i].name;
        r = data_save(j->data->data, &data);
        if (r < 0)
                return r;
        return savepoint_manifest(
                &(struct savepoint_header){
                        .name = s->name,
                        .job = j->number,
                        .job_uid = j->uid,
                        .job_name = j->name,
                        .owner = s->owner,
                        .created_real = s->created_real,
                        .complete = all,
                        .sources = sources,
                        .n_sources = j->data->input->n_sources,
                },
                data, ret);
}

static void count(struct savepoint *s, const struct data *d) {
        struct data_totals totals;
        const struct task *t;

        data_totals(d, &totals);
        s->done = totals.done;
        s->acked = totals.acked;
        s->records = totals.records;
        s->failed = totals.failed;
        for (t = data_next_task((struct data *)d, 0); t; t = data_next_task((struct data *)d, t->id))
                s->partial += t->place != TASK_GAVE_UP && (t->acked > t->start || t->skip > 0);
}

static void put(struct manager *m, const struct job *j, const struct savepoint *s, const char *manifest,
                const char *config) {
        store_copy_files(m->store, j->number, s->key);
        store_put_savepoint(m->store, &(struct savepoint_record){
                                              .name = s->name,
                                              .owner = s->owner,
                                              .job = s->job,
                                              .job_name = s->job_name,
                                              .key = s->key,
                                              .created_real = s->created_real,
                                              .done = s->done,
                                              .acked = s->acked,
                                              .records = s->records,
                                              .partial = s->partial,
                                              .failed = s->failed,
                                              .bundle = s->bundle,
                                              .manifest = { manifest, strlen(manifest) },
                                              .config = { config, strlen(config) },
                                      });
        manager_touch(m);
}

/* Where the job's data stands, into the open batch. replaces: the one of that name until now, or NULL. */
static int save(struct manager *m, const struct job *j, struct savepoint *s, bool all,
                const struct savepoint *replaces) {
        _cleanup_free_ char *manifest = NULL, *config = NULL;
        int r;

        s->created_real = now_real();
        r = write_manifest(j, s, all, &manifest);
        if (r >= 0)
                r = spec_effective(j->spec, &config);
        if (r < 0)
                return r;
        s->key = store_next_savepoint(m->store);
        count(s, j->data->data);
        if (replaces)
                store_delete_savepoint(m->store, replaces->name, replaces->key);
        put(m, j, s, manifest, config);
        return 0;
}

int savepoint_keep(struct manager *m, struct job *j, const char *name) {
        struct savepoint *old = find(m, name), *s;
        int r;

        if (old && (old->owner != j->owner || !old->complete || old->readers > 0))
                return -EBUSY;
        if (old) /* the new one goes behind all others */
                HASH_DEL(m->life->savepoints, old);
        r = savepoint_add(m, name, j->owner, j->number, j->name, &s);
        if (r >= 0) {
                memcpy(s->bundle, j->given.bundle, sizeof(s->bundle));
                r = save(m, j, s, true, old);
                if (r < 0)
                        savepoint_drop(m, s);
        }
        if (r < 0 && old)
                HASH_ADD_KEYPTR(hh, m->life->savepoints, old->name, strlen(old->name), old);
        else if (old)
                savepoint_free(old);
        return r;
}

void savepoint_kept(struct manager *m, const char *name) {
        struct savepoint *s = find(m, name);

        if (s)
                s->complete = true;
}

static void run_sync(struct manager *m, void *data);

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        struct making *k = userdata;

        k->again = sd_event_source_disable_unref(k->again);
        run_sync(k->manager, k);
        return 0;
}

/* Data that is held back: whether trainers are still at what they had got, which is to be seen from what they
 * acknowledge. Then they are asked again. */
static bool drains(struct making *k, const struct job *j) {
        uint64_t now = now_boot(), still;
        struct data_totals totals;
        bool more = false;

        if (!k->held || j->state != JOB_SUSPENDED || now >= k->until_boot)
                return false;
        for (struct task *t = data_next_task(j->data->data, 0); t && !more;
             t = data_next_task(j->data->data, t->id))
                more = t->place == TASK_LEASED && t->read > t->acked;
        data_totals(j->data->data, &totals);
        if (k->changed_boot == 0 || totals.acked != k->acked)
                k->changed_boot = now;
        k->acked = totals.acked;
        still = usec_sub(now, k->changed_boot);
        return still < (more ? STILL_READ_USEC : STILL_USEC) &&
               sd_event_add_time_relative(k->manager->event, &k->again, CLOCK_BOOTTIME, DRAIN_USEC, 0,
                                          on_again, k) >= 0;
}

static void on_synced(void *userdata, bool all) {
        struct making *k = userdata;
        struct manager *m = k->manager;
        struct savepoint *s = find(m, k->name);
        struct job *j = job_of(m, k);
        char reason[SAVEPOINT_NAME_MAX + 64];
        int r;

        if (!j || job_state_ended(j->state)) {
                give_up(m, k, -ESRCH, "The job ended before the savepoint was complete");
                return;
        }
        if (drains(k, j))
                return;
        r = save(m, j, s, all, NULL);
        if (r < 0) {
                give_up(m, k, r,
                        r == -EBUSY ? "The master is still reading the job's data back; try again in a moment"
                        : r == -E2BIG ? "The savepoint would be larger than 32 MiB: too many tasks are begun "
                                        "or have "
                                        "failed; retry or skip the failed ones (primusctl data)"
                                      : "The master is out of memory");
                return;
        }
        record_event(
                m, j, "savepoint", NULL, "savepoint %s: %llu tasks done, %llu begun, %llu failed%s", s->name,
                (unsigned long long)s->done, (unsigned long long)s->partial, (unsigned long long)s->failed,
                all ? "" : "; not every executor has answered: what it acknowledged last will be read again");
        if (k->kill) {
                snprintf(reason, sizeof(reason), "stopped with savepoint %s", s->name);
                lifecycle_stop_job(m, j, JOB_EVENT_KILLED, reason);
        }
        (void)manager_effect(m, run_made, k);
}

int savepoints_admit(const struct manager *m, uint32_t owner, char *text, size_t size) {
        uint32_t own = 0;

        for (const struct savepoint *s = m->life->savepoints; s; s = s->hh.next)
                own += s->owner == owner;
        if (own < SAVEPOINTS_PER_USER_MAX && HASH_COUNT(m->life->savepoints) < SAVEPOINTS_MAX)
                return 0;
        snprintf(text, size,
                 "There are %u savepoints of this user and %u in all; at most %u and %u are kept: "
                 "delete some (primusctl savepoint delete)",
                 own, HASH_COUNT(m->life->savepoints), SAVEPOINTS_PER_USER_MAX, SAVEPOINTS_MAX);
        return -EDQUOT;
}

static int refuse(const struct manager *m, const struct job *j, const char *name,
                  char text[static SAVEPOINT_TEXT_MAX]) {
        if (strncmp(name, SAVEPOINT_KEPT_PREFIX, strlen(SAVEPOINT_KEPT_PREFIX)) == 0) {
                snprintf(text, SAVEPOINT_TEXT_MAX,
                         "Names that begin with " SAVEPOINT_KEPT_PREFIX
                         " are for progress that is kept by a job's stagingDir; choose another one");
                return -EINVAL;
        }
        if (*name && !savepoint_name_valid(name)) {
                snprintf(text, SAVEPOINT_TEXT_MAX,
                         "A savepoint's name is of 1 to %u letters, digits, '.', '_' and '-', and begins "
                         "with a "
                         "letter or digit",
                         SAVEPOINT_NAME_MAX);
                return -EINVAL;
        }
        if (*name && find(m, name)) {
                snprintf(text, SAVEPOINT_TEXT_MAX,
                         "There is a savepoint '%s'; choose another name, or delete it first", name);
                return -EEXIST;
        }
        if (!j->data) {
                snprintf(text, SAVEPOINT_TEXT_MAX,
                         "Job %u is not fed with data: there is nothing that a savepoint could hold",
                         j->number);
                return -ENODATA;
        }
        if (job_state_ended(j->state) || j->state == JOB_STOPPING) {
                snprintf(text, SAVEPOINT_TEXT_MAX, "Job %u is %s; a savepoint is made of a job that runs",
                         j->number, job_state_to_string(j->state));
                return -ESRCH;
        }
        if (store_full(m->store)) {
                snprintf(text, SAVEPOINT_TEXT_MAX,
                         "The master's store is slow or its disk is full; try again in a moment");
                return -EBUSY;
        }
        return savepoints_admit(m, j->owner, text, SAVEPOINT_TEXT_MAX);
}

/* Behind what feeders are told when the job is held: they stop, and then say how far they are. */
static void run_sync(struct manager *m, void *data) {
        struct making *k = data;
        struct job *j = job_of(m, k);
        int r = j ? feeding_sync(m, j, MAX(usec_sub(k->until_boot, now_boot()), DRAIN_USEC), on_synced, k)
                  : -ESRCH;

        if (r < 0)
                give_up(m, k, r,
                        r == -ENOMEM ? "The master is out of memory"
                                     : "The job ended before the savepoint was complete");
}

int savepoint_create(struct manager *m, struct job *j, const char *name, bool kill, uint32_t uid,
                     savepoint_done_t done, void *userdata, char text[static SAVEPOINT_TEXT_MAX]) {
        char why[SUSPENSION_TEXT_MAX];
        struct savepoint *s;
        struct making *k;
        int r = refuse(m, j, name, text);

        if (r < 0)
                return r;
        k = malloc(sizeof(*k));
        if (!k) {
                snprintf(text, SAVEPOINT_TEXT_MAX, "The master is out of memory");
                return -ENOMEM;
        }
        *k = (struct making){ .manager = m,
                              .job = j->number,
                              .by = uid,
                              .uid = j->uid,
                              .kill = kill,
                              .done = done,
                              .userdata = userdata,
                              .until_boot = usec_add(now_boot(), SYNC_USEC) };
        snprintf(k->name, sizeof(k->name), "%s", name);
        /* There are fewer than the numbers tried. */
        for (uint32_t n = 1; !*k->name || find(m, k->name); n++)
                snprintf(k->name, sizeof(k->name), "%u-%u", j->number, n);
        r = savepoint_add(m, k->name, j->owner, j->number, j->name, &s);
        if (r < 0) {
                free(k);
                snprintf(text, SAVEPOINT_TEXT_MAX, "The master is out of memory");
                return r;
        }
        s->making = k;
        memcpy(s->bundle, j->given.bundle, sizeof(s->bundle));
        if (kill && j->state == JOB_RUNNING) {
                j->held.saving = true;
                k->held = suspension_begin(m, j, SUSPEND_DATA, uid, why) >= 0;
                j->held.saving = k->held;
        }
        return manager_effect(m, run_sync, k);
}

uint64_t savepoints_latest(struct manager *m, const struct job *j) {
        for (const struct savepoint *s = savepoint_next(m, NULL); s; s = savepoint_next(m, s))
                if (s->job == j->number)
                        return s->created_real;
        return 0;
}
