/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a job and of an executor attempt. Invariant: a state changes only along these tables. */
#include "masterd/job/states.h"

#include <assert.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* 0 in a cell means "no such transition": no state is entered as number 0 but by creation. */
static const uint8_t job_table[_JOB_STATE_MAX][_JOB_EVENT_MAX] = {
        [JOB_SUBMITTED] = { [JOB_EVENT_RECORDED] = JOB_QUEUED,
                            [JOB_EVENT_KILLED] = JOB_KILLED,
                            [JOB_EVENT_FAILED] = JOB_FAILED },
        [JOB_QUEUED] = { [JOB_EVENT_PLACED] = JOB_STARTING, [JOB_EVENT_STOP] = JOB_STOPPING },
        [JOB_STARTING] = { [JOB_EVENT_UP] = JOB_RUNNING, [JOB_EVENT_STOP] = JOB_STOPPING },
        [JOB_RUNNING] = { [JOB_EVENT_SUSPEND] = JOB_SUSPENDED, [JOB_EVENT_STOP] = JOB_STOPPING },
        [JOB_SUSPENDED] = { [JOB_EVENT_RESUME] = JOB_RUNNING, [JOB_EVENT_STOP] = JOB_STOPPING },
        [JOB_STOPPING] = { [JOB_EVENT_REQUEUE] = JOB_QUEUED,
                           [JOB_EVENT_SUCCEEDED] = JOB_SUCCEEDED,
                           [JOB_EVENT_FAILED] = JOB_FAILED,
                           [JOB_EVENT_KILLED] = JOB_KILLED },
        [JOB_SUCCEEDED] = { [JOB_EVENT_RERUN] = JOB_QUEUED }, /* a search, with more trials */
        [JOB_FAILED] = { [JOB_EVENT_RERUN] = JOB_QUEUED },
        [JOB_KILLED] = { [JOB_EVENT_RERUN] = JOB_QUEUED },
};

#define ENDS                                                                                                 \
        [EXECUTOR_EVENT_SUCCEEDED] = EXECUTOR_SUCCEEDED, [EXECUTOR_EVENT_FAILED] = EXECUTOR_FAILED,          \
        [EXECUTOR_EVENT_KILLED] = EXECUTOR_KILLED, [EXECUTOR_EVENT_LOST] = EXECUTOR_LOST
/* PENDING is 0, so the transitions back to it are those marked below. */
#define TO_PENDING UINT8_MAX

static const uint8_t executor_table[_EXECUTOR_STATE_MAX][_EXECUTOR_EVENT_MAX] = {
        [EXECUTOR_PENDING] = { [EXECUTOR_EVENT_PLACED] = EXECUTOR_PLACED,
                               [EXECUTOR_EVENT_KILLED] = EXECUTOR_KILLED },
        [EXECUTOR_PLACED] = { [EXECUTOR_EVENT_ORDERED] = EXECUTOR_STARTING,
                              [EXECUTOR_EVENT_BOUNCED] = TO_PENDING,
                              [EXECUTOR_EVENT_STARTED] = EXECUTOR_RUNNING,
                              [EXECUTOR_EVENT_STOP] = EXECUTOR_STOPPING,
                              ENDS },
        [EXECUTOR_STARTING] = { [EXECUTOR_EVENT_STARTED] = EXECUTOR_RUNNING,
                                [EXECUTOR_EVENT_BOUNCED] = TO_PENDING,
                                [EXECUTOR_EVENT_STOP] = EXECUTOR_STOPPING,
                                ENDS },
        [EXECUTOR_RUNNING] = { [EXECUTOR_EVENT_STOP] = EXECUTOR_STOPPING, ENDS },
        [EXECUTOR_STOPPING] = { [EXECUTOR_EVENT_STARTED] = EXECUTOR_STOPPING,
                                [EXECUTOR_EVENT_STOP] = EXECUTOR_STOPPING,
                                ENDS },
        [EXECUTOR_SUCCEEDED] = { [EXECUTOR_EVENT_AGAIN] = TO_PENDING },
        [EXECUTOR_FAILED] = { [EXECUTOR_EVENT_AGAIN] = TO_PENDING },
        [EXECUTOR_KILLED] = { [EXECUTOR_EVENT_AGAIN] = TO_PENDING },
        [EXECUTOR_LOST] = { [EXECUTOR_EVENT_AGAIN] = TO_PENDING },
};

static const char *const job_state_names[_JOB_STATE_MAX] = {
        "SUBMITTED", "QUEUED",    "STARTING", "RUNNING", "SUSPENDED",
        "STOPPING",  "SUCCEEDED", "FAILED",   "KILLED",
};
static const char *const job_event_names[_JOB_EVENT_MAX] = {
        "recorded", "placed", "up",      "stop",   "requeue", "succeeded",
        "failed",   "killed", "suspend", "resume", "rerun",
};
static const char *const executor_state_names[_EXECUTOR_STATE_MAX] = {
        "PENDING", "PLACED", "STARTING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED", "KILLED", "LOST",
};
static const char *const executor_event_names[_EXECUTOR_EVENT_MAX] = {
        "placed", "ordered", "started", "bounced", "stop", "succeeded", "failed", "killed", "lost", "again",
};

const char *job_state_to_string(enum job_state s) {
        return s >= 0 && s < _JOB_STATE_MAX ? job_state_names[s] : NULL;
}

enum job_state job_state_from_string(const char *s) {
        for (size_t i = 0; s && i < _JOB_STATE_MAX; i++)
                if (strcmp(s, job_state_names[i]) == 0)
                        return (enum job_state)i;
        return _JOB_STATE_INVALID;
}

const char *job_event_to_string(enum job_event e) {
        return e < _JOB_EVENT_MAX ? job_event_names[e] : NULL;
}

const char *executor_state_to_string(enum executor_state s) {
        return s >= 0 && s < _EXECUTOR_STATE_MAX ? executor_state_names[s] : NULL;
}

const char *executor_event_to_string(enum executor_event e) {
        return e < _EXECUTOR_EVENT_MAX ? executor_event_names[e] : NULL;
}

enum job_state job_next(enum job_state s, enum job_event e) {
        uint8_t next;

        assert(s >= 0 && s < _JOB_STATE_MAX && e < _JOB_EVENT_MAX);
        next = job_table[s][e];
        return next == 0 ? _JOB_STATE_INVALID : (enum job_state)next;
}

enum executor_state executor_next(enum executor_state s, enum executor_event e) {
        uint8_t next;

        assert(s >= 0 && s < _EXECUTOR_STATE_MAX && e < _EXECUTOR_EVENT_MAX);
        next = executor_table[s][e];
        return next == 0            ? _EXECUTOR_STATE_INVALID
               : next == TO_PENDING ? EXECUTOR_PENDING
                                    : (enum executor_state)next;
}

uint32_t job_state_exit_status(enum job_state s) {
        switch (s) {
        case JOB_SUCCEEDED:
                return 0;
        case JOB_FAILED:
                return 1;
        case JOB_KILLED:
                return 3;
        default:
                return 255;
        }
}
