/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: who was placed before scope.real is being stopped, or has ended and waits to be placed again; so
 * after a restart of masterd the times alone tell who is who. What is counted is on disk with the ends that
 * it counts. While scope.regroup_real is set the scope is held back: who comes waits, who leaves stays. */
#include "masterd/life/restart-scopes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/life/change.h"
#include "masterd/life/lifecycle.h"
#include "masterd/link/orders.h"
#include "masterd/queue/queueing.h"

static_assert(FAILOVER_REMEMBERED <= STORE_FAILURES_MAX, "the store has room for all that is remembered");

/* As stored: times by CLOCK_REALTIME. */
static struct history_record history_save(const struct failover_history *h) {
        struct history_record s = { .n_failures = h->n_failures, .consecutive = h->consecutive };

        for (uint32_t i = 0; i < h->n_failures; i++)
                s.failures[i] = (struct failure_record){
                        .real = usec_sub(now_real(), usec_sub(now_boot(), h->failures[i])), .n = h->n_at[i]
                };
        return s;
}

static struct failover_history history_load(const struct history_record *s) {
        struct failover_history h = { .n_failures = MIN(s->n_failures, (uint32_t)FAILOVER_REMEMBERED),
                                      .consecutive = s->consecutive };

        for (uint32_t i = 0; i < h.n_failures; i++) {
                h.failures[i] = usec_sub(now_boot(), usec_sub(now_real(), s->failures[i].real));
                h.n_at[i] = s->failures[i].n;
        }
        return h;
}

static void record(struct manager *m, const struct job *j, const char *role, const struct scope *s) {
        store_put_scope(m->store, &(struct scope_record){ .job = j->number,
                                                          .role = role,
                                                          .state = { .restarts = s->restarts,
                                                                     .real = s->real,
                                                                     .due_real = s->due_real,
                                                                     .regroup_real = s->regroup_real,
                                                                     .history = history_save(&s->history),
                                                                     .budget = history_save(&s->budget) } });
        manager_touch(m);
}

/* A role's own; NULL: there is no role of that name. */
static struct scope *role_scope(struct job *j, const char *name) {
        for (size_t i = 0; i < j->spec->n_roles; i++)
                if (strcmp(j->spec->roles[i].name, name) == 0)
                        return j->roles[i].scope;
        return NULL;
}

/* Under what the scope is on disk. */
static const char *name_of(const struct job *j, const struct scope *s) {
        for (size_t i = 0; i < j->spec->n_roles; i++)
                if (j->roles[i].scope == s)
                        return j->spec->roles[i].name;
        return "";
}

void restart_scopes_changed(struct manager *m, struct executor *e) {
        struct scope *s = executor_scope(e);

        record(m, e->job, executor_role(e)->name, e->job->roles[e->role].scope);
        if (s == &e->job->scope)
                record(m, e->job, "", s);
}

/* ---- starting again ---- */

static void proceed(struct manager *m, struct scope *s);

static int on_due(sd_event_source *source, uint64_t usec, void *userdata) {
        struct scope *s = userdata;

        s->timer = sd_event_source_disable_unref(s->timer);
        proceed(s->job->manager, s);
        return 0;
}

/* Those that had to leave have left: waits for what is left of the back-off, then lets them be placed. */
static void proceed(struct manager *m, struct scope *s) {
        uint64_t wait = usec_sub(s->due_real, now_real());

        if (!s->held_back || s->n_leaving > 0 || s->timer || s->regroup_real > 0)
                return;
        if (wait > 0 &&
            sd_event_add_time_relative(m->event, &s->timer, CLOCK_BOOTTIME, wait, 1, on_due, s) >= 0)
                return;
        s->held_back = false; /* without memory for a timer rather early than never */
        placement_enqueue(m, s->job);
}

/* Sends one that has ended back to be placed; those that have failed for good, or are not counted any more,
 * stay as they are. */
static void send_back(struct executor *e) {
        if (e->state == EXECUTOR_KILLED && e->gone && executor_is_new(e)) { /* it was not wanted any more */
                executor_return(e);
                e->end.fate = FATE_NONE;
        } else if (!executor_state_ended(e->state) || e->end.fate == FATE_LEFT || e->end.fate == FATE_IGNORE)
                return;
        executor_return(e);
        (void)executor_again(e);
}

/* From now on all of it belongs to the attempt before: stops who runs, holds back who does not. Returns how
 * many they are. */
static uint32_t begin_again(struct manager *m, struct scope *s, uint64_t delay_usec, const char *why) {
        struct job *j = s->job;
        bool regroups = s->regroup_real > 0;
        uint32_t n = 0;

        s->real = MAX(now_real(), s->real + 1);
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (executor_scope(j->executors[i]) == s)
                        s->real = MAX(s->real, j->executors[i]->placed_real + 1);
        s->due_real = usec_add(now_real(), delay_usec);
        s->regroup_real = 0;
        s->n_leaving = 0;
        s->held_back = true;
        s->awaited = true;
        s->timer = sd_event_source_disable_unref(s->timer);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *x = j->executors[i];
                if (executor_scope(x) != s)
                        continue;
                n++;
                if (!executor_state_holds(x->state)) {
                        send_back(x);
                        continue;
                }
                x->end.fate = FATE_SCOPE;
                s->n_leaving++;
                if (x->orders.stopped)
                        record_executor(m, x); /* whyever it is being stopped, it goes with the others */
                else
                        lifecycle_stop_executor(m, x, why);
        }
        if (s == &j->scope)
                j->order_step = 0;
        if (regroups)
                change_let_go(m, j);
        return n;
}

void restart_scopes_restart(struct manager *m, struct executor *e, uint64_t delay_usec) {
        struct scope *s = executor_scope(e);
        struct job *j = e->job;
        bool moved = e->state == EXECUTOR_KILLED && e->orders.stopped;
        const char *what = s == &j->scope ? "the job" : executor_role(e)->name;
        char delay[FORMAT_DURATION_MAX];
        uint32_t n;

        s->restarts++;
        n = begin_again(m, s, delay_usec,
                        moved ? "another executor was moved, and all start again together"
                              : "another executor has failed, and all start again together");
        restart_scopes_changed(m, e);
        record_event(m, j, "scope-restarts", e, "%u executor%s of %s %s start%s again together%s%s", n,
                     n == 1 ? "" : "s", s == &j->scope ? "the job" : "role",
                     s == &j->scope ? "(restartScope: job)" : executor_role(e)->name, n == 1 ? "s" : "",
                     delay_usec > 0 ? ", at the earliest in " : "",
                     delay_usec > 0 ? format_duration(delay_usec, delay, sizeof(delay)) : "");
        (void)text_set(&j->reason, "%s%s starts again: %s/%u %s: %s", s == &j->scope ? "" : "role ", what,
                       executor_role(e)->name, e->index, moved ? "was moved" : "has ended",
                       e->reason ? e->reason : "?");
        lifecycle_job_changed(m, j);
        proceed(m, s);
}

/* ---- another membership ---- */

static void regroup_now(struct manager *m, struct scope *s) {
        struct job *j = s->job;
        const char *role = name_of(j, s);
        uint32_t n = begin_again(m, s, 0, "the job was scaled, and all start again together");

        record(m, j, role, s);
        record_event(m, j, "scope-regroups", NULL,
                     "%u executor%s of %s %s start%s again together, with the new number", n,
                     n == 1 ? "" : "s", *role ? "role" : "the job", *role ? role : "(restartScope: job)",
                     n == 1 ? "s" : "");
        (void)text_set(&j->reason, "%s%s starts again: it was scaled", *role ? "role " : "",
                       *role ? role : "the job");
        lifecycle_job_changed(m, j);
        proceed(m, s);
}

static int on_regroup(sd_event_source *source, uint64_t usec, void *userdata) {
        struct scope *s = userdata;

        s->timer = sd_event_source_disable_unref(s->timer);
        if (s->job->state != JOB_STOPPING && !job_state_ended(s->job->state))
                regroup_now(s->job->manager, s);
        return 0;
}

static void arm_regroup(struct manager *m, struct scope *s) {
        s->held_back = true;
        s->timer = sd_event_source_disable_unref(s->timer);
        if (s->regroup_real <= now_real() ||
            sd_event_add_time_relative(m->event, &s->timer, CLOCK_BOOTTIME, s->regroup_real - now_real(),
                                       USEC_PER_MSEC, on_regroup, s) < 0)
                regroup_now(m, s);
}

/* The scope of those of a role that there may be no more. */
static struct scope *scope_of(struct job *j, const struct role_spec *role) {
        switch (spec_restart_scope(j->spec, role)) {
        case RESTART_SCOPE_ROLE:
                return role_scope(j, role->name);
        case RESTART_SCOPE_JOB:
                return &j->scope;
        default:
                return NULL;
        }
}

bool restart_scopes_keep_leaving(const struct executor *e) {
        const struct scope *s = scope_of(e->job, e->leaver.role);

        return s && s->regroup_real > 0;
}

static bool under_way(const struct scope *s) {
        for (uint32_t i = 0; i < s->job->n_executors; i++)
                if (executor_scope(s->job->executors[i]) == s &&
                    executor_state_holds(s->job->executors[i]->state))
                        return true;
        return false;
}

void restart_scopes_regroup(struct manager *m, struct job *j, const struct role_spec *role) {
        const struct queue_spec *q = &j->spec->waits;
        struct scope *s = scope_of(j, role);
        char before[FORMAT_DURATION_MAX];

        /* One that starts again already does it with whoever is there now. */
        if (!s || s->held_back || s->regroup_real > 0 || j->spec->rendezvous.signal_number > 0 ||
            !under_way(s))
                return;
        s->regroup_real = usec_add(now_real(), q->signal_number > 0 ? q->signal_before_usec : 0);
        record(m, j, name_of(j, s), s);
        if (q->signal_number > 0) {
                struct executor *e;

                record_event(m, j, "signalled", NULL, "scaled: told by %s, started again in %s", q->signal,
                             format_duration(q->signal_before_usec, before, sizeof(before)));
                JOB_FOREACH (j, e)
                        if (executor_state_holds(e->state) &&
                            (e->leaver.leaves ? restart_scopes_keep_leaving(e) : executor_scope(e) == s))
                                (void)orders_signal_later(m, e);
        }
        arm_regroup(m, s);
}

static bool on_its_way(const struct executor *e) {
        return e->state != EXECUTOR_RUNNING && !executor_state_ended(e->state);
}

bool restart_scopes_restarting(const struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                const struct scope *s = executor_scope(e);
                if (s && s->real > 0 && !e->gone && e->state != EXECUTOR_RUNNING)
                        return true;
        }
        return false;
}

static void say_up(struct manager *m, struct job *j, struct scope *s) {
        const char *role = name_of(j, s);
        uint32_t n = 0;

        if (!s->awaited || s->held_back)
                return;
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (executor_scope(e) != s)
                        continue;
                if (!e->gone && on_its_way(e))
                        return;
                /* Also one that is through already while the last of them begins. */
                n += e->state == EXECUTOR_RUNNING ||
                     (e->state == EXECUTOR_SUCCEEDED && e->placed_real >= s->real);
        }
        s->awaited = false;
        if (n > 0)
                record_event(m, j, "running", NULL, "%u executor%s of %s %s run%s again", n,
                             n == 1 ? "" : "s", *role ? "role" : "the job",
                             *role ? role : "(restartScope: job)", n == 1 ? "s" : "");
}

void restart_scopes_up(struct manager *m, struct job *j) {
        say_up(m, j, &j->scope);
        for (size_t i = 0; i < j->spec->n_roles; i++)
                say_up(m, j, j->roles[i].scope);
}

void restart_scopes_left(struct manager *m, struct executor *e) {
        struct scope *s = executor_scope(e);

        send_back(e);
        if (s->n_leaving > 0)
                s->n_leaving--;
        proceed(m, s);
}

static void reset(struct manager *m, struct job *j, const char *role, struct scope *s) {
        bool stored =
                s->real > 0 || s->regroup_real > 0 || s->history.n_failures > 0 || s->budget.n_failures > 0;

        sd_event_source_disable_unref(s->timer);
        *s = (struct scope){ .job = j };
        if (stored)
                record(m, j, role, s);
}

void restart_scopes_reset(struct manager *m, struct job *j) {
        reset(m, j, "", &j->scope);
        for (size_t i = 0; i < j->spec->n_roles; i++)
                reset(m, j, j->spec->roles[i].name, j->roles[i].scope);
}

static void recount(struct manager *m, struct job *j, struct scope *s) {
        s->n_leaving = 0;
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                s->n_leaving +=
                        executor_scope(e) == s && executor_state_holds(e->state) && e->end.fate == FATE_SCOPE;
        }
        proceed(m, s);
}

void restart_scopes_recount(struct manager *m, struct job *j) {
        recount(m, j, &j->scope);
        for (size_t i = 0; i < j->spec->n_roles; i++)
                recount(m, j, j->roles[i].scope);
}

/* ---- after a restart of masterd ---- */

int restart_scopes_load(void *manager, const struct scope_record *r) {
        struct job *j = manager_job(manager, r->job);
        const struct scope_state_record *state = &r->state;
        struct scope *s;

        if (!j)
                return 0;
        s = *r->role ? role_scope(j, r->role) : &j->scope;
        if (!s)
                return 0;
        s->restarts = state->restarts;
        s->real = state->real;
        s->due_real = state->due_real;
        s->history = history_load(&state->history);
        s->budget = history_load(&state->budget);
        s->regroup_real = state->regroup_real;
        return 0;
}

static void resume(struct manager *m, struct scope *s) {
        if (s->regroup_real > 0)
                arm_regroup(m, s);
        else
                proceed(m, s);
}

/* The executors are as they were loaded: those from before the scope's time go back, or are still leaving. */
void restart_scopes_resume(struct manager *m, struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                struct scope *s = executor_scope(e);
                if (s && s->real > 0 && !e->gone && on_its_way(e))
                        s->awaited = true;
                if (!s || s->real == 0 || e->attempt == 0 || e->placed_real >= s->real)
                        continue;
                s->held_back = true;
                s->awaited = true;
                if (executor_state_holds(e->state))
                        s->n_leaving++;
                else
                        send_back(e);
        }
        if (j->state == JOB_STOPPING || job_state_ended(j->state))
                return;
        resume(m, &j->scope);
        for (size_t i = 0; i < j->spec->n_roles; i++)
                resume(m, j->roles[i].scope);
}
