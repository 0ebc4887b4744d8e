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
#include "masterd/job/failover.h"
#include "masterd/job/job-features.h"
#include "masterd/job/states.h"
#include "masterd/spec/spec.h"

#define SCAN_ROLE "_scan" /* role of the executors that list a source; its index is the source */

struct manager;
struct node;
struct job;

struct array;
struct audience;
struct job_data;
struct job_health;
struct job_peers;
struct metrics;
struct series;
struct usage;

/* A (role, index) and its latest attempt. Earlier attempts are in the store. */
struct executor {
        struct job *job;
        uint32_t role; /* index into spec->roles */
        uint32_t index;
        uint32_t rank;    /* place in job->executors */
        uint32_t attempt; /* 0: none yet */
        enum executor_state state;
        bool gone;    /* ended, and no other attempt will follow */
        bool ready;   /* its agent has said so (roles with ready) */
        bool stuck;   /* it does not die, and is waited for (masterd/fleet/stuck.h) */
        bool bounced; /* the host could not start the latest attempt, for no fault of the executor */
        struct executor_leaver leaver;

        struct node *node;                      /* of this attempt; stays for display after the end */
        struct executor *node_next, *node_prev; /* list of the node, while it holds resources there */
        struct executor_place place;
        uint64_t epoch; /* of the job: the rendezvous that its trainer was told last; 0: not known */
        sd_id128_t invocation;
        uint64_t placed_real; /* by our clock and never before attempt_real of its job: tells whose attempt it
                                 is */
        uint64_t started_real, ended_real, started_boot; /* by the host's clock, but started_boot */
        struct executor_orders orders;
        char *reason; /* how it ended, one line; or why it waits */
        struct executor_end end;
        struct executor_restart restart;
        uint64_t memory; /* bytes it has, where that is not what its role says; else 0 */

        struct executor_feed feed;
        struct executor_watch watch;
        uint64_t tail_offset; /* log bytes that reached the kept tail (masterd/relay/logs.h) */
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
        struct job_given given;
        struct role *roles;          /* spec->n_roles */
        struct executor **executors; /* all, by rank: roles[i].executors point into it */
        uint32_t n_executors;
        uint64_t submitted_real, started_real, ended_real;
        char *reason; /* why it waits or how it ended */
        char *first_error;
        char *warnings; /* of what was submitted: lines ended by \n; NULL: none */
        uint64_t event_seq;
        struct audience *audience; /* who gets its signals (masterd/api/audience.h); NULL: nobody yet */

        struct job_leavers leavers;
        struct job_change change;
        struct job_rolling rolling;
        struct job_rendezvous rendezvous;
        struct job_hosts hosts;
        struct job_held held;
        struct job_slot slot;
        struct job_queue queue;
        struct job_requeue requeue;
        struct job_depend depend;
        struct scope scope;   /* of all roles with restartScope job */
        struct array *array;  /* it is an array: masterd/life/arrays.h */
        uint32_t array_since; /* of one that was run again: elements up to this number count if they succeeded
                               */
        struct job_element element;
        struct job_data *data;      /* NULL without input */
        struct kept_progress *kept; /* masterd/life/kept-progress.h; NULL: its progress ends with it */
        struct job_peers *peers;    /* masterd/job/peers.h */
        struct usage *usage;        /* what its executors held: masterd/life/usage.h */
        bool usage_known;           /* usage is all of it */

        uint32_t parent;  /* the job that it was submitted from; 0: from none, */
        bool with_parent; /* with which it ends: masterd/life/family.h */
        struct {
                struct job *guardian; /* the parent; NULL: it ends with none, or has to */
                struct job *wards;    /* that end with it */
                struct job *prev, *next;
        } family;

        uint32_t order_step;    /* SCHEDULE_POLICY_ORDER: roles[order] up to here may be placed */
        enum job_event verdict; /* while STOPPING: what it ends as (SUCCEEDED, FAILED, KILLED or REQUEUE) */
        uint64_t kill_grace; /* while STOPPING: the grace that a kill asked for, in usec, + 1; 0: its own */
        uint8_t kill_status; /* what it exits with when it is KILLED, as a kill asked for; 0: 3 */
        sd_event_source *grace_timer;

        struct metrics *metrics;   /* masterd/watch/training.h; NULL: its trainers have said nothing */
        struct job_health *health; /* masterd/watch/healing.h; NULL: nothing was seen of it yet */

        struct job *ended_next, *ended_prev; /* finished jobs kept in memory, oldest first */
        UT_hash_handle hh;                   /* by number */
};

/* Takes over spec (also on failure). Every executor is PENDING without an attempt. */
int job_new(uint32_t number, sd_id128_t uid, uint32_t owner, struct job_spec *spec, struct job **ret);
/* Frees all; timers included. The job must not be in any list or table. */
struct job *job_free(struct job *j);
/* Forgets secrets and variables of the submitter, which end with the job. */
void job_forget_private(struct job *j);
/* All of it; what is left is as if nothing had been given. */
void job_given_done(struct job_given *g);
static inline void job_free_p(struct job **j) {
        job_free(*j);
}

struct executor *job_executor(struct job *j, const char *role, uint32_t index); /* NULL: no such */
/* The one whose latest attempt that is, also when it is leaving. NULL: no such. */
struct executor *job_attempt(struct job *j, const char *role, uint32_t index, uint32_t attempt);
static inline const struct role_spec *executor_role(const struct executor *e) {
        return e->leaver.role ? e->leaver.role : e->job->spec->roles + e->role;
}

struct scope *scope_new(struct job *j); /* NULL: no memory */
void scope_free(struct scope *s);
/* Its scope, or NULL where it is started again alone, or leaves. */
struct scope *executor_scope(const struct executor *e);
/* How long one that is being stopped gets between the signals: its job's word, or less where its host drains.
 */
uint64_t executor_grace(const struct executor *e);
/* The same for a job that is stopped as a whole: what a kill asked for, else what its configuration says. */
uint64_t job_grace(const struct job *j);
uint32_t job_exit_status(const struct job *j); /* 255: it has not ended */
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
void job_stop_avoiding(struct job *j, const char *node);

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
