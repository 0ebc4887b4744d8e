/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, their roles and executors as masterd holds them in memory, and the counts over them. What happens to
 * them is decided elsewhere (lifecycle, placement); here is what they are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>
#include <uthash.h>

#include "lib/base/cleanup.h"
#include "masterd/data/takers.h"
#include "masterd/job/exclusions.h"
#include "masterd/job/failover.h"
#include "masterd/job/fate.h"
#include "masterd/job/states.h"
#include "masterd/spec/spec.h"

#define SCAN_ROLE "_scan" /* role of the executors that list a source; its index is the source */

struct manager;
struct node;
struct job;

struct job_data;
struct job_peers;
struct after_entry;
struct array;
struct usage;
struct retired;
struct change_note;
struct change_cut;
struct telemetry;
struct job_health;
struct series;

/* A (role, index) and its latest attempt. Earlier attempts are in the store. */
struct executor {
        struct job *job;
        uint32_t role; /* index into spec->roles */
        uint32_t index;
        uint32_t rank;    /* place in job->executors */
        uint32_t attempt; /* 0: none yet */
        enum executor_state state;
        bool gone; /* ended, and no other attempt will follow */

        /* masterd/job/reshape.h: the job goes on without it, and it is forgotten when it has ended */
        bool leaving;
        const struct role_spec *left; /* its role as it was then */
        struct executor *leaving_next, *leaving_prev;

        struct node *node;                      /* of this attempt; stays for display after the end */
        struct executor *node_next, *node_prev; /* list of the node, while it holds resources there */
        uint16_t *ports;
        size_t n_ports;
        uint64_t gpus;                /* bit per GPU of the node */
        struct sched_cpuset *cpus;    /* its own; NULL: it shares */
        struct sched_amount *amounts; /* of licences */
        uint32_t n_amounts;
        uint64_t epoch; /* of the job: the rendezvous that its trainer was told last; 0: not known */
        sd_id128_t invocation;
        uint64_t placed_real; /* by our clock and never before attempt_real of its job: tells whose attempt it
                                 is */
        uint64_t started_real, ended_real, started_boot; /* by the host's clock, but started_boot */
        bool ordered;                                    /* the Start call is under way on the current link */
        bool confirmed; /* the node's agent has reported this attempt since this master came up */
        bool stop_ordered;
        bool stuck;           /* it does not die, and is waited for (masterd/fleet/stuck.h) */
        bool bounced;         /* the host could not start the latest attempt, for no fault of the executor */
        const char *stop_why; /* static text */

        char *reason; /* how it ended, one line; or why it waits */
        int32_t status;
        uint64_t memory_peak, cpu_usec, io_read, io_write;
        char result[32];

        struct failover_history history;
        uint32_t restarts;
        sd_event_source *restart_timer; /* back-off before the next attempt */
        sd_event_source *start_timer;   /* before its start is ordered (executorDelayStartSeconds) */
        enum fate fate;                 /* what the end of this attempt counts as */
        uint64_t memory;                /* bytes it has, where that is not what its role says; else 0 */
        bool ready;                     /* its agent has said so (roles with ready) */

        /* data (masterd/feed/feeding.h) */
        bool leases_unknown; /* it was placed by an earlier master and has not said yet which tasks it holds
                              */
        bool feed_open;      /* its feeder is connected and has told its credits */
        bool feed_last;      /* end of file was promised */
        uint32_t n_leases;
        struct task *leases; /* tasks it holds, a list through task.lease_next */
        struct taker taker;  /* what it takes, who waits there, and how many of these are not read to their
                                end */
        uint64_t synced;     /* highest number of a feeding_sync() that it need not answer any more */
        uint64_t data_wait_usec;         /* its trainer waited for data, in this attempt */
        uint64_t trainer_wait_usec;      /* its trainer was busy with data */
        uint64_t fed_bytes, fed_records; /* delivered */
        uint64_t tail_offset;            /* log bytes that reached the kept tail */
        struct telemetry *telemetry;     /* masterd/watch/telemetry.h; NULL: nothing yet */
        uint32_t watched;                /* the attempt that masterd/watch/healing.h judges */
        uint32_t peeking;                /* the attempt whose threads it asks for now; 0: of none */
        uint64_t peeked_usec;            /* when it asked last */
};

/* Executors that are started again together (restartScope), and failures that are counted together. */
struct scope {
        struct job *job;
        uint64_t real;     /* when it was started again last: who was placed before has to leave; 0: never */
        uint64_t due_real; /* back-off: nobody is placed before */
        /* Its membership has changed, and then it starts again, all of it, those too that the job still had;
         * until then whoever has come is not placed and whoever goes is not stopped. 0: it has not. */
        uint64_t regroup_real;
        uint32_t n_leaving; /* hold a place from before */
        uint32_t restarts;
        bool awaited;   /* started again: that all of it run again is still to be told */
        bool held_back; /* some have not left, or the back-off is not over: nobody is placed */
        struct failover_history history; /* of all of it */
        struct failover_history budget;  /* of a role: of all its executors (maxGlobalRoleFailureTimes) */
        sd_event_source *timer;
};

struct role {
        const struct role_spec *spec;
        struct executor **executors; /* spec->num of them, by index: a part of the job's */
        uint32_t n_state[_EXECUTOR_STATE_MAX];
        uint32_t n_succeeded, n_failed; /* not coming back; what verdict_of() counts */
        uint32_t n_ignored;             /* not coming back either, and not counted (exitCodes: ignore) */
        uint32_t restarts;
        struct scope *scope;      /* its own, also where it has none to start again with */
        uint64_t next_start_boot; /* executorDelayStartSeconds: when the next one may be started */
        struct series *series;    /* how it has been doing; NULL: nothing yet */
};

/* A rolling restart (masterd/life/rolling.h). */
struct rolling {
        uint64_t since_real; /* attempts that were placed before are replaced; 0: none is under way */
        uint32_t batch;      /* so many at once */
        uint32_t index;      /* of role; UINT32_MAX: all of them */
        char role[33];       /* "": all roles */
};

#define JOB_WATCHERS_MAX 32u

/* May look at it, and gets its signals as long as that holds (masterd/api/looking.h). */
#define JOB_LOOKERS_MAX 32u
#define JOB_LOOKERS_PER_USER 4u
struct job_looker {
        char *name; /* unique, on the bus; NULL: free */
        uint32_t uid;
        uint64_t since; /* a number that rises */
};

struct job {
        struct manager *manager; /* for its timers; this module does not look into it */
        uint32_t number;
        sd_id128_t uid;
        uint32_t owner;
        char *name;
        enum job_state state;
        uint32_t attempt;      /* of the job, from 1 */
        uint64_t attempt_real; /* when it began; executors that were placed before belong to earlier ones */
        struct job_spec *spec;
        size_t bytes; /* that it takes of the master's memory, see masterd/life/holdings.h */
        char *cwd;    /* bytes; "" = the work directory */
        char **env;   /* submitter's variables, NULL-ended, or NULL */
        char bundle[65];
        struct job_secret *secrets;
        size_t n_secrets;
        struct role *roles;          /* spec->n_roles */
        struct executor **executors; /* all, by rank: roles[i].executors point into it */
        uint32_t n_executors;
        uint64_t submitted_real, started_real, ended_real;
        char *reason; /* why it waits or how it ended */
        char *first_error;
        uint64_t event_seq;
        char *watchers[JOB_WATCHERS_MAX]; /* unique names on the bus that get its signals by right
                                             (masterd/api) */
        struct job_looker *lookers;       /* n_lookers, at most JOB_LOOKERS_MAX */
        unsigned next_watcher, n_lookers;

        struct executor *leaving; /* that hold resources still, but are no part of the job any more */
        uint32_t n_leaving;
        struct retired *retired;     /* the configurations that they are of */
        uint64_t version;            /* rises with each change of the configuration; 1: as submitted */
        struct change_note *changes; /* the latest, see masterd/life/change.h */
        uint32_t n_changes;
        struct change_cut *cuts; /* who has left */
        size_t n_cuts;
        uint64_t epoch;      /* of its rendezvous, see masterd/life/epochs.h */
        uint64_t membership; /* a digest of who is where, as of that epoch */
        sd_event_source *epoch_timer;
        struct rolling rolling;
        uint64_t limits_real;  /* when limits of units were changed last */
        uint32_t attempt_base; /* highest attempt of those that have left: numbers are not used again */

        char **avoid; /* names of hosts that it is not placed on */
        size_t n_avoid;

        struct node **left; /* nodes that earlier attempts of its executors ran on: they keep its files */
        size_t n_left;

        enum job_event verdict; /* while STOPPING: what it ends as (SUCCEEDED, FAILED, KILLED or REQUEUE) */
        uint32_t order_step;    /* SCHEDULE_POLICY_ORDER: roles[order] up to here may be placed */
        sd_event_source *limit_timer;
        sd_event_source *grace_timer;
        struct {
                uint8_t mode; /* enum suspend_mode + 1 (masterd/life/suspension.h); 0: none */
                uint32_t by;  /* uid */
                uint64_t since_real;
                uint64_t froze_real; /* when its executors were frozen or thawed last */
        } held;                      /* by a person */
        bool saving;                 /* SUSPENDED only until the savepoint that ends it is on disk */
        struct job_data *data;       /* NULL without input */
        struct job_peers *peers;     /* masterd/job/peers.h */
        struct scope scope;          /* of all roles with restartScope job */
        struct exclusions exclusions;

        /* In the queue (masterd/queue/queueing.h), and given way (masterd/life/requeue.h). */
        bool queued;         /* known to the policy */
        uint32_t requeues;   /* of its attempts, those that began for no fault of the job */
        uint32_t asked;      /* times in a row that an executor asked for the job to be requeued */
        bool requeueing;     /* STOPPING to wait again, for no fault of the job */
        uint8_t leave_why;   /* enum requeue_cause: it is to be stopped at leave_real; 0: nothing of that */
        uint32_t leave_for;  /* the job that takes its place; 0: none */
        bool preempts;       /* some others may have been told that they have to leave for it */
        uint64_t leave_real; /* its executors have been told by signal; their stop comes then */
        uint64_t slot_real;  /* its time limit counts from then; 0: from the next start */
        uint64_t waits_real; /* it waits since then, for the order of the queue */
        uint64_t not_before_real; /* it is not tried before */
        sd_event_source *leave_timer, *signal_timer, *hold_timer;

        struct after_entry
                *after; /* what has to end before its first start, and its time (masterd/life/depend.h) */
        uint32_t n_after;
        uint64_t after_met; /* a bit for each that holds */
        uint64_t begin_real;
        sd_event_source *begin_timer;
        struct job *settle_next; /* has ended, and those that wait for it are to be told */

        struct array *array;   /* it is an array: masterd/life/arrays.h */
        uint32_t array_number; /* it is an element of that one; 0: it is none */
        uint32_t array_index;
        char **array_env;     /* what tells its executors so */
        uint32_t array_since; /* of an array that was run again: elements up to this number count if they
                                 succeeded */

        struct usage *usage;       /* what its executors held: masterd/life/usage.h */
        bool usage_known;          /* usage is all of it */
        bool had_env, had_secrets; /* at submission: they end with the job */

        struct job_health *health; /* masterd/watch/healing.h; NULL: nothing was seen of it yet */

        struct job *ended_next, *ended_prev; /* finished jobs kept in memory, oldest first */
        UT_hash_handle hh;                   /* by number */
};

struct job_secret {
        char *name;
        void *data;
        size_t size;
};

/* Takes over spec (also on failure). Every executor is PENDING without an attempt. */
int job_new(uint32_t number, sd_id128_t uid, uint32_t owner, struct job_spec *spec, struct job **ret);
/* Frees all; timers included. The job must not be in any list or table. */
struct job *job_free(struct job *j);
/* Forgets secrets and variables of the submitter, which end with the job. */
void job_forget_private(struct job *j);
static inline void job_free_p(struct job **j) {
        job_free(*j);
}

struct executor *job_executor(struct job *j, const char *role, uint32_t index); /* NULL: no such */
/* The one whose latest attempt that is, also when it is leaving. NULL: no such. */
struct executor *job_attempt(struct job *j, const char *role, uint32_t index, uint32_t attempt);
static inline const struct role_spec *executor_role(const struct executor *e) {
        return e->left ? e->left : e->job->spec->roles + e->role;
}

struct scope *scope_new(struct job *j); /* NULL: no memory */
void scope_free(struct scope *s);
/* Its scope, or NULL where it is started again alone, or leaves. */
struct scope *executor_scope(const struct executor *e);
/* How long one that is being stopped gets between the signals: its job's word, or less where its host drains.
 */
uint64_t executor_grace(const struct executor *e);
/* Bytes it may hold; 0: no limit. */
static inline uint64_t executor_memory(const struct executor *e) {
        uint64_t memory = executor_role(e)->memory;

        return memory > 0 && e->memory > memory ? e->memory : memory;
}
/* It has not been placed in this attempt of the job. */
static inline bool executor_is_new(const struct executor *e) {
        return e->attempt == 0 || e->placed_real < e->job->attempt_real;
}
/* It is what orderPolicy waits for. */
static inline bool executor_is_ready(const struct executor *e) {
        uint32_t kind = executor_role(e)->failure.ready.kind;

        return e->state == EXECUTOR_RUNNING && (kind == READY_STARTED || kind == READY_NOTIFY || e->ready);
}
/* Behind e, by rank, and then those that are leaving; NULL: the first, the end. */
struct executor *job_behind(const struct job *j, const struct executor *e);
#define JOB_FOREACH(j, e) for ((e) = job_behind((j), NULL); (e); (e) = job_behind((j), (e)))

/* Moves along the table and keeps the counts; logs and returns -EPROTO for a transition that is not in it. */
int job_transition(struct job *j, enum job_event event);
int executor_transition(struct executor *e, enum executor_event event);

/* The executor is on node (or on none) from now on; the one it was on before is remembered in the job's left.
 */
void executor_move(struct executor *e, struct node *node);
/* Whether the job is not to be placed on the host of that name; and from now on it is not. -ENOMEM. */
bool job_avoids(const struct job *j, const char *node);
int job_avoid(struct job *j, const char *node);

/* The node is no more. */
void job_forget_node(struct job *j, const struct node *node);

/* An executor of the job that was never placed; to be freed by executor_free(), which also takes its timer.
 * NULL: no memory. For reshape.c and job.c. */
struct executor *executor_new(struct job *j, uint32_t role, uint32_t index, uint32_t rank);
void executor_free(struct executor *e);

/* Starts a new attempt of an ended executor: PENDING, attempt not yet numbered (placement numbers it). */
int executor_again(struct executor *e);
/* The number that the next attempt gets. */
uint32_t executor_next_attempt(const struct executor *e);
/* Numbers the attempt that begins; it is a restart unless it is the first, or the one before was bounced. */
void executor_number(struct executor *e, uint32_t attempt);
/* Marks an ended executor as not coming back, counting it as success or failure of its role (KILLED:
 * neither). */
void executor_set_gone(struct executor *e);
/* Takes that back: it starts again although it had ended well. */
void executor_return(struct executor *e);
/* Sets a state that was loaded from the store. */
void executor_restore_state(struct executor *e, enum executor_state state);

uint32_t job_running(const struct job *j);
/* Hold resources, also those that are leaving; of an array: its elements that are not over. */
uint32_t job_active(const struct job *j);
bool job_all_up(const struct job
                        *j); /* every executor that has to run for RUNNING (min_num of each role) is or was */
/* Everybody runs, or was successful: whatever went wrong before has been made good. */
static inline bool job_made_good(const struct job *j) {
        for (size_t i = 0; i < j->spec->n_roles; i++) {
                const struct role *r = j->roles + i;
                if (r->n_state[EXECUTOR_RUNNING] + r->n_succeeded + r->n_ignored < r->spec->num)
                        return false;
        }
        return true;
}

/* Replaces a text for people; what is not UTF-8 in it becomes '?', since D-Bus would not take it. NULL
 * clears. */
int text_set(char **field, const char *format, ...) _printf_(2, 3);
