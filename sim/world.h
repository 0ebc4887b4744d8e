/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster that is only imagined: jobs come, run for as long as they are said to, hosts fail; who runs where
 * is decided by masterd's own policy. Time is a number; the same input gives the same output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/sched/policy.h"

#define WORLD_SHAPES_MAX 8u

enum world_state {
        WORLD_FUTURE,
        WORLD_WAITING,
        WORLD_RUNNING,
        WORLD_LEAVING, /* has been told to stop */
        WORLD_DONE,
};

struct world_job {
        /* What it is. */
        uint32_t pool, user;
        int32_t priority;
        bool preemptible;
        uint64_t submitted;
        uint64_t runtime;   /* of work, all executors at once */
        uint64_t limit;     /* UINT64_MAX: none; the run is ended there, done or not */
        uint64_t savepoint; /* work is kept each time it has run so long; 0: never before its end */
        struct sched_shape shapes[WORLD_SHAPES_MAX];
        uint32_t n_shapes;
        uint8_t topology; /* enum sched_topology, of a level */
        uint32_t level;
        bool whole_hosts;
        size_t origin;          /* the caller's: which job of the trace it is of */
        uint32_t search, trial; /* the caller's: of a search's, else search is 0 */
        uint64_t mark;          /* .reached is called when so much of the work is done; 0: never */

        /* What became of it. */
        enum world_state state;
        struct sched_placement places;
        uint64_t started;       /* this run */
        uint64_t first_started; /* UINT64_MAX: never yet */
        uint64_t ended;
        uint64_t done;          /* of runtime, kept */
        uint64_t lost;          /* runs that were for nothing, in executors times time */
        uint64_t first_promise; /* the first time by which it was to start; UINT64_MAX: none was known */
        uint32_t runs, preempted, failed;
        bool backfilled; /* its first start was before that of jobs ahead of it */
        bool over_limit; /* ended by its limit */
        struct policy_why why;
};

struct world_event;

struct world {
        struct sched *sched;
        struct policy *policy;
        uint64_t now, grace; /* of those that are told to stop */
        struct world_job *jobs;
        size_t n_jobs;
        uint32_t n_hosts;
        size_t n_done;

        /* Sums over time, per microsecond. */
        struct policy_amount all;            /* of all hosts */
        struct policy_amount capacity, held; /* of those that are up, now */
        double cpu_time, cpu_capacity, gpu_time, gpu_capacity;
        uint64_t passes, last_end;

        /* Told when a run is over, for each executor (NULL: nobody wants to know). */
        void (*segment)(void *userdata, size_t job, const struct sched_hold *hold, uint64_t from,
                        uint64_t to);
        /* Told when a job's work has come to its mark. Returns the next one; 0: the job ends now. */
        uint64_t (*reached)(void *searches, size_t job);
        /* Told when a job has ended; may add others. NULL: as for all of these. */
        void (*finished)(void *searches, size_t job);
        void *searches;
        /* Told before each victim is stopped. */
        void (*preempt)(void *userdata, size_t victim, size_t by);
        /* Told after each pass. */
        void (*pass)(void *userdata);
        void *userdata;

        struct world_event *events; /* heap */
        size_t n_events, events_allocated;
        uint64_t sequence, wake;
        bool *host_down;
        int error;
};

int world_init(struct world *w, const struct policy_conf *conf, uint64_t grace);
void world_done(struct world *w);
int world_add_host(struct world *w, const struct sched_capacity *c, uint32_t *ret_slot);
/* Copies the first part of the job ("what it is"). -EINVAL. *ret: its index. */
int world_add_job(struct world *w, const struct world_job *job, size_t *ret);
int world_fail_host(struct world *w, uint32_t slot, uint64_t from, uint64_t to);
/* Until nothing happens any more, or then. */
int world_run(struct world *w, uint64_t until);
/* Tells .segment of runs that have not ended. */
void world_cut(struct world *w);
