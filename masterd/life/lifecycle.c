/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to jobs. Invariants: a job ends once; a stop that somebody asked for is neither failure nor
 * success. */
#include "masterd/life/lifecycle.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/outcome.h"
#include "masterd/job/verdict.h"
#include "masterd/life/arrays.h"
#include "masterd/life/attempts.h"
#include "masterd/life/depend.h"
#include "masterd/life/history.h"
#include "masterd/life/requeue.h"
#include "masterd/life/restart-scopes.h"
#include "masterd/life/rolling.h"
#include "masterd/life/suspension.h"
#include "masterd/life/time-limit.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"

void lifecycle_executor_changed(struct manager *m, struct executor *e) {
        record_executor(m, e);
        notice_executor_changed(m, e);
}

void lifecycle_job_changed(struct manager *m, struct job *j) {
        record_job(m, j, false);
        notice_job_changed(m, j);
        arrays_job_changed(m, j);
        depend_job_changed(m, j);
}

/* ---- ends of jobs ---- */

static void drop_on(struct manager *m, struct job *j, struct node *node) {
        if (!node || node->drop_told == j->number)
                return;
        node->drop_told = j->number;
        (void)orders_drop_job_later(m, node, j->uid, j->number);
}

static void drop_nodes(struct manager *m, struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++)
                drop_on(m, j, j->executors[i]->node);
        for (size_t i = 0; i < j->hosts.n_left; i++)
                drop_on(m, j, j->hosts.left[i]);
}

static void finish_job(struct manager *m, struct job *j) {
        char took[FORMAT_DURATION_MAX];

        if (job_transition(j, j->verdict) < 0)
                return;
        TELL(m, job_attempt_over, m, j);
        if (j->state == JOB_QUEUED) {
                /* Another attempt of the job: everything from the start, but the data that is done stays
                 * done. */
                j->attempt++;
                j->attempt_real = MAX(now_real(), j->attempt_real + 1);
                j->order_step = 0;
                for (uint32_t i = 0; i < j->n_executors; i++) {
                        struct executor *e = j->executors[i];
                        struct role *r = j->roles + e->role;
                        j->attempt_real =
                                MAX(j->attempt_real, e->placed_real + 1); /* also when a clock went back */
                        if (e->state != EXECUTOR_PENDING)
                                (void)executor_again(e);
                        e->gone = false;
                        r->n_succeeded = r->n_failed = r->n_ignored = 0;
                        e->ready = false;
                        e->end.fate = FATE_NONE;
                        e->restart.history = (struct failover_history){};
                        e->orders.stopped = false;
                }
                restart_scopes_reset(m, j);
                j->rolling = (struct job_rolling){};
                feeding_restart(m, j);
                if (j->requeue.begun)
                        requeue_begin(m, j);
                else {
                        requeue_plan_over(j);
                        record_event(m, j, "attempt", NULL, "attempt %u of %u begins",
                                     j->attempt - j->requeue.n, j->spec->max_app_attempts);
                }
                queueing_again(m, j);
                suspension_queued(m, j);
                lifecycle_job_changed(m, j);
                return;
        }
        j->ended_real = now_real();
        j->slot.timer = sd_event_source_disable_unref(j->slot.timer);
        j->grace_timer = sd_event_source_disable_unref(j->grace_timer);
        requeue_drop_timers(j);
        queueing_forget(m, j);
        store_delete_secrets(m->store, j->number);
        feeding_ended(m, j);
        record_event(m, j, "job-ended", NULL, "%s after %s%s%s", job_state_to_string(j->state),
                     format_duration(
                             usec_sub(j->ended_real, j->started_real ? j->started_real : j->submitted_real),
                             took, sizeof(took)),
                     j->reason ? ": " : "", j->reason ? j->reason : "");
        drop_nodes(m, j);
        TELL(m, job_ended, m, j);
        lifecycle_job_changed(m, j);
        history_job_ended(m, j);
        arrays_job_ended(m, j);
        depend_job_ended(m, j);
}

void lifecycle_cancel(struct executor *e) {
        e->restart.timer = sd_event_source_disable_unref(e->restart.timer);
        (void)executor_transition(e, EXECUTOR_EVENT_KILLED);
        executor_set_gone(e);
}

void lifecycle_stop_executor(struct manager *m, struct executor *e, const char *why) {
        if (e->state == EXECUTOR_PENDING) {
                lifecycle_cancel(e);
                if (e->attempt > 0)
                        notice_executor_changed(m, e); /* no attempt to record: the last one is on disk */
                return;
        }
        if (!executor_state_holds(e->state) || e->orders.stopped)
                return;
        if (executor_transition(e, EXECUTOR_EVENT_STOP) < 0)
                return;
        e->orders.stopped = true;
        e->orders.stop_why = why;
        lifecycle_executor_changed(m, e);
        (void)orders_stop_later(m, e);
}

void lifecycle_move(struct manager *m, struct executor *e, const char *why, const char *text) {
        if (!executor_state_holds(e->state) || e->orders.stopped)
                return;
        record_event(m, e->job, "executor-moves", e, "leaves %s: %s", e->node->name, text);
        lifecycle_stop_executor(m, e, why);
}

void lifecycle_stop_job(struct manager *m, struct job *j, enum job_event verdict, const char *reason) {
        static const char *const why[_JOB_EVENT_MAX] = {
                [JOB_EVENT_SUCCEEDED] = "the job has succeeded",
                [JOB_EVENT_FAILED] = "the job has failed",
                [JOB_EVENT_KILLED] = "the job was killed",
                [JOB_EVENT_REQUEUE] = "this attempt of the job has failed",
        };

        struct executor *e, *next;

        if (job_state_ended(j->state))
                return;
        if (j->state == JOB_STOPPING) {
                /* Another attempt is not begun when meanwhile somebody killed the job, or its time was up. */
                if (verdict != JOB_EVENT_SUCCEEDED && verdict != j->verdict &&
                    j->verdict == JOB_EVENT_REQUEUE) {
                        j->verdict = verdict;
                        j->requeue.begun = false;
                        time_limit_review(j);
                        (void)text_set(&j->reason, "%s", reason);
                        lifecycle_job_changed(m, j);
                }
                return;
        }
        if (job_transition(j, JOB_EVENT_STOP) < 0)
                return;
        j->verdict = verdict;
        j->held.saving = false;
        time_limit_review(j);
        suspension_stopping(j);
        (void)text_set(&j->reason, "%s", reason);
        requeue_drop_timers(j);
        requeue_not_needed(m, j);
        placement_dequeue(m, j);
        queueing_leaving(m, j, requeue_time_needed(j));
        for (uint32_t i = 0; i < j->n_executors; i++)
                lifecycle_stop_executor(m, j->executors[i],
                                        j->requeue.begun ? "the job waits again" : why[verdict]);
        feeding_stop(m, j);
        lifecycle_job_changed(m, j);
        arrays_stop(m, j, reason);
        /* Nobody will answer for those on a lost host, so they do not hold up the end. */
        for (uint32_t i = 0; i < j->n_executors && j->state == JOB_STOPPING; i++)
                if (j->executors[i]->state == EXECUTOR_STOPPING && j->executors[i]->node->state == NODE_LOST)
                        attempts_end(m, j->executors[i], EXECUTOR_EVENT_KILLED, "stopped; its host is lost");
        DL_FOREACH_SAFE2 (j->leavers.list, e, next, leaver.next)
                if (j->state == JOB_STOPPING && e->node->state == NODE_LOST)
                        attempts_end(m, e, EXECUTOR_EVENT_KILLED, "stopped; its host is lost");
        if (j->state == JOB_STOPPING && job_active(j) == 0)
                finish_job(m, j);
}

/* Those that are being stopped already hear of it again: a second order may shorten their grace. */
static void hurry(struct manager *m, struct executor *e) {
        if (e->state == EXECUTOR_STOPPING && e->orders.stopped)
                (void)orders_stop_later(m, e);
}

void lifecycle_kill_job(struct manager *m, struct job *j, uint64_t grace_usec, const char *reason) {
        bool stopping = j->state == JOB_STOPPING, shorter = grace_usec < job_grace(j);
        struct executor *e;

        if (job_state_ended(j->state) || (stopping && !shorter)) {
                lifecycle_stop_job(m, j, JOB_EVENT_KILLED, reason);
                return;
        }
        j->kill_grace = grace_usec + 1;
        if (stopping) {
                lifecycle_job_changed(m, j);
                arrays_stop(m, j, reason);
        }
        for (uint32_t i = 0; shorter && i < j->n_executors; i++)
                hurry(m, j->executors[i]);
        DL_FOREACH2 (j->leavers.list, e, leaver.next)
                if (shorter)
                        hurry(m, e);
        lifecycle_stop_job(m, j, JOB_EVENT_KILLED, reason);
}

void lifecycle_fail_attempt(struct manager *m, struct job *j, const char *reason) {
        bool again = j->attempt - j->requeue.n < j->spec->max_app_attempts;

        if (again && j->state != JOB_STOPPING && !job_state_ended(j->state))
                record_event(m, j, "attempt-failed", NULL, "attempt %u of %u failed: %s",
                             j->attempt - j->requeue.n, j->spec->max_app_attempts, reason);
        lifecycle_stop_job(m, j, again ? JOB_EVENT_REQUEUE : JOB_EVENT_FAILED, reason);
}

/* ---- verdicts ---- */

/* The verdict, and which executor of the role failed first and how. */
static void say_first_failure(const struct role *r, const char *verdict, char *buf, size_t size) {
        const struct executor *first = NULL;

        for (uint32_t i = 0; i < r->spec->num; i++) {
                const struct executor *e = r->executors[i];
                if (e->gone && (e->state == EXECUTOR_FAILED || e->state == EXECUTOR_LOST) &&
                    (!first || e->ended_real < first->ended_real))
                        first = e;
        }
        if (first)
                snprintf(buf, size, "%s; first: %s/%u on %s: %s", verdict, r->spec->name, first->index,
                         first->node ? first->node->name : "a host that was removed",
                         first->reason ? first->reason : "");
        else
                snprintf(buf, size, "%s", verdict);
}

static bool is_elastic_gang(const struct job *j, const struct role_spec *role) {
        if (role->min_num == role->num || j->spec->schedule_policy == SCHEDULE_POLICY_DYNAMIC)
                return false;
        if (role->input_policy == INPUT_STREAMING && j->data && !j->data->finished) /* there is work left */
                return false;
        for (size_t i = 0; i < j->spec->n_order && j->spec->schedule_policy == SCHEDULE_POLICY_ORDER; i++)
                if (strcmp(j->spec->order[i].role, role->name) == 0)
                        return j->spec->order[i].schedule_type != SCHEDULE_DYNAMIC;
        return true;
}

/* One of a gang has done its work: whoever was never started with it would find nobody to work with. */
static void close_gang(struct manager *m, struct job *j, struct role *r) {
        uint32_t n = 0;

        if (r->n_succeeded == 0 || r->n_state[EXECUTOR_PENDING] == 0 || !is_elastic_gang(j, r->spec))
                return;
        for (uint32_t i = 0; i < r->spec->num; i++) {
                struct executor *e = r->executors[i];
                if (e->state != EXECUTOR_PENDING || !executor_is_new(e))
                        continue;
                e->end.fate = FATE_IGNORE;
                lifecycle_cancel(e);
                if (e->attempt > 0)
                        notice_executor_changed(m, e);
                n++;
        }
        if (n > 0)
                record_event(m, j, "gang-closed", NULL,
                             "%u executor%s of role %s that ha%s not been placed %s not wanted any more: "
                             "another one has "
                             "succeeded",
                             n, n == 1 ? "" : "s", r->spec->name, n == 1 ? "s" : "ve", n == 1 ? "is" : "are");
}

/* Its executors did what was asked of them; its data may not have. */
static void succeed(struct manager *m, struct job *j, const char *text) {
        char reason[FEEDING_SHORT_MAX];

        if (feeding_short(j, reason, sizeof(reason)))
                lifecycle_stop_job(m, j, JOB_EVENT_FAILED, reason);
        else
                lifecycle_stop_job(m, j, JOB_EVENT_SUCCEEDED, text);
}

void lifecycle_review(struct manager *m, struct job *j) {
        struct role_count counts[SPEC_ROLES_MAX];
        char text[VERDICT_TEXT_MAX], reason[VERDICT_TEXT_MAX + OUTCOME_TEXT_MAX + 128];
        size_t role;

        if (j->state == JOB_STOPPING && job_active(j) == 0) {
                finish_job(m, j);
                return;
        }
        if (j->array || (j->state != JOB_STARTING && !job_state_up(j->state)))
                return;
        for (size_t i = 0; i < j->spec->n_roles; i++)
                close_gang(m, j, j->roles + i);
        for (size_t i = 0; i < j->spec->n_roles; i++)
                counts[i] = (struct role_count){ .name = j->spec->roles[i].name,
                                                 .wanted = j->spec->roles[i].num - j->roles[i].n_ignored,
                                                 .success_percent = j->spec->roles[i].success_percent,
                                                 .fail_percent = j->spec->roles[i].failure.fail_percent,
                                                 .succeeded = j->roles[i].n_succeeded,
                                                 .failed = j->roles[i].n_failed };
        switch (verdict_of(counts, j->spec->n_roles, &role, text)) {
        case VERDICT_SUCCEEDED:
                succeed(m, j, text);
                return;
        case VERDICT_FAILED:
                say_first_failure(j->roles + role, text, reason, sizeof(reason));
                lifecycle_fail_attempt(m, j, reason);
                return;
        case VERDICT_GO_ON:
                break;
        }
        if (feeding_decides(j)) {
                succeed(m, j, "all data is through");
                return;
        }
        if (j->state == JOB_STARTING && job_all_up(j)) {
                if (job_transition(j, JOB_EVENT_UP) < 0)
                        return;
                (void)text_set(&j->reason, NULL);
                record_event(m, j, "running", NULL, "%u executor%s", job_running(j),
                             job_running(j) == 1 ? " runs" : "s run");
                lifecycle_job_changed(m, j);
        }
        if (j->state == JOB_RUNNING)
                restart_scopes_up(m, j);
        if (j->state == JOB_RUNNING && j->reason && !restart_scopes_restarting(j)) {
                (void)text_set(&j->reason, NULL);
                lifecycle_job_changed(m, j);
        }
        if (j->state == JOB_RUNNING && j->first_error && job_made_good(j)) {
                (void)text_set(&j->first_error, NULL);
                lifecycle_job_changed(m, j);
        }
        rolling_go_on(m, j);
        if (j->spec->schedule_policy == SCHEDULE_POLICY_ORDER)
                placement_enqueue(m, j); /* the next role's turn may have come */
}
