/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an executor on its host, as a table: state x event -> state, action. Pure. */
#pragma once

enum executor_state {
        EXECUTOR_PREPARING, /* the job's files are fetched, the output file is opened */
        EXECUTOR_STARTING,  /* systemd was asked to start the unit */
        EXECUTOR_RUNNING,
        EXECUTOR_STOPPING, /* a stop was ordered */
        EXECUTOR_ENDING,   /* the exit record is there, the unit is on its way out */
        EXECUTOR_ENDED,    /* reported; masterd has not committed it yet */
        EXECUTOR_GONE,     /* to be forgotten */
        _EXECUTOR_STATE_MAX,
};

enum executor_event {
        EVENT_PREPARED,
        EVENT_REFUSED,   /* systemd did not take the unit, or it could not be prepared */
        EVENT_STARTED,   /* systemd's start job is over */
        EVENT_STOP,      /* masterd's order, or the partition's deadline */
        EVENT_RECORD,    /* an exit record appeared */
        EVENT_UNIT_GONE, /* systemd has dropped the unit (or long enough after the record) */
        EVENT_COMMITTED, /* masterd has the exit on its disk */
        _EXECUTOR_EVENT_MAX,
};

enum executor_action {
        ACTION_NONE,
        ACTION_SUBMIT, /* ask systemd to start the unit */
        ACTION_ANSWER, /* tell those who wait for the start that it runs */
        ACTION_REFUSE, /* tell them that it does not and why */
        ACTION_STOP,   /* ask systemd to stop the unit */
        ACTION_SETTLE, /* wait a moment for the unit to go: who stopped it? */
        ACTION_REPORT, /* tell masterd about the end */
        ACTION_FORGET, /* delete the record */
};

/* The action, and the new state in *state. -EINVAL: the table has no such transition; *state stays. */
int executor_step(enum executor_state *state, enum executor_event event);

const char *executor_state_to_string(enum executor_state s);
const char *executor_event_to_string(enum executor_event e);
