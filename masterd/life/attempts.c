/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of executors, from what agents say of them: they run, could not be started, are over. Invariants:
 * an ending is handled once per attempt; resources are released exactly when an executor leaves the states
 * that hold them. */
#include "masterd/life/attempts.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/judge.h"
#include "masterd/job/outcome.h"
#include "masterd/life/change.h"
#include "masterd/life/epochs.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/requeue.h"
#include "masterd/life/restarts.h"
#include "masterd/life/searches.h"
#include "masterd/life/suspension.h"
#include "masterd/life/usage.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/serving.h"

/* ---- starts ---- */

void attempts_found_running(struct manager *m, struct executor *e, sd_id128_t invocation,
                            uint64_t started_real) {
        e->orders.confirmed = true;
        if (e->state != EXECUTOR_PLACED && e->state != EXECUTOR_STARTING && e->state != EXECUTOR_STOPPING)
                return;
        e->invocation = invocation;
        e->started_real = started_real ? started_real : now_real();
        e->started_boot = now_boot();
        if (e->state == EXECUTOR_STOPPING)
                return;
        if (executor_transition(e, EXECUTOR_EVENT_STARTED) < 0)
                return;
        lifecycle_executor_changed(m, e);
        epochs_running(m, e);
        lifecycle_review(m, e->job);
        suspension_runs(m, e);
}

/* An executor that holds nothing any more. */
static void release(struct manager *m, struct executor *e) {
        feeding_gone(m, e);
        placement_release(m, e);
}

/* Back to PENDING under a new attempt number, for no fault of the executor. */
static void bounce(struct manager *m, struct executor *e, const char *why) {
        record_event(m, e->job, "executor-moved", e, "not started on %s: %s; placing it again", e->node->name,
                     why);
        release(m, e);
        /* The attempt itself is recorded as over: it never ran. */
        if (executor_transition(e, EXECUTOR_EVENT_KILLED) < 0)
                return;
        (void)text_set(&e->reason, "%s", why);
        e->ended_real = now_real();
        lifecycle_executor_changed(m, e);
        usage_count(m, e);
        TELL(m, executor_over, m, e);
        e->bounced = true;
        /* As any stop: the second time in a row it waits, or ports that are all taken would have it go round.
         */
        restarts_decide(m, e, EXECUTOR_EVENT_KILLED);
}

void attempts_start_answered(struct manager *m, struct executor *e, const struct start_result *result) {
        e->orders.confirmed = true;
        if (!result->error) {
                attempts_found_running(m, e, result->invocation, result->started_real);
                return;
        }
        if (!executor_state_holds(e->state))
                return;
        if (strcmp(result->error, SD_BUS_ERROR_NO_REPLY) == 0) /* no answer in all the time: asked again,
                                                                  where there is a link to ask on */
                (void)orders_start_later(m, e);
        /* Its record tells the rest; a link that broke, or an order older than the agent's registration, is
         * settled by the next registration. */
        if (strcmp(result->error, LINK_ERROR_ALREADY_RAN) == 0 ||
            strcmp(result->error, LINK_ERROR_STALE) == 0 ||
            strncmp(result->error, "org.freedesktop.DBus.Error.", 27) == 0 ||
            strncmp(result->error, "System.Error.", 13) == 0) {
                e->orders.confirmed = strcmp(result->error, LINK_ERROR_ALREADY_RAN) == 0;
                return;
        }
        if (strcmp(result->error, LINK_ERROR_PORT_TAKEN) == 0 && e->state != EXECUTOR_STOPPING) {
                placement_port_taken(m, e);
                bounce(m, e, result->message);
                return;
        }
        if (strcmp(result->error, LINK_ERROR_USER_FULL) == 0 && e->state != EXECUTOR_STOPPING) {
                bounce(m, e, result->message);
                return;
        }
        if (strcmp(result->error, LINK_ERROR_PROLOG) == 0 && e->state != EXECUTOR_STOPPING) {
                /* First, so that it is not placed there again. */
                TELL(m, prolog_failed, m, e->node, e->job, result->message);
                bounce(m, e, result->message);
                return;
        }
        if (strcmp(result->error, LINK_ERROR_NOT_SERVED) == 0 && e->state != EXECUTOR_STOPPING) {
                serving_refused(m, e->node, e->job->owner);
                if (serving_any(m, e->job->owner)) {
                        bounce(m, e, result->message);
                        return;
                }
        }
        if ((strcmp(result->error, LINK_ERROR_REFUSED) == 0 ||
             strcmp(result->error, LINK_ERROR_NOT_SERVED) == 0) &&
            e->state != EXECUTOR_STOPPING) {
                char reason[OUTCOME_TEXT_MAX];
                snprintf(reason, sizeof(reason), "%s refuses %s/%u: %s", e->node->name,
                         executor_role(e)->name, e->index, result->message);
                attempts_end(m, e, EXECUTOR_EVENT_KILLED, result->message);
                lifecycle_stop_job(m, e->job, JOB_EVENT_FAILED, reason);
                return;
        }
        attempts_end(m, e, e->state == EXECUTOR_STOPPING ? EXECUTOR_EVENT_KILLED : EXECUTOR_EVENT_FAILED,
                     result->message);
}

/* ---- ends of executors ---- */

void attempts_end(struct manager *m, struct executor *e, enum executor_event event, const char *text) {
        static const char *const kinds[_EXECUTOR_EVENT_MAX] = {
                [EXECUTOR_EVENT_SUCCEEDED] = "executor-succeeded",
                [EXECUTOR_EVENT_FAILED] = "executor-failed",
                [EXECUTOR_EVENT_KILLED] = "executor-stopped",
                [EXECUTOR_EVENT_LOST] = "executor-lost",
        };
        enum executor_state before = e->state;
        struct job *j = e->job;

        release(m, e);
        if (executor_transition(e, event) < 0)
                return;
        e->orders.starting = e->stuck = false;
        e->ended_real = e->ended_real ? e->ended_real : now_real();
        (void)text_set(&e->reason, "%s", text);
        lifecycle_executor_changed(m, e);
        usage_count(m, e);
        TELL(m, executor_over, m, e);
        record_event(m, j, kinds[event], e, "attempt %u on %s: %s", e->attempt, e->node ? e->node->name : "?",
                     text);
        if (event == EXECUTOR_EVENT_FAILED)
                TELL(m, executor_failed, m, e);
        TELL(m, executor_ended, m, e, event, before);
        if (e->leaver.leaves) {
                change_gone(m, e);
                lifecycle_review(m, j);
                manager_schedule(m);
                return;
        }
        if (j->state == JOB_STOPPING)
                executor_set_gone(e);
        else if (event == EXECUTOR_EVENT_KILLED && e->orders.stopped)
                restarts_moved(m, e);
        else
                restarts_decide(m, e, event);
        feeding_settled(m, e);
        lifecycle_review(m, j);
        manager_schedule(m); /* what it held is free for others */
}

/* That the report is of, if that is not over. */
static struct executor *reported(struct job *j, const struct node *node, const struct exit_report *report) {
        struct executor *e = job_attempt(j, report->id.role, report->id.index, report->id.attempt);

        return e && executor_state_holds(e->state) && e->node == node ? e : NULL;
}

static enum executor_event outcome_for(const struct executor *e, const struct exit_report *report,
                                       char text[static OUTCOME_TEXT_MAX]) {
        uint64_t limit = executor_role(e)->time_limit_usec;

        return outcome_of(report, executor_memory(e), limit == UINT64_MAX ? 0 : limit, text);
}

static void hold_against_site(const struct manager *m, struct judging *how) {
        how->site = m->conf.exit_rules.rules;
        how->n_site = m->conf.exit_rules.n;
}

size_t attempts_asks(struct manager *m, struct node *node, const struct exit_report *report,
                     const char *ret_patterns[static FIND_PATTERNS_MAX], struct executor **ret) {
        struct job *j = manager_job(m, report->id.job);
        char text[OUTCOME_TEXT_MAX];
        struct judging how = {};

        *ret = j && sd_id128_equal(j->uid, report->id.job_uid) ? reported(j, node, report) : NULL;
        if (!*ret)
                return 0;
        hold_against_site(m, &how);
        return judge_questions(*ret, report, outcome_for(*ret, report, text), &how, ret_patterns);
}

void attempts_exited(struct manager *m, struct node *node, const struct exit_report *report,
                     struct judging *found) {
        struct job *j = manager_job(m, report->id.job);
        struct executor *e = NULL;
        enum executor_event event;
        char text[OUTCOME_TEXT_MAX];
        bool asks;

        if (!j || !sd_id128_equal(j->uid, report->id.job_uid))
                return;
        if (feeding_scan_exited(m, j, node, report))
                return;
        e = reported(j, node, report);
        if (!e)
                return;
        event = outcome_for(e, report, text);
        if (e->orders.stopped && event == EXECUTOR_EVENT_SUCCEEDED && j->state == JOB_STOPPING &&
            j->verdict == JOB_EVENT_KILLED)
                event = EXECUTOR_EVENT_KILLED;
        if (event == EXECUTOR_EVENT_LOST && e->orders.stopped)
                event = EXECUTOR_EVENT_KILLED;
        hold_against_site(m, found);
        found->trial = searches_has(m, j);
        judge_exit(e, report, found, &event, text);
        asks = requeue_asks(e);
        snprintf(e->end.result, sizeof(e->end.result), "%s", report->result);
        e->end.status = report->status;
        e->end.memory_peak = report->memory_peak;
        e->end.cpu_usec = report->cpu_usec;
        e->end.io_read = report->io_read;
        e->end.io_write = report->io_write;
        e->ended_real = report->ended_real;
        if (report->started_real)
                e->started_real = report->started_real;
        if (!sd_id128_is_null(report->invocation))
                e->invocation = report->invocation;
        if (asks) {
                requeue_asked(m, e);
                if (!executor_state_holds(e->state)) /* its host was taken for lost: that was its end */
                        return;
        }
        attempts_end(m, e, event, text);
}

void attempts_ready(struct manager *m, struct node *node, const struct executor_id *id, bool ready,
                    const char *why) {
        struct job *j = manager_job(m, id->job);
        struct executor *e =
                j && sd_id128_equal(j->uid, id->job_uid) ? job_executor(j, id->role, id->index) : NULL;

        if (e && e->attempt == id->attempt && e->node == node)
                restarts_ready(m, e, ready, why);
}

void attempts_given_up(struct manager *m, struct executor *e, const char *text) {
        char why[OUTCOME_TEXT_MAX];

        snprintf(why, sizeof(why), "does not die: %.*s", utf8_fit(text, OUTCOME_TEXT_MAX - 32), text);
        attempts_end(m, e, EXECUTOR_EVENT_KILLED, why);
}

void attempts_vanished(struct manager *m, struct executor *e) {
        if (!executor_state_holds(e->state))
                return;
        if (e->state == EXECUTOR_STOPPING)
                attempts_end(m, e, EXECUTOR_EVENT_KILLED, "stopped, without a record");
        else
                attempts_end(m, e, EXECUTOR_EVENT_LOST,
                             "neither the unit nor a record of it is on the host (rebooted?)");
}

void attempts_node_lost(struct manager *m, struct executor *e, bool declared) {
        char text[128];

        if (e->job->spec->on_partition == SPEC_PARTITION_WAIT && !declared && e->job->state != JOB_STOPPING) {
                record_event(m, e->job, "waits-for-host", e, "%s is lost; waiting for it (onPartition: wait)",
                             e->node->name);
                return;
        }
        snprintf(text, sizeof(text), declared ? "%s was declared dead" : "%s is lost", e->node->name);
        attempts_end(m, e, e->state == EXECUTOR_STOPPING ? EXECUTOR_EVENT_KILLED : EXECUTOR_EVENT_LOST, text);
}
