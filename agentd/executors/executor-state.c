/* SPDX-License-Identifier: Apache-2.0 */
/* The table of an executor's life. Invariant: from every state an end (ENDED or GONE) is reached by events of
 * systemd and primus-exit alone, whatever masterd does. */
#include "agentd/executors/executor-state.h"

#include <errno.h>
#include <stdbool.h>

static const char *const state_names[_EXECUTOR_STATE_MAX] = {
        [EXECUTOR_PREPARING] = "preparing", [EXECUTOR_STARTING] = "starting", [EXECUTOR_RUNNING] = "running",
        [EXECUTOR_STOPPING] = "stopping",   [EXECUTOR_ENDING] = "ending",     [EXECUTOR_ENDED] = "ended",
        [EXECUTOR_GONE] = "gone",
};

static const char *const event_names[_EXECUTOR_EVENT_MAX] = {
        [EVENT_PREPARED] = "prepared",   [EVENT_REFUSED] = "refused", [EVENT_STARTED] = "started",
        [EVENT_STOP] = "stop",           [EVENT_RECORD] = "record",   [EVENT_UNIT_GONE] = "unit gone",
        [EVENT_COMMITTED] = "committed",
};

const char *executor_state_to_string(enum executor_state s) {
        return s < _EXECUTOR_STATE_MAX ? state_names[s] : "invalid";
}

const char *executor_event_to_string(enum executor_event e) {
        return e < _EXECUTOR_EVENT_MAX ? event_names[e] : "invalid";
}

#define TO(next, act)                                                                                        \
        { true, EXECUTOR_##next, ACTION_##act }

static const struct {
        bool defined;
        enum executor_state next;
        enum executor_action action;
} table[_EXECUTOR_STATE_MAX][_EXECUTOR_EVENT_MAX] = {
        [EXECUTOR_PREPARING] = {
                [EVENT_PREPARED] = TO(STARTING, SUBMIT),
                [EVENT_REFUSED] = TO(GONE, REFUSE),
                [EVENT_STOP] = TO(GONE, REFUSE),
        },
        [EXECUTOR_STARTING] = {
                [EVENT_REFUSED] = TO(GONE, REFUSE),
                [EVENT_STARTED] = TO(RUNNING, ANSWER),
                [EVENT_STOP] = TO(STOPPING, STOP),
                [EVENT_RECORD] = TO(ENDING, SETTLE),
                [EVENT_UNIT_GONE] = TO(ENDED, REPORT),
        },
        [EXECUTOR_RUNNING] = {
                [EVENT_STARTED] = TO(RUNNING, NONE),
                [EVENT_STOP] = TO(STOPPING, STOP),
                [EVENT_RECORD] = TO(ENDING, SETTLE),
                [EVENT_UNIT_GONE] = TO(ENDED, REPORT),
        },
        [EXECUTOR_STOPPING] = {
                [EVENT_REFUSED] = TO(GONE, REFUSE),
                [EVENT_STARTED] = TO(STOPPING, ANSWER),
                [EVENT_STOP] = TO(STOPPING, STOP), /* a second order may shorten the grace */
                [EVENT_RECORD] = TO(ENDING, SETTLE),
                [EVENT_UNIT_GONE] = TO(ENDED, REPORT),
        },
        [EXECUTOR_ENDING] = {
                [EVENT_STARTED] = TO(ENDING, NONE),
                [EVENT_STOP] = TO(ENDING, NONE),
                [EVENT_RECORD] = TO(ENDING, NONE),
                [EVENT_UNIT_GONE] = TO(ENDED, REPORT),
                [EVENT_COMMITTED] = TO(GONE, FORGET), /* it was part of a registration */
        },
        [EXECUTOR_ENDED] = {
                [EVENT_STARTED] = TO(ENDED, NONE),
                [EVENT_STOP] = TO(ENDED, NONE),
                [EVENT_RECORD] = TO(ENDED, NONE),
                [EVENT_UNIT_GONE] = TO(ENDED, NONE),
                [EVENT_COMMITTED] = TO(GONE, FORGET),
        },
};

int executor_step(enum executor_state *state, enum executor_event event) {
        enum executor_state s = *state;

        if (s >= _EXECUTOR_STATE_MAX || event >= _EXECUTOR_EVENT_MAX || !table[s][event].defined)
                return -EINVAL;
        *state = table[s][event].next;
        return (int)table[s][event].action;
}
