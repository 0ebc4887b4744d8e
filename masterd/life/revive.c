/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and executors from their records: after a restart, and of those that have left memory. Invariant: what
 * record.c writes is read here, and what is read here is not yet in any table. */
#include "masterd/life/revive.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/cpulist.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/reshape.h"
#include "masterd/life/arrays.h"
#include "masterd/life/change.h"
#include "masterd/life/depend.h"
#include "masterd/life/holdings.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/requeue.h"
#include "masterd/life/restart-scopes.h"
#include "masterd/life/restarts.h"
#include "masterd/life/savepoints.h"
#include "masterd/life/searches.h"
#include "masterd/life/suspension.h"
#include "masterd/life/time-limit.h"
#include "masterd/life/usage.h"
#include "masterd/node/gpus.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"

static int load_env(struct job *j, const struct store_bytes *env) {
        const char *p = env->data;
        size_t n = 0, k = 0;

        if (env->size == 0)
                return 0;
        for (size_t i = 0; i < env->size; i++)
                n += p[i] == 0;
        j->given.env = calloc(n + 1, sizeof(*j->given.env));
        if (!j->given.env)
                return -ENOMEM;
        for (size_t i = 0; i < env->size && k < n; i += strlen(p + i) + 1)
                if (!(j->given.env[k++] = strdup(p + i)))
                        return -ENOMEM;
        return 0;
}

void revive_job_free(struct job *j) {
        if (!j)
                return;
        feeding_free(j);
        change_free(j);
        if (j->manager)
                TELL(j->manager, job_freed, j);
        job_free(j);
}

static void revive_job_free_p(struct job **j) {
        revive_job_free(*j);
}

int revive_job(struct manager *m, const struct job_record *r, struct job **ret) {
        _cleanup_(revive_job_free_p) struct job *j = NULL;
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        struct job_spec *spec;
        int k;

        if (!r->body)
                return -EUCLEAN;
        k = r->array > 0 ? arrays_load_spec(m, r, &spec)
                         : spec_load(r->body->config.data, r->body->config.size, &spec, &d);
        if (k < 0)
                return log_full(LOG_ERR, k, &(struct log_fields){ .job = r->number },
                                "The stored configuration of job %u cannot be read", r->number);
        if (spec->visible >= _VISIBLE_MAX) /* from before there was a choice: as it was then */
                spec->visible = VISIBLE_OWNER;
        k = job_new(r->number, r->uid, r->owner, spec, &j);
        if (k < 0)
                return k;
        j->element.array = r->array;
        j->element.index = r->index;
        j->manager = m;
        k = text_set(&j->name, "%s", r->name);
        if (k < 0)
                return k;
        free(j->given.cwd);
        j->given.cwd = store_bytes_text(&r->body->cwd);
        if (r->body->warnings.size > 0 && !(j->warnings = store_bytes_text(&r->body->warnings)))
                return -ENOMEM;
        if (!j->given.cwd)
                return -ENOMEM;
        k = load_env(j, &r->body->env);
        if (k < 0)
                return k;
        snprintf(j->given.bundle, sizeof(j->given.bundle), "%s", r->body->bundle);
        j->state = r->state < _JOB_STATE_MAX ? (enum job_state)r->state : JOB_FAILED;
        j->attempt = r->attempt;
        j->submitted_real = r->submitted_real;
        j->started_real = r->started_real;
        j->ended_real = r->ended_real;
        j->event_seq = r->last_event;
        if (*r->reason && text_set(&j->reason, "%s", r->reason) < 0)
                return -ENOMEM;
        if (*r->first_error && text_set(&j->first_error, "%s", r->first_error) < 0)
                return -ENOMEM;
        record_state_to_job(&r->machine, j);
        k = arrays_prepare(j);
        if (k >= 0)
                k = depend_prepare(j);
        if (k >= 0 && !j->array)
                k = feeding_new(j);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(j);
        return 0;
}

/* The executor has another attempt behind the one that was loaded last: what that one left behind. */
static void remember_attempt(struct job *j, struct executor *e) {
        TELL(j->manager, executor_remembered, e);
        if (executor_scope(e)) /* what is counted there is stored with it */
                return;
        if (e->placed_real < j->attempt_real) /* of an earlier attempt of the job */
                return;
        if (e->state == EXECUTOR_KILLED && e->orders.stopped) /* it was moved */
                return;
        if (e->started_real > 0 && usec_sub(e->ended_real, e->started_real) > j->spec->backoff.max_usec)
                e->restart.history.consecutive = 0;
        e->restart.history.consecutive++;
        if (e->state == EXECUTOR_FAILED && fate_counts(e->end.fate))
                failover_remember(&e->restart.history,
                                  usec_sub(now_boot(), usec_sub(now_real(), e->ended_real)));
}

int revive_executor(struct manager *m, struct job *j, const struct executor_record *r) {
        struct executor *e = job_executor(j, r->role, r->index);
        int k;
        enum executor_state state =
                r->state < _EXECUTOR_STATE_MAX ? (enum executor_state)r->state : EXECUTOR_LOST;

        if (change_has_left(j, r->role, r->index, r->attempt)) {
                const struct role_spec *role = job_role_known(j, r->role);
                if (!executor_state_holds(state) || !role)
                        return 0;
                k = job_add_leaving(j, role, r->index, &e);
                if (k < 0)
                        return k;
        }
        if (!e)
                return 0;
        if (e->attempt > 0)
                remember_attempt(j, e);
        executor_number(e, r->attempt);
        e->bounced = state == EXECUTOR_KILLED && r->started_real == 0 && !r->stop_requested;
        executor_move(e, nodes_get(&m->nodes, r->node));
        executor_restore_state(e, state);
        e->invocation = r->invocation;
        e->placed_real = r->placed_real;
        e->started_real = r->started_real;
        /* What has ended is asked for how long it ran, by the clock of its host alone. */
        e->started_boot = r->started_real
                                  ? usec_sub(now_boot(), usec_sub(r->ended_real ? r->ended_real : now_real(),
                                                                  r->started_real))
                                  : 0;
        e->ended_real = r->ended_real;
        e->end.status = r->status;
        e->orders.stopped = r->stop_requested;
        e->end.fate = r->fate < _FATE_MAX ? (enum fate)r->fate : FATE_NONE;
        e->memory = r->memory;
        e->end.memory_peak = r->memory_peak;
        e->end.cpu_usec = r->cpu_usec;
        e->end.io_read = r->io_read;
        e->end.io_write = r->io_write;
        snprintf(e->end.result, sizeof(e->end.result), "%s", r->result);
        if (text_set(&e->reason, *r->reason ? "%s" : NULL, r->reason) < 0)
                return -ENOMEM;
        free(e->place.ports);
        e->place.ports = NULL;
        e->place.n_ports = 0;
        if (r->n_ports > 0) {
                e->place.ports = calloc(r->n_ports, sizeof(*e->place.ports));
                if (!e->place.ports)
                        return -ENOMEM;
                memcpy(e->place.ports, r->ports, r->n_ports * sizeof(*e->place.ports));
                e->place.n_ports = r->n_ports;
        }
        free(TAKE_PTR(e->place.cpus));
        if (r->cpus && *r->cpus) {
                e->place.cpus = calloc(1, sizeof(*e->place.cpus));
                if (!e->place.cpus)
                        return -ENOMEM;
                if (cpulist_parse(r->cpus, e->place.cpus->bits, ELEMENTSOF(e->place.cpus->bits)) < 0)
                        return -EBADMSG;
        }
        e->place.gpus = e->node ? gpus_of_text(&e->node->inventory, r->gpus) : 0;
        return 0;
}

static int load_job(void *userdata, const struct job_record *r) {
        struct manager *m = userdata;
        struct job *j;
        int k = revive_job(m, r, &j);

        if (k < 0)
                return k;
        j->usage_known = true;
        HASH_ADD(hh, m->jobs.by_number, number, sizeof(j->number), j);
        m->jobs.n_active += j->element.array == 0;
        return 0;
}

static int load_usage(void *userdata, const struct usage_record *r) {
        struct job *j = manager_job(userdata, r->job);

        return j ? usage_loaded(j, r) : 0;
}

static int load_element(void *userdata, const struct element_record *r) {
        struct job *j = manager_job(userdata, r->array);

        if (j)
                arrays_loaded(j, r);
        return 0;
}

static int load_trial(void *userdata, const struct trial_record *r) {
        struct job *j = manager_job(userdata, r->job);

        return j ? searches_loaded(j, r) : 0;
}

static int load_change(void *userdata, const struct change_record *r) {
        struct job *j = manager_job(userdata, r->job);

        return j ? change_load(j, r) : 0;
}

static int load_cut(void *userdata, const struct cut_record *r) {
        struct job *j = manager_job(userdata, r->job);

        return j ? change_load_cut(j, r) : 0;
}

static int load_executor(void *userdata, const struct executor_record *r) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, r->job);

        return j ? revive_executor(m, j, r) : 0;
}

static int load_secret(void *userdata, const struct secret_record *r) {
        struct job *j = manager_job(userdata, r->job);
        struct job_secret *bigger, *s;

        if (!j)
                return 0;
        bigger = reallocarray(j->given.secrets, j->given.n_secrets + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        j->given.secrets = bigger;
        s = bigger + j->given.n_secrets;
        *s = (struct job_secret){ strdup(r->name), malloc(r->data.size + 1), r->data.size };
        if (!s->name || !s->data)
                return -ENOMEM;
        memcpy(s->data, r->data.data, r->data.size);
        j->given.n_secrets++;
        return 0;
}

/* What executors of the job hold. Those of its hosts come first, since what follows from the ends of others
 * may stop them. */
static void resume_places(struct manager *m, struct job *j) {
        struct executor *e;

        JOB_FOREACH (j, e) {
                if (!executor_state_holds(e->state))
                        continue;
                if (!e->node || placement_restore(m, e) < 0) /* its node was removed meanwhile */
                        executor_restore_state(e, EXECUTOR_LOST);
                else
                        feeding_unknown(e);
        }
}

/* What follows from the loaded states. */
static void resume_job(struct manager *m, struct job *j) {
        struct executor *e, *next;

        for (uint32_t i = 0; i < j->n_executors; i++)
                TELL(m, executor_remembered, j->executors[i]);
        restart_scopes_resume(m, j);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                e = j->executors[i];
                if (executor_state_ended(e->state)) {
                        if (e->placed_real < j->attempt_real)
                                executor_restore_state(e, EXECUTOR_PENDING);
                        else
                                restarts_redecide(m, e);
                }
                if (e->state == EXECUTOR_PENDING &&
                    j->state == JOB_STOPPING) /* stopped before it was placed */
                        lifecycle_cancel(e);
                else if (e->state == EXECUTOR_PENDING && e->attempt > 0)
                        feeding_between(e);
        }
        DL_FOREACH_SAFE2 (j->leavers.list, e, next, leaver.next)
                if (!executor_state_holds(e->state))
                        change_gone(m, e);
        job_retired_trim(j);
        time_limit_arm(m, j);
        suspension_restored(m, j);
        depend_watch(m, j);
        placement_enqueue(m, j);
        requeue_restored(m, j);
        lifecycle_review(m, j);
}

int revive_load(struct manager *m) {
        int r = savepoints_load(m);

        if (r >= 0)
                r = store_load_jobs(m->store, true, load_job, m);
        r = r < 0 ? r : TELL_LOADED(m, jobs_read);
        if (r >= 0)
                r = store_load_scopes(m->store, restart_scopes_load, m);
        if (r >= 0)
                r = store_load_changes(m->store, load_change, m);
        if (r >= 0)
                r = store_load_cuts(m->store, load_cut, m);
        if (r >= 0)
                r = store_load_executors(m->store, load_executor, m);
        if (r >= 0)
                r = store_load_secrets(m->store, load_secret, m);
        if (r < 0)
                return r;
        TRY(store_load_trials(m->store, load_trial, m));
        TRY(store_load_elements(m->store, load_element, m));
        return store_load_usage(m->store, load_usage, m);
}

int revive_resume(struct manager *m) {
        struct job *j, *next;
        int r;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                holdings_weigh(j);
        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (j->element.array > 0 && (r = arrays_adopt(m, j)) < 0)
                        return r;
        HASH_ITER (hh, m->jobs.by_number, j, next)
                resume_places(m, j);
        HASH_ITER (hh, m->jobs.by_number, j, next)
                resume_job(m, j);
        manager_touch(m);
        return 0;
}
