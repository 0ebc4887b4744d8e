/* SPDX-License-Identifier: Apache-2.0 */
/* How a person holds a job. masterd/life/suspension.h holds it and lets it go. */
#pragma once

#include "masterd/job/job.h"

/* On disk: new ones at the end. */
enum suspend_mode {
        SUSPEND_DATA,   /* SUSPENDED: nothing is handed out; executors run */
        SUSPEND_FREEZE, /* SUSPENDED: and their processes are frozen; memory and GPUs stay theirs */
        SUSPEND_STOP,   /* QUEUED: executors were stopped, and nothing is placed until the job is resumed */
        SUSPEND_PARK,   /* the same, but that the search of this trial does it, and no person resumes it */
        _SUSPEND_MODE_MAX,
        _SUSPEND_MODE_INVALID = -22
};
static inline bool job_held_as(const struct job *j, enum suspend_mode mode) {
        return j->held.mode == (uint8_t)mode + 1;
}

/* The job is held while it waits: it is not to be placed. */
static inline bool job_held_back(const struct job *j) {
        return job_held_as(j, SUSPEND_STOP) || job_held_as(j, SUSPEND_PARK);
}
/* A trial that its search has parked, and that has let go of all that it held. */
static inline bool job_parked(const struct job *j) {
        return j->state == JOB_QUEUED && job_held_as(j, SUSPEND_PARK);
}

/* Its executors' processes are to be frozen. */
static inline bool job_frozen(const struct job *j) {
        return j->state == JOB_SUSPENDED && job_held_as(j, SUSPEND_FREEZE);
}
