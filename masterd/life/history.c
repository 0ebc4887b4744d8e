/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that have ended. Invariant: an active job is never evicted; memory for ended ones is bounded by count,
 * executors and bytes. */
#include "masterd/life/history.h"

#include <utlist.h>

#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/array.h"
#include "masterd/life/arrays.h"
#include "masterd/life/holdings.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/revive.h"
#include "masterd/life/searches.h"
#include "masterd/life/usage.h"

/* Off the list of those that have ended. */
static void let_go(struct manager *m, struct job *j) {
        DL_DELETE2(m->life->ended, j, ended_prev, ended_next);
        j->ended_prev = j->ended_next = NULL;
        m->life->n_ended--;
        m->life->n_ended_executors -= j->n_executors;
        m->life->ended_bytes -= j->bytes;
}

static void drop_ended(struct manager *m, struct job *j) {
        let_go(m, j);
        HASH_DEL(m->jobs.by_number, j);
        revive_job_free(j);
}

static void evict(struct manager *m) {
        while (m->life->ended &&
               (m->life->n_ended > HISTORY_JOBS ||
                ((m->life->n_ended_executors > HISTORY_EXECUTORS || m->life->ended_bytes > HISTORY_BYTES) &&
                 m->life->n_ended > 1))) {
                drop_ended(m, m->life->ended);
        }
}

static void keep(struct manager *m, struct job *j) {
        DL_APPEND2(m->life->ended, j, ended_prev, ended_next);
        job_forget_private(j);
        holdings_weigh(j);
        m->life->n_ended++;
        m->life->n_ended_executors += j->n_executors;
        m->life->ended_bytes += j->bytes;
}

/* Not at once: whoever handles the end still looks at the job. */
static void run_evict(struct manager *m, void *data) {
        free(data);
        evict(m);
}

void history_job_ended(struct manager *m, struct job *j) {
        m->jobs.n_active -= j->element.array == 0;
        keep(m, j);
        notice_job_removed(m, j);
        (void)manager_effect(m, run_evict, NULL);
}

void history_job_again(struct manager *m, struct job *j) {
        let_go(m, j);
        m->jobs.n_active++;
}

void history_delete(struct manager *m, struct job *j) {
        struct job *e, *next;

        store_forget_job(m->store, j->number);
        manager_touch(m);
        m->life->n_deleted++;
        DL_FOREACH_SAFE2 (m->life->ended, e, next, ended_next)
                if (e->element.array == j->number)
                        drop_ended(m, e);
        drop_ended(m, j);
}

struct request {
        struct manager *manager;
        struct job *job;
        uint32_t number;
        uint64_t n_deleted; /* when it was asked */
        history_handler handler;
        void *userdata;
};

static int ask_store(struct request *q);

/* What is left of its data. */
static void on_state(void *userdata, int error, const struct data_state_record *states, size_t n) {
        struct request *q = userdata;
        struct manager *m = q->manager;
        struct job *j = q->job, *known = manager_job(m, q->number);

        if (!known && error >= 0 && q->n_deleted != m->life->n_deleted) {
                /* It may be one that was deleted meanwhile; the store answers behind that. */
                revive_job_free(TAKE_PTR(q->job));
                error = ask_store(q);
                if (error >= 0)
                        return;
                j = NULL;
        } else if (known) { /* two asked at the same time */
                revive_job_free(j);
                j = known;
        } else {
                /* Without it the job is shown all the same; jobs that ended under an older version have none.
                 */
                if (error >= 0 && n > 0 && feeding_restore_sums(j, states) == -ENOMEM)
                        error = -ENOMEM;
                if (error < 0) {
                        revive_job_free(j);
                        j = NULL;
                } else {
                        for (uint32_t i = 0; i < j->n_executors; i++)
                                if (executor_state_ended(j->executors[i]->state))
                                        executor_set_gone(j->executors[i]);
                        HASH_ADD(hh, m->jobs.by_number, number, sizeof(j->number), j);
                        keep(m, j);
                }
        }
        q->handler(j, error, q->userdata);
        if (!known)
                evict(m);
        free(q);
}

/* Of an array, which may be run again: what it held before goes on to count. */
static void on_usage(void *userdata, int error, const struct usage_record *list, size_t n) {
        struct request *q = userdata;

        for (size_t i = 0; error >= 0 && i < n; i++)
                error = usage_loaded(q->job, list + i);
        q->job->usage_known = error >= 0;
        on_state(q, error, NULL, 0);
}

static void on_elements(void *userdata, int error, const struct element_record *list, size_t n) {
        struct request *q = userdata;

        for (size_t i = 0; error >= 0 && i < n; i++)
                arrays_loaded(q->job, list + i);
        if (error >= 0)
                error = store_query_job_usage(q->manager->store, q->number, on_usage, q);
        if (error < 0)
                on_state(q, error, NULL, 0);
}

static void on_trials(void *userdata, int error, const struct trial_record *list, size_t n) {
        struct request *q = userdata;

        for (size_t i = 0; error >= 0 && i < n; i++)
                error = searches_loaded(q->job, list + i);
        if (error >= 0)
                error = store_query_elements(q->manager->store, q->number, UINT32_MAX, on_elements, q);
        if (error < 0)
                on_state(q, error, NULL, 0);
}

/* What there is of it beside its executors: of an array its elements, else its data. */
static int ask_rest(struct request *q) {
        struct store *s = q->manager->store;

        if (!q->job->array)
                return store_query_data_state(s, q->number, on_state, q);
        return q->job->array->trials ? store_query_trials(s, q->number, on_trials, q)
                                     : store_query_elements(s, q->number, UINT32_MAX, on_elements, q);
}

static void on_executors(void *userdata, int error, const struct executor_record *list, size_t n) {
        struct request *q = userdata;
        struct manager *m = q->manager;

        for (size_t i = 0; error >= 0 && i < n; i++)
                error = revive_executor(m, q->job, list + i);
        if (error >= 0 && (q->job->data || q->job->array)) {
                error = ask_rest(q);
                if (error >= 0)
                        return;
        }
        on_state(q, error, NULL, 0);
}

static void on_job(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct request *q = userdata;
        struct job *j = manager_job(q->manager, q->number);

        if (j || error < 0 || n == 0) {
                q->handler(j, error, q->userdata);
                free(q);
                return;
        }
        error = revive_job(q->manager, jobs, &q->job);
        if (error >= 0)
                error = store_query_executors(q->manager->store, q->number, true, 0, on_executors, q);
        if (error < 0) {
                revive_job_free(q->job);
                q->handler(NULL, error, q->userdata);
                free(q);
        }
}

static int ask_store(struct request *q) {
        q->n_deleted = q->manager->life->n_deleted;
        return store_query_job(q->manager->store, q->number, on_job, q);
}

int history_get(struct manager *m, uint32_t number, history_handler handler, void *userdata) {
        struct job *j = manager_job(m, number);
        struct request *q;
        int r;

        if (j) {
                handler(j, 0, userdata);
                return 0;
        }
        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct request){ .manager = m, .number = number, .handler = handler, .userdata = userdata };
        r = ask_store(q);
        if (r < 0)
                free(q);
        return r;
}
