/* SPDX-License-Identifier: Apache-2.0 */
/* A job's time limit. Invariant: its timer runs only while it may still change how the job ends. */
#include "masterd/life/time-limit.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "masterd/core/manager.h"
#include "masterd/job/suspend.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/requeue.h"

/* Whether its time limit may still change how it ends. */
static bool limit_matters(const struct job *j) {
        return !j->array && /* each of its elements has it */
               !j->requeue.begun && (j->state != JOB_STOPPING || j->verdict == JOB_EVENT_REQUEUE) &&
               (j->state != JOB_QUEUED || !job_held_back(j));
}

void time_limit_review(struct job *j) {
        if (!limit_matters(j))
                j->slot.timer = sd_event_source_disable_unref(j->slot.timer);
}

static int on_limit(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;
        char limit[FORMAT_DURATION_MAX], reason[128];

        j->slot.timer = sd_event_source_disable_unref(j->slot.timer);
        if (!limit_matters(j))
                return 0;
        if (j->spec->waits.requeue && j->state != JOB_QUEUED) {
                requeue_time(j->manager, j);
                return 0;
        }
        snprintf(reason, sizeof(reason), "ran longer than its time limit (%s)",
                 format_duration(j->spec->time_limit_usec, limit, sizeof(limit)));
        lifecycle_stop_job(j->manager, j, JOB_EVENT_FAILED, reason);
        return 0;
}

void time_limit_arm(struct manager *m, struct job *j) {
        uint64_t used = usec_sub(now_real(), j->slot.since_real);

        requeue_arm_signal(m, j);
        if (j->spec->time_limit_usec == UINT64_MAX || j->slot.timer || j->slot.since_real == 0 ||
            !limit_matters(j))
                return;
        (void)sd_event_add_time_relative(m->event, &j->slot.timer, CLOCK_BOOTTIME,
                                         usec_sub(j->spec->time_limit_usec, used), USEC_PER_MSEC, on_limit,
                                         j);
}
