/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: the timer runs only while the job waits for its first place; since when is recorded before. */
#include "masterd/queue/start-within.h"

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/job.h"
#include "masterd/job/suspend.h"

static bool counts(const struct job *j) {
        return j->spec->waits.start_within_usec < UINT64_MAX && j->state == JOB_QUEUED &&
               j->started_real == 0 && !job_held_back(j);
}

uint64_t start_within_real(const struct job *j) {
        return j->queue.within_timer ? usec_add(j->queue.placeable_real, j->spec->waits.start_within_usec)
                                     : 0;
}

static int on_over(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;
        char limit[FORMAT_DURATION_MAX];
        _cleanup_free_ char *reason = NULL;

        start_within_disarm(j);
        if (!counts(j))
                return 0;
        (void)text_set(&reason, "it was not started within %s (startWithin); it waited: %s",
                       format_duration(j->spec->waits.start_within_usec, limit, sizeof(limit)),
                       j->reason ?: "for its turn");
        j->manager->up->job_stop(j->manager, j, JOB_EVENT_FAILED,
                                 reason ?: "it was not started in time (startWithin)");
        return 0;
}

void start_within_disarm(struct job *j) {
        j->queue.within_timer = sd_event_source_disable_unref(j->queue.within_timer);
}

void start_within_arm(struct manager *m, struct job *j) {
        start_within_disarm(j);
        if (!counts(j))
                return;
        if (j->queue.placeable_real == 0) {
                j->queue.placeable_real = now_real();
                record_job(m, j, false);
        }
        if (sd_event_add_time_relative(
                    m->event, &j->queue.within_timer, CLOCK_BOOTTIME,
                    usec_sub(usec_add(j->queue.placeable_real, j->spec->waits.start_within_usec), now_real()),
                    0, on_over, j) < 0)
                (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
}
