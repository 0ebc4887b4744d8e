/* SPDX-License-Identifier: Apache-2.0 */
/* What single features keep on a job and on an executor. Each struct is for the room that its comment names;
 * masterd/job carries it, and frees what is in it. What a room can keep from all others is behind a pointer
 * (struct audience, job_data, job_health, usage). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "masterd/data/takers.h"
#include "masterd/job/exclusions.h"
#include "masterd/job/failover.h"
#include "masterd/job/fate.h"

struct after_entry;
struct change_cut;
struct change_note;
struct executor;
struct job;
struct node;
struct retired;
struct role_spec;
struct telemetry;

/* ---- of a job ---- */

struct job_secret {
        char *name;
        void *data;
        size_t size;
};

/* What its submitter gave beside the configuration. */
struct job_given {
        char *cwd;  /* bytes; "" = the work directory */
        char **env; /* NULL-ended, or NULL */
        char bundle[65];
        struct job_secret *secrets;
        size_t n_secrets;
        bool had_env, had_secrets; /* at submission: they end with the job */
};

/* masterd/job/reshape.h: who holds resources still, but is no part of the job any more. */
struct job_leavers {
        struct executor *list;
        uint32_t n;
        uint32_t attempt_base;   /* highest attempt of those that have left: numbers are not used again */
        struct retired *retired; /* the configurations that they are of */
};

/* masterd/life/change.h: its configuration changes. */
struct job_change {
        uint64_t version;          /* rises with each change; 1: as submitted */
        struct change_note *notes; /* the latest */
        uint32_t n_notes;
        struct change_cut *cuts; /* who has left */
        size_t n_cuts;
        uint64_t limits_real; /* when limits of units were changed last */
};

/* masterd/life/rolling.h: a rolling restart. */
struct job_rolling {
        uint64_t since_real; /* attempts that were placed before are replaced; 0: none is under way */
        uint32_t batch;      /* so many at once */
        uint32_t index;      /* of role; UINT32_MAX: all of them */
        char role[33];       /* "": all roles */
};

/* masterd/life/epochs.h: its rendezvous. */
struct job_rendezvous {
        uint64_t epoch;
        uint64_t membership; /* a digest of who is where, as of that epoch */
        sd_event_source *timer;
};

/* Which hosts it is kept off, and on which it was. */
struct job_hosts {
        char **avoided; /* names of those that it is not placed on (job_avoid()) */
        size_t n_avoided;
        struct exclusions exclusions; /* where it failed (masterd/fleet/blaming.c) */
        struct node **left;           /* earlier attempts of its executors ran there: they keep its files */
        size_t n_left;
};

/* masterd/life/suspension.h, masterd/job/suspend.h: held by a person. */
struct job_held {
        uint8_t mode; /* enum suspend_mode + 1; 0: it is not */
        bool saving;  /* SUSPENDED only until the savepoint that ends it is on disk */
        uint32_t by;  /* uid */
        uint64_t since_real;
        uint64_t froze_real; /* when its executors were frozen or thawed last */
};

/* masterd/life/limits.h, requeue.h: the time that it may run. */
struct job_slot {
        uint64_t since_real; /* it counts from then; 0: from the next start */
        sd_event_source *timer;
        sd_event_source *signal_timer; /* for the signal before it is over */
};

/* masterd/queue/queueing.h, start-within.h: it waits. */
struct job_queue {
        bool known;               /* to the policy */
        uint64_t waits_real;      /* since then, for the order of the queue */
        uint64_t not_before_real; /* it is not tried before */
        sd_event_source *timer;   /* until then */
        uint64_t placeable_real;  /* since then only its first place was missing; 0: not kept */
        sd_event_source *within_timer;
};

/* masterd/life/requeue.h: it gives way, and waits again for no fault of its own. */
struct job_requeue {
        uint32_t n;          /* of its attempts, those that began so */
        uint32_t asked;      /* times in a row that an executor asked for it */
        bool begun;          /* STOPPING to wait again */
        bool preempts;       /* some others may have been told that they have to leave for it */
        uint8_t why;         /* enum requeue_cause: it is to be stopped at leave_real; 0: nothing of that */
        uint32_t by;         /* the job that takes its place; 0: none */
        uint64_t leave_real; /* its executors have been told by signal; their stop comes then */
        sd_event_source *timer;
};

/* masterd/life/depend.h: what has to end before its first start, and its time. */
struct job_depend {
        struct after_entry *after;
        uint32_t n_after;
        uint64_t met; /* a bit for each that holds */
        uint64_t begin_real;
        sd_event_source *begin_timer;
        struct job *settle_next; /* has ended, and those that wait for it are to be told */
};

/* masterd/life/arrays.h: an element of an array. */
struct job_element {
        uint32_t array; /* the job that is the array; 0: it is no element */
        uint32_t index;
        char **env; /* what tells its executors so */
};

/* ---- of an executor ---- */

/* masterd/job/reshape.h: the job goes on without it, and it is forgotten when it has ended. */
struct executor_leaver {
        bool leaves;
        const struct role_spec *role; /* as it was then */
        struct executor *next, *prev;
};

/* masterd/queue/placement.h: what it has of its node. */
struct executor_place {
        uint16_t *ports;
        size_t n_ports;
        uint64_t gpus;                /* bit per GPU of the node */
        struct sched_cpuset *cpus;    /* its own; NULL: it shares */
        struct sched_amount *amounts; /* of licences */
        uint32_t n_amounts;
};

/* masterd/link/orders.h: what its agent was ordered, and has said. */
struct executor_orders {
        bool starting;                /* the Start call is under way on the current link */
        bool confirmed;               /* the agent has reported this attempt since this master came up */
        bool stopped;                 /* its stop was ordered, */
        const char *stop_why;         /* because of that; static text */
        const struct link *asked;     /* its end was reported by that, whose host looks at its log first */
        sd_event_source *start_timer; /* before its start is ordered (executorDelayStartSeconds) */
};

/* How this attempt ended, and what it took. */
struct executor_end {
        int32_t status;
        enum fate fate; /* what it counts as */
        uint64_t memory_peak, cpu_usec, io_read, io_write;
        char result[32];
};

/* masterd/life/restarts.h: failures, and its next attempt. */
struct executor_restart {
        struct failover_history history;
        uint32_t n;
        sd_event_source *timer; /* back-off before the next attempt */
};

/* masterd/feed/feeding.h: data. */
struct executor_feed {
        bool leases_unknown; /* it was placed by an earlier master and has not said yet which tasks it holds
                              */
        bool open;           /* its feeder is connected and has told its credits */
        bool last;           /* end of file was promised */
        uint64_t sources;    /* it knows so many; 0: it cannot be told of more */
        uint32_t n_leases;
        struct task *leases; /* tasks it holds, a list through task.lease_next */
        struct taker
                taker;   /* what it takes, who waits there, and how many of these are not read to their end */
        uint64_t synced; /* highest number of a feeding_sync() that it need not answer any more */
        uint64_t data_wait_usec;    /* its trainer waited for data, in this attempt */
        uint64_t trainer_wait_usec; /* its trainer was busy with data */
        uint64_t bytes, records;    /* delivered */
};

/* masterd/watch: how it is doing. */
struct executor_watch {
        struct telemetry *telemetry; /* telemetry.h; NULL: nothing yet */
        uint32_t judged;             /* the attempt that healing.h judges */
        uint32_t peeking;            /* the attempt whose threads it asks for now; 0: of none */
        uint64_t peeked_usec;        /* when it asked last */
};
