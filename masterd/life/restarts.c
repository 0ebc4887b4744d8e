/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the end of an executor. Invariants: an ended executor either gets another attempt or is marked
 * as gone, once; a failure is counted once, with the end that it is. */
#include "masterd/life/restarts.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/judge.h"
#include "masterd/job/outcome.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/restart-scopes.h"
#include "masterd/life/searches.h"
#include "masterd/queue/queueing.h"

static int on_restart(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        e->restart.timer = sd_event_source_disable_unref(e->restart.timer);
        placement_enqueue(e->job->manager, e->job);
        return 0;
}

static void restart(struct manager *m, struct executor *e, uint64_t delay_usec) {
        char delay[FORMAT_DURATION_MAX];

        if (executor_scope(e)) {
                restart_scopes_restart(m, e, delay_usec);
                return;
        }
        if (executor_again(e) < 0)
                return;
        if (delay_usec == 0) {
                placement_enqueue(m, e->job);
                return;
        }
        record_event(m, e->job, "executor-waits", e, "starts again in %s",
                     format_duration(delay_usec, delay, sizeof(delay)));
        if (sd_event_add_time_relative(m->event, &e->restart.timer, CLOCK_BOOTTIME, delay_usec, 1, on_restart,
                                       e) < 0)
                placement_enqueue(m, e->job); /* rather early than never */
}

/* Failed for good; written down, since its scope may start again later. */
static void leave(struct manager *m, struct executor *e) {
        if (e->state == EXECUTOR_FAILED) {
                e->end.fate = FATE_LEFT;
                record_executor(m, e);
        }
        executor_set_gone(e);
}

static struct failover_policy policy_of(const struct executor *e) {
        const struct role_spec *spec = executor_role(e);

        return (struct failover_policy){
                .restart = (enum restart_type)spec->failover.restart_type,
                .max_failures = spec->failover.max_failure_times,
                .exhausted = (enum failure_policy)spec->failover.max_failure_policy,
                .window_usec = e->job->spec->failure_window_usec,
                .backoff_initial_usec = e->job->spec->backoff.initial_usec,
                .backoff_max_usec = e->job->spec->backoff.max_usec,
        };
}

/* What is left of the role's budget is counted on its own: whoever of the role fails. */
static bool over_budget(struct executor *e, const struct failover_policy *policy) {
        struct failover_history *budget = &e->job->roles[e->role].scope->budget;
        uint32_t max = spec_role_budget(e->job->spec, executor_role(e));
        uint64_t now = now_boot();

        if (max == 0)
                return false;
        (void)failover_count(policy, budget, now);
        failover_remember(budget, now);
        return failover_count(policy, budget, now) >= max;
}

static void act(struct manager *m, struct executor *e, enum failover_action action, uint64_t delay,
                const char *reason) {
        switch (action) {
        case FAILOVER_RESTART:
                restart(m, e, delay);
                break;
        case FAILOVER_DONE:
                executor_set_gone(e);
                break;
        case FAILOVER_LEAVE:
                leave(m, e);
                break;
        case FAILOVER_FAIL_APP:
                executor_set_gone(e);
                TELL(m, executor_failed, m, e);
                lifecycle_stop_job(m, e->job, JOB_EVENT_FAILED, reason);
                break;
        case FAILOVER_FAIL_ATTEMPT:
                executor_set_gone(e);
                TELL(m, executor_failed, m, e);
                lifecycle_fail_attempt(m, e->job, reason);
                break;
        }
}

/* After an end whose fate says what follows. False: its failover policy does. */
static bool settled_by_fate(struct manager *m, struct executor *e, const char *reason) {
        switch (e->end.fate) {
        case FATE_SCOPE:
                restart_scopes_left(m, e);
                return true;
        case FATE_IGNORE:
        case FATE_LEFT:
                executor_set_gone(e);
                return true;
        case FATE_FAIL:
                act(m, e, FAILOVER_FAIL_APP, 0, reason);
                return true;
        case FATE_REQUEUE:
                /* Where it can be, the job is being stopped for that already. */
                executor_set_gone(e);
                return true;
        case FATE_INVALID:
                executor_set_gone(e);
                searches_invalid(m, e->job);
                return true;
        case FATE_GROWN:
                e->memory = judge_more_memory(&executor_role(e)->failure.elastic, executor_memory(e));
                record_executor(m, e);
                return false;
        default:
                return false;
        }
}

static void decide(struct manager *m, struct executor *e, enum executor_event event, bool count) {
        struct failover_policy policy = policy_of(e);
        struct scope *scope = executor_scope(e);
        struct failover_history *history = scope ? &scope->history : &e->restart.history;
        char reason[OUTCOME_TEXT_MAX + 64], why[sizeof(reason) + 96];
        bool failed = event == EXECUTOR_EVENT_FAILED && fate_counts(e->end.fate), spent;
        enum failover_action action;
        uint64_t delay = 0;

        snprintf(reason, sizeof(reason), "%s/%u on %s: %s", executor_role(e)->name, e->index,
                 e->node ? e->node->name : "?", e->reason ? e->reason : "");
        if (settled_by_fate(m, e, reason))
                return;
        action = failover_decide(&policy, history,
                                 failed || event != EXECUTOR_EVENT_FAILED ? event : EXECUTOR_EVENT_KILLED,
                                 e->started_boot, now_boot(), &delay);
        if (failed && count)
                TELL(m, executor_failure_counted, m, e);
        spent = failed && count && over_budget(e, &policy);
        if (count && (scope || (failed && spec_role_budget(e->job->spec, executor_role(e)) > 0)))
                restart_scopes_changed(m, e);
        if (spent && action == FAILOVER_RESTART) {
                snprintf(why, sizeof(why),
                         "%u failures of role %s in all (maxGlobalRoleFailureTimes); the last: %s",
                         spec_role_budget(e->job->spec, executor_role(e)), executor_role(e)->name, reason);
                act(m, e,
                    policy.exhausted == FAILURE_FAIL_APP       ? FAILOVER_FAIL_APP
                    : policy.exhausted == FAILURE_FAIL_ATTEMPT ? FAILOVER_FAIL_ATTEMPT
                                                               : FAILOVER_LEAVE,
                    0, why);
                return;
        }
        act(m, e, action, delay, reason);
}

void restarts_decide(struct manager *m, struct executor *e, enum executor_event event) {
        decide(m, e, event, true);
}

void restarts_moved(struct manager *m, struct executor *e) {
        if (e->end.fate == FATE_SCOPE)
                restart_scopes_left(m, e);
        else
                restart(m, e, 0);
}

void restarts_redecide(struct manager *m, struct executor *e) {
        static const enum executor_event events[_EXECUTOR_STATE_MAX] = {
                [EXECUTOR_SUCCEEDED] = EXECUTOR_EVENT_SUCCEEDED,
                [EXECUTOR_FAILED] = EXECUTOR_EVENT_FAILED,
                [EXECUTOR_KILLED] = EXECUTOR_EVENT_KILLED,
                [EXECUTOR_LOST] = EXECUTOR_EVENT_LOST,
        };

        if (e->job->state == JOB_STOPPING)
                executor_set_gone(e);
        else if (e->state == EXECUTOR_KILLED && e->orders.stopped)
                restarts_moved(m, e);
        else if (e->end.fate == FATE_GROWN) { /* what it has now is on disk with its end */
                e->end.fate = FATE_RESTART;
                decide(m, e, EXECUTOR_EVENT_KILLED, false);
        } else
                decide(m, e, events[e->state], false);
}

/* ---- readiness ---- */

void restarts_ready(struct manager *m, struct executor *e, bool ready, const char *why) {
        if (e->state == EXECUTOR_STOPPING || !executor_state_holds(e->state) || e->ready)
                return;
        if (ready) {
                e->ready = true;
                lifecycle_review(m, e->job);
                return;
        }
        e->end.fate = FATE_NOT_READY;
        (void)text_set(&e->reason, "%s", why);
        lifecycle_stop_executor(m, e,
                                "it was not ready in time"); /* why goes with the message that said it */
}
