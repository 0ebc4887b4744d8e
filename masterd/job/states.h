/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a job and of an executor attempt, as tables. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum job_state {
        JOB_SUBMITTED,
        JOB_QUEUED,
        JOB_STARTING,
        JOB_RUNNING,
        JOB_SUSPENDED, /* its executors run, its data is held back */
        JOB_STOPPING,
        JOB_SUCCEEDED,
        JOB_FAILED,
        JOB_KILLED,
        _JOB_STATE_MAX,
        _JOB_STATE_INVALID = -22,
};

enum job_event {
        JOB_EVENT_RECORDED, /* on disk */
        JOB_EVENT_PLACED,   /* first executors have nodes */
        JOB_EVENT_UP,       /* what must run, runs */
        JOB_EVENT_STOP,     /* a verdict or a kill: executors are being stopped */
        JOB_EVENT_REQUEUE,  /* this attempt of the job is over, another follows */
        JOB_EVENT_SUCCEEDED,
        JOB_EVENT_FAILED,
        JOB_EVENT_KILLED,
        JOB_EVENT_SUSPEND, /* these last: the numbers of those above are on disk */
        JOB_EVENT_RESUME,
        JOB_EVENT_RERUN, /* of an array that has ended: what failed of it runs again */
        _JOB_EVENT_MAX,
};

enum executor_state {
        EXECUTOR_PENDING,
        EXECUTOR_PLACED,
        EXECUTOR_STARTING,
        EXECUTOR_RUNNING,
        EXECUTOR_STOPPING,
        EXECUTOR_SUCCEEDED,
        EXECUTOR_FAILED,
        EXECUTOR_KILLED,
        EXECUTOR_LOST,
        _EXECUTOR_STATE_MAX,
        _EXECUTOR_STATE_INVALID = -22,
};

enum executor_event {
        EXECUTOR_EVENT_PLACED,
        EXECUTOR_EVENT_ORDERED, /* the order has left for the agent */
        EXECUTOR_EVENT_STARTED,
        EXECUTOR_EVENT_BOUNCED, /* the agent could not start it for a reason that is not its fault (port
                                   taken, node gone) */
        EXECUTOR_EVENT_STOP,    /* somebody asked */
        EXECUTOR_EVENT_SUCCEEDED,
        EXECUTOR_EVENT_FAILED,
        EXECUTOR_EVENT_KILLED,
        EXECUTOR_EVENT_LOST,
        EXECUTOR_EVENT_AGAIN, /* a new attempt of the same executor */
        _EXECUTOR_EVENT_MAX,
};

const char *job_state_to_string(enum job_state s);
enum job_state job_state_from_string(const char *s);
const char *job_event_to_string(enum job_event e);
const char *executor_state_to_string(enum executor_state s);
const char *executor_event_to_string(enum executor_event e);

/* The state that follows, or _INVALID where the table has no such transition. */
enum job_state job_next(enum job_state s, enum job_event e);
enum executor_state executor_next(enum executor_state s, enum executor_event e);

static inline bool job_state_ended(enum job_state s) {
        return s == JOB_SUCCEEDED || s == JOB_FAILED || s == JOB_KILLED;
}
static inline bool executor_state_ended(enum executor_state s) {
        return s >= EXECUTOR_SUCCEEDED;
}
/* Its executors are up; what happens to them happens to all of it. */
static inline bool job_state_up(enum job_state s) {
        return s == JOB_RUNNING || s == JOB_SUSPENDED;
}
/* Holds resources of a node. */
static inline bool executor_state_holds(enum executor_state s) {
        return s >= EXECUTOR_PLACED && s <= EXECUTOR_STOPPING;
}
/* Exit status of `primusctl wait`; 255 while the job has not ended. */
uint32_t job_state_exit_status(enum job_state s);
