/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the end of an executor. Invariant: an ended executor either gets another attempt or is marked
 * as gone, once. */
#include "masterd/restarts.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "masterd/job/outcome.h"
#include "masterd/lifecycle.h"
#include "masterd/logs.h"
#include "masterd/manager.h"
#include "masterd/queueing.h"
#include "masterd/record.h"

static int on_restart(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        e->restart_timer = sd_event_source_disable_unref(e->restart_timer);
        placement_enqueue(e->job->manager, e->job);
        return 0;
}

static void restart(struct manager *m, struct executor *e, uint64_t delay_usec) {
        char delay[FORMAT_DURATION_MAX];

        if (executor_again(e) < 0)
                return;
        if (delay_usec == 0) {
                placement_enqueue(m, e->job);
                return;
        }
        record_event(m, e->job, "executor-waits", e, "starts again in %s",
                     format_duration(delay_usec, delay, sizeof(delay)));
        if (sd_event_add_time_relative(m->event, &e->restart_timer, CLOCK_BOOTTIME, delay_usec, 1, on_restart,
                                       e) < 0)
                placement_enqueue(m, e->job); /* rather early than never */
}

void restarts_decide(struct manager *m, struct executor *e, enum executor_event event) {
        const struct role_spec *spec = executor_role(e);
        struct failover_policy policy = {
                .restart = (enum restart_type)spec->failover.restart_type,
                .max_failures = spec->failover.max_failure_times,
                .exhausted = (enum failure_policy)spec->failover.max_failure_policy,
                .window_usec = e->job->spec->failure_window_usec,
                .backoff_initial_usec = e->job->spec->backoff.initial_usec,
                .backoff_max_usec = e->job->spec->backoff.max_usec,
        };
        char reason[OUTCOME_TEXT_MAX + 64];
        uint64_t delay = 0;
        enum failover_action action =
                failover_decide(&policy, &e->history, event, e->started_boot, now_boot(), &delay);

        snprintf(reason, sizeof(reason), "%s/%u on %s: %s", spec->name, e->index,
                 e->node ? e->node->name : "?", e->reason ? e->reason : "");
        switch (action) {
        case FAILOVER_RESTART:
                restart(m, e, delay);
                break;
        case FAILOVER_DONE:
        case FAILOVER_LEAVE:
                executor_set_gone(e);
                break;
        case FAILOVER_FAIL_APP:
                executor_set_gone(e);
                logs_note_failure(m, e);
                lifecycle_stop_job(m, e->job, JOB_EVENT_FAILED, reason);
                break;
        case FAILOVER_FAIL_ATTEMPT:
                executor_set_gone(e);
                logs_note_failure(m, e);
                lifecycle_fail_attempt(m, e->job, reason);
                break;
        }
}

void restarts_moved(struct manager *m, struct executor *e) {
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
        else if (e->state == EXECUTOR_KILLED && e->stop_ordered)
                restarts_moved(m, e);
        else
                restarts_decide(m, e, events[e->state]);
}
