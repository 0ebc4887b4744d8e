/* SPDX-License-Identifier: Apache-2.0 */
/* Tails that agents send, and the first error of failed jobs. Invariant: an attempt's tail is taken only from
 * the node that it was placed on. */
#include "masterd/relay/logs.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/names.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/arrays.h"
#include "masterd/link/orders.h"
#include "masterd/relay/logs-parts.h"
#include "masterd/relay/relay-parts.h"

#define FOLLOWED_MAX                                                                                         \
        2048u /* where attempts that are not the current ones told their tail; 300 bytes each                \
               */
#define NOTES_MAX 64u
#define LAST_WORDS_USEC (5 * USEC_PER_SEC)
#define SILENCE_USEC (300 * USEC_PER_MSEC)
#define RECENT_USEC USEC_PER_SEC
#define RECENT_WAIT_USEC (1500 * USEC_PER_MSEC) /* longer than agents gather lines */
#define DROPPED_EVERY_USEC (60 * USEC_PER_SEC)

/* A failed attempt whose last words are awaited. */
struct note {
        struct logs *logs;
        struct executor_id id;
        uint64_t due_boot;
        sd_event_source *timer; /* NULL: being read */
        struct note *prev, *next;
};

static struct job *job_of(struct manager *m, const struct executor_id *id) {
        struct job *j = manager_job(m, id->job);

        return j && sd_id128_equal(j->uid, id->job_uid) ? j : NULL;
}

static void key_of(const struct executor_id *id, char key[static 96]) {
        snprintf(key, 96, "%u/%.32s-%u.%u", id->job, id->role, id->index, id->attempt);
}

struct followed *followed_find(struct logs *l, const struct executor_id *id) {
        struct followed *f;
        char key[96];

        key_of(id, key);
        HASH_FIND_STR(l->followed, key, f);
        return f;
}

static struct followed *follow(struct logs *l, const struct executor_id *id, const char *node) {
        struct followed *f = followed_find(l, id);

        if (f)
                HASH_DEL(l->followed, f); /* added again below, as the newest */
        else {
                if (HASH_COUNT(l->followed) >= FOLLOWED_MAX) {
                        struct followed *oldest = l->followed;
                        HASH_DEL(l->followed, oldest);
                        free(oldest);
                }
                f = calloc(1, sizeof(*f));
                if (!f)
                        return NULL;
                key_of(id, f->key);
        }
        snprintf(f->node, sizeof(f->node), "%s", node);
        HASH_ADD_STR(l->followed, key, f);
        return f;
}

/* ---- first errors ---- */

static void note_free(struct note *n) {
        DL_DELETE(n->logs->notes, n);
        sd_event_source_disable_unref(n->timer);
        free(n);
}

static int on_note(sd_event_source *s, uint64_t usec, void *userdata);

static void on_line(struct log_task *t, void *userdata) {
        struct note *n = userdata;
        struct manager *m = n->logs->manager;
        struct job *j = job_of(m, &n->id);

        /* Looked too early, perhaps. */
        if (j && !t->line[0] && now_boot() < n->due_boot &&
            sd_event_add_time(m->event, &n->timer, CLOCK_BOOTTIME, n->due_boot, USEC_PER_MSEC, on_note, n) >=
                    0)
                return;
        note_free(n);
        if (!j || t->result < 0 || t->line[0] == 0)
                return;
        record_event(m, j, "first-error", job_executor(j, t->id.role, t->id.index), "%s", t->line);
        /* One that all have got over is not the job's. */
        if (j->first_error || (j->state == JOB_RUNNING && job_made_good(j)) ||
            text_set(&j->first_error, "%s", t->line) < 0)
                return;
        record_job(m, j, false);
        notice_job_changed(m, j);
        arrays_first_error(m, j);
}

static void note_read(struct note *n) {
        struct log_task *t = log_task_new(LOG_TASK_ERROR, &n->id);

        n->timer = sd_event_source_disable_unref(n->timer);
        if (!t) {
                note_free(n);
                return;
        }
        t->done = on_line;
        t->userdata = n;
        log_worker_push(n->logs->worker, t);
}

static int on_note(sd_event_source *s, uint64_t usec, void *userdata) {
        note_read(userdata);
        return 0;
}

static struct note *note_find(struct logs *l, const struct executor_id *id) {
        struct note *n;

        DL_FOREACH (l->notes, n)
                if (executor_id_equal(&n->id, id))
                        return n;
        return NULL;
}

void logs_note_failure(struct manager *m, struct executor *e) {
        struct logs *l = m->relay->logs;
        struct executor_id id = executor_id_of(e);
        struct followed *f;
        struct note *n;
        unsigned count;
        uint64_t delay = LAST_WORDS_USEC;

        if (!l || e->attempt == 0 || !e->node || note_find(l, &id))
                return;
        DL_COUNT(l->notes, n, count);
        if (count >= NOTES_MAX) /* when that many fail at once, the first of them say why */
                return;
        f = followed_find(l, &id);
        if (!f)
                (void)follow(l, &id, e->node->name); /* the next attempt may be placed before the last words
                                                        of this one are here */
        else if (now_boot() - f->last_boot < RECENT_USEC)
                delay = RECENT_WAIT_USEC; /* perhaps they came before the end was told */
        if (!e->node->bulk)
                delay = 0; /* its host is away: nothing will come */
        n = calloc(1, sizeof(*n));
        if (!n)
                return;
        *n = (struct note){ .logs = l, .id = id, .due_boot = now_boot() + (delay ? LAST_WORDS_USEC : 0) };
        DL_APPEND(l->notes, n);
        if (sd_event_add_time_relative(m->event, &n->timer, CLOCK_BOOTTIME, delay, USEC_PER_MSEC, on_note,
                                       n) < 0)
                note_read(n);
}

static bool element_of(struct manager *m, const struct note *n, const struct job *array) {
        const struct job *e = job_of(m, &n->id);

        return e && e->element.array == array->number;
}

bool logs_awaited(struct manager *m, const struct job *j) {
        struct note *n;

        DL_FOREACH (m->relay->logs ? m->relay->logs->notes : NULL, n)
                if (n->id.job == j->number || (j->array && element_of(m, n, j)))
                        return true;
        return false;
}

/* ---- tails ---- */

static void tell_dropped(struct logs *l) {
        uint64_t dropped = log_worker_dropped(l->worker);

        if (dropped == l->dropped_told || now_boot() - l->dropped_told_boot < DROPPED_EVERY_USEC)
                return;
        log_warning("The disk under %s is too slow for the logs to be kept: %llu parts left out so far",
                    l->manager->conf.state_directory, (unsigned long long)dropped);
        l->dropped_told = dropped;
        l->dropped_told_boot = now_boot();
}

void logs_tail(struct manager *m, struct node *node, const struct executor_id *id, uint64_t offset,
               const void *bytes, size_t size) {
        struct logs *l = m->relay->logs;
        struct job *j = job_of(m, id);
        struct executor *e;
        struct followed *f;
        struct log_task *t;
        struct note *n;
        bool current;

        if (!j || !role_name_valid(id->role) || size > UINT64_MAX - offset)
                return;
        e = job_attempt(j, id->role, id->index, id->attempt);
        current = e && e->node == node;
        if (!current) {
                f = followed_find(l, id);
                if (!(f && strcmp(f->node, node->name) == 0) &&
                    !(strcmp(id->role, SCAN_ROLE) == 0 && feeding_scan_known(j, node, id)))
                        return;
        }
        f = follow(l, id, node->name);
        if (!f)
                return;
        f->last_boot = now_boot();
        if (current)
                e->tail_offset = offset + size;
        if (size > 0 && (t = log_task_new(LOG_TASK_APPEND, id))) {
                t->data = malloc(size);
                if (t->data) {
                        memcpy(t->data, bytes, size);
                        t->size = size;
                        t->offset = offset;
                        log_worker_push(l->worker, t);
                } else
                        free(t);
        }
        tell_dropped(l);
        n = note_find(l, id);
        if (n && n->timer) {
                uint64_t when = MIN(n->due_boot, now_boot() + SILENCE_USEC);
                if (sd_event_source_set_time(n->timer, when) < 0)
                        note_read(n);
        }
}

void logs_forget(struct manager *m, uint32_t job) {
        struct log_task *t = log_task_new(LOG_TASK_FORGET, &(struct executor_id){ .job = job });

        if (t)
                log_worker_push(m->relay->logs->worker, t);
}

/* ---- the module ---- */

int logs_new(struct manager *m, struct logs **ret) {
        _cleanup_free_ char *directory = NULL;
        struct logs *l;
        int r;

        if (asprintf(&directory, "%s/logs", m->conf.state_directory) < 0)
                return -ENOMEM;
        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        l->manager = m;
        r = log_worker_new(m->event, directory, &l->worker);
        if (r < 0) {
                free(l);
                return r;
        }
        *ret = l;
        return 0;
}

void logs_free(struct logs *l) {
        struct followed *f, *next;
        struct note *n, *n_next;

        if (!l)
                return;
        log_worker_free(l->worker);
        log_calls_clear(l);
        DL_FOREACH_SAFE (l->notes, n, n_next)
                note_free(n);
        HASH_ITER (hh, l->followed, f, next) {
                HASH_DEL(l->followed, f);
                free(f);
        }
        free(l);
}
