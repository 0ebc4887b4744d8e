/* SPDX-License-Identifier: Apache-2.0 */
/* What units.c (the executors' life), units-start.c, units-stop.c and units-end.c (its stations),
 * units-discover.c (finding them again) and units-job.c (slices and work directories) share. Not for others.
 */
#pragma once

#include <uthash.h>
#include <utlist.h>

#include "agentd/executors/units.h"
#include "agentd/unit/exits.h"
#include "agentd/unit/hooks.h"
#include "agentd/unit/systemd.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "lib/unit/identity.h"
#include "lib/unit/shm.h"

#define log_executor(e, level, ...)                                                                          \
        log_full(level, 0,                                                                                   \
                 &(struct log_fields){ .job = (e)->id.job, .unit = (e)->unit, .role = (e)->id.role },        \
                 __VA_ARGS__)

/* How long after its record an ended unit may take to leave before it is reported all the same. */
#define SETTLE_USEC (200 * USEC_PER_MSEC)
/* When a unit that was to be killed at once, and is still there, is killed again. */
#define KILL_AGAIN_USEC (5 * USEC_PER_SEC)
/* How long after its main process the rest of a unit is killed. */
#define KILL_REST_USEC (300 * USEC_PER_MSEC)
/* How long a unit that systemd dropped without a record is given before systemd is asked once more. */
#define VERIFY_USEC (300 * USEC_PER_MSEC)
/* How long a job's slice outlives its last unit: a restart of an executor would make it again. */
#define SLICE_LINGER_USEC (2 * USEC_PER_SEC)
/* For how long a job that is not known to be over keeps its work directory on a host where it has no unit. */
#define WORK_AGE_USEC (24 * 3600 * USEC_PER_SEC)
#define WORK_SWEEP_USEC (3600 * USEC_PER_SEC)

#define CPU_WORDS 16u /* 1,024 CPUs */

struct waiter {
        start_handler handler;
        void *userdata;
        struct waiter *next;
};

struct job {
        sd_id128_t uid;
        uint32_t number;
        struct slice_limits limits; /* of all its executors here together */
        struct slice_limits told;   /* what the slice was told */
        bool told_known;            /* false: by an earlier agentd */
        bool shm;                   /* it has shared memory of its own here, or asked for it */
        unsigned n_units;
        uint32_t owner; /* uid; of no meaning before it has had a unit here */
        enum {
                HOOK_NONE,
                HOOK_PROLOG,
                HOOK_EPILOG
        } hook;                    /* that runs */
        bool hooked;               /* the prolog has been, the epilog is to come */
        struct preparing *waiting; /* starts that wait for the prolog */
        bool sliced;               /* the slice exists or was asked for */
        bool dropped;              /* nothing of it will come back */
        struct units *units;
        sd_event_source *linger;
        UT_hash_handle hh;
};

/* A call to systemd about a unit, whose executor may be gone when the answer comes. */
struct asked {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        int signal;
        uint64_t again_usec; /* when to look again */
        struct asked *next, *prev;
};

struct ready_check; /* see units-ready.c */
struct preparing;   /* a start on its way, see units-start.c */

struct executor {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        struct executor_id id;
        enum executor_state state;
        enum order_kind kind;
        enum on_partition on_partition;
        uint32_t uid;
        enum ack_mode ack;
        uint32_t pipe_size;
        sd_id128_t invocation;
        uint64_t started_real;
        bool frozen;       /* or about to be */
        bool submitted;    /* systemd has taken the unit: a stop would find it */
        bool started;      /* its start job is over */
        bool start_failed; /* systemd's start job did */
        bool canceled;     /* systemd's start job was, before it ran anything */
        bool stop_requested, stop_local;
        bool watched; /* we have seen its whole life: no foreign stop job has escaped us */
        uint64_t stop_grace;
        bool grace_guessed;  /* of the unit; an earlier agent may have been ordered another one */
        uint64_t grace_usec; /* the order's */
        uint64_t start_max_usec, runtime_max_usec; /* 0: none */
        uint64_t epoch;                            /* of the rendezvous that its file has; 0: it has none */
        char *start_job, *stop_job;
        char *command, *directory;
        struct waiter *waiters;
        struct preparing *preparing;
        bool has_exit, has_verdict; /* verdict: the end is what systemd has said of it; there is no record */
        bool told;                  /* the end is part of a registration or was reported */
        struct exit_report exit;
        sd_event_source *timer, *kill_timer, *stuck_timer, *limit_timer;
        char *stuck;     /* what is in the way of its death, once that was told */
        struct job *job; /* counted there */
        uint64_t *cpus;  /* CPU_WORDS; its own; NULL: it shares */
        char *gpus;      /* its own, by spaces; NULL: none */
        char *open_gpus; /* those that its unit may open; NULL: not known, or none */
        char *fault;     /* what the host knows of why it fails: of a GPU of its own, or units_kill_for() */
        bool rdma;
        struct ready_check *check; /* NULL: nothing is asked for */
        UT_hash_handle hh;
};

struct units {
        sd_event *event;
        sd_bus *bus;
        struct systemd *systemd;
        struct hooks *hooks;
        struct exits *exits;
        struct worker *worker;
        struct units_options options;
        struct units_ops ops;
        void *userdata;
        unsigned n_own_cpus;        /* executors with CPUs of their own */
        struct executor *executors; /* by unit name */
        struct job *jobs;           /* by uid */
        struct look *looks;         /* see units-ready.c */
        struct asked *asked;        /* of which systemd may still answer */
        struct limiting *limiting;  /* limits being set */
        struct discovery *discoveries;
        struct freezing *freezing; /* of which systemd has not answered yet */
        unsigned discovering;      /* property calls of the listing under way */
        uint32_t *slices;          /* job numbers, see job_note_slice() */
        size_t n_slices;
        bool listing, list_again;
        bool ready, closing;
        bool asking_left;       /* units_ask_left() */
        bool ports_open;        /* ports_pin() does not work here */
        sd_event_source *sweep; /* of old work directories */
        sd_event_source *look;  /* at those that are to become ready */
};

/* units.c */
struct executor *executor_new(struct units *u, const struct executor_id *id);
struct executor *executor_find_unit(struct units *u, const char *unit);
/* Feeds the table and does what it says. e may be gone afterwards. */
void executor_event(struct executor *e, enum executor_event event);
struct executor *executor_find(struct units *u, const struct executor_id *id);
struct asked *asked_new(const struct executor *e);
void asked_free(struct asked *a);
void executor_read_start(struct executor *e);

/* Calls every waiting start_handler. */
void executor_answer(struct executor *e, const struct start_result *result);
void executor_answer_running(struct executor *e);

/* units-stop.c */
void executor_stop(struct executor *e);
/* After a restart: where an earlier agentd had marked the stop, but was gone before systemd passed it on. */
void executor_stop_again(struct executor *e);
/* Kills it when that has passed. */
void executor_limit_grace(struct executor *e, uint64_t grace_usec);

/* units-limit.c */
/* It starts, or runs: stops it when it has done so for longer than it may. */
void executor_watch_limit(struct executor *e);
/* That was done. */
bool executor_overdue(const struct executor *e);

/* units-freeze.c */
/* Before it is stopped. */
void executor_thaw(struct executor *e);
void freezings_free(struct units *u);

/* units-stuck.c */
/* It gets SIGKILL now. */
void executor_watch_kill(struct executor *e);
/* To a master that has come up. */
void units_tell_stuck(struct units *u);

/* units-end.c */
/* Moves the report. */
void executor_take_exit(struct executor *e, struct exit_report *x);
/* Looks for a record that inotify has not told of yet. */
void executor_take_record(struct executor *e);
/* Looks again after that time. */
void executor_arm(struct executor *e, uint64_t usec);
/* Asks systemd, a moment later, whether the unit is gone indeed. */
void executor_verify(struct executor *e);
void executor_report(struct executor *e);
void executor_remove_private(struct executor *e);
struct exit_report executor_blank_report(const struct executor *e);

/* units-left.c */
/* EVENT_UNIT_GONE follows, unless this returns < 0. */
int executor_ask_verdict(struct executor *e);
/* Of those that are gone, of which there is nothing but a private directory. True: units_all_known() follows.
 */
bool units_ask_left(struct units *u);

/* units-start.c */
void executor_submit(struct executor *e);
/* What its unit needs did not come: its shared memory, there is nothing else. */
void executor_refuse_shm(struct executor *e);
/* The executor goes, its start may be under way still. */
void executor_abandon_start(struct executor *e);
/* As above, when nobody works on the start any more. */
void executor_drop_start(struct executor *e);

/* units-ready.c */
/* What the order says of readiness, and in *ret what its file of the private directory is to have, by which
 * ready_recall() finds it again: allocated; NULL: nothing is asked for. */
int ready_prepare(struct executor *e, const struct start_order *order, char **ret);
int ready_recall(struct executor *e);
/* It runs: looks until it is ready, or its time is over. */
void ready_watch(struct executor *e);
/* masterd is told again what was found. */
void ready_tell_all(struct units *u);
void ready_check_free(struct ready_check *c);
void ready_looks_free(struct units *u);
/* The job's prolog has ended: what waited for it goes on, or is refused. */
void starts_go(struct job *j, bool ok, const char *why);
void starts_drop(struct job *j);

/* units-hooks.c */
/* Its prolog has been, or there is none to run. */
bool job_hooked(struct job *j);
/* Unless one of its hooks runs already; starts_go() follows. */
void job_run_prolog(struct job *j);
/* True: it runs, and job_idle() follows. */
bool job_run_epilog(struct job *j);

/* units-change.c */
void limitings_free(struct units *u);

/* units-discover.c */
int units_list(struct units *u);
/* Nothing more is to be found out: what has ended since is told from now on. */
void units_all_known(struct units *u);
void discoveries_free(struct units *u);

/* units-job.c */
/* Appends "uay" by which the starter knows the job. */
int job_append(const struct job *j, sd_bus_message *m);
/* limits: of the job's executors here together; NULL: as they are. */
int job_enter(struct units *u, struct executor *e, const struct slice_limits *limits);
void job_leave(struct executor *e);
/* Asks for the slice before the unit that follows in the same queue. */
int job_make_slice(struct job *j);
/* Asks for its shared memory likewise, unless it has some. */
int job_make_shm(struct job *j, uint64_t size);
/* systemd has done with a mount unit: true, it is one of ours. */
bool job_shm_changed(struct units *u, const char *unit, const char *result);
/* It has no unit here. May free it. */
void job_idle(struct job *j);
void job_free(struct job *j);
/* At the first listing: remembers a unit's name where it is a job's slice; afterwards stops those without a
 * unit, which agentd would have stopped had it not been restarted. */
int job_note_slice(struct units *u, const char *name);
void jobs_stop_empty_slices(struct units *u);
/* Now and from then on every hour: removes the work directories of jobs that have had no unit here for a day.
 */
int jobs_start_sweeping(struct units *u);
/* units-devices.c */
/* What its order, or its unit's Environment= (order NULL), says that it was given. -ENOMEM. */
int devices_own(struct executor *e, const struct start_order *order, char *const *environment);
/* What is to be said of its end, where a GPU of its own failed: allocated, or NULL for detail as it is. */
char *devices_blame(const struct executor *e, const char *detail);
/* An executor of the job has come, or gone: the others may open its GPUs, or may not any more. */
void devices_share(struct job *j, bool gone);

/* units-cpus.c */
/* The executor has these CPUs for itself; the others are kept off them, unless they have been told before
 * (known). An empty list, or one that is none, is nothing. -ENOMEM. */
int cpus_own(struct executor *e, const char *list, bool known);
/* It is gone; the others may use them. */
void cpus_leave(struct executor *e);
/* What those without are to be kept on: allocated, or NULL for all (or no memory). */
char *cpus_shared(const struct units *u);
