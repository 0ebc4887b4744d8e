/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs next: the one policy of the scheduler (docs/scheduling.md has it for people, with a worked
 * example). Pure: no clock, no bus, no store; sees lib/base and sched.h alone. The same calls give the same
 * answers.
 *
 * Times are microseconds of one clock that the caller chooses (masterd: CLOCK_BOOTTIME; primus-sim: its own).
 * Order of those that wait: priority with aging, then the pool with the least decayed usage by weight, then
 * its user with the least, then who came first. Jobs that do not fit get a reservation from the time limits
 * of what runs (conservative backfill); whoever is behind may start only where no reservation is delayed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/sched/sched.h"

#define POLICY_POOLS_MAX 256u
#define POLICY_POOL_NAME_MAX 64u
#define POLICY_PRIORITY_MAX 1000 /* -1000 ... 1000 */

struct policy;

/* An amount of what is shared out. In a limit UINT64_MAX (UINT32_MAX) is "none". */
struct policy_amount {
        uint64_t cpu_milli, memory;
        uint32_t gpus;
};

struct policy_pool {
        char name[POLICY_POOL_NAME_MAX];
        uint32_t weight;                 /* share against other pools; >= 1 */
        struct policy_amount guarantee;  /* others may borrow it while the pool does not need it, and give it
                                            back by preemption; zeros: none */
        struct policy_amount limit;      /* never more than that at a time */
        struct policy_amount user_limit; /* the same for each user of the pool */
        bool preempts; /* its jobs may take the place of preemptible ones of lower priority */
};

struct policy_conf {
        uint64_t half_life_usec; /* of usage; default 7 days */
        uint64_t aging_usec;     /* a level of priority for each such time waited; 0: none; default 1 hour */
        int32_t aging_max;       /* levels at most; default 10 */
        uint32_t reservations;   /* jobs that get one in a pass; default 64 */
        uint64_t min_run_usec;   /* no victim before it has run so long; default 60 s */
        uint64_t
                replan_usec; /* a reservation that still holds is not looked for again so soon; default 5 s */
        uint32_t looks; /* at whether something fits at some time, in a call of policy_run(); default 300 */
        uint64_t work;  /* in a call, about: a unit is a host looked at (some 50 ns); what is left is for the
                           next call; default 400,000 */
        uint64_t ahead_usec;    /* what is held counts as used for so long in advance, so that those who get a
                                   place do not look as poor as those who did not; default 1 hour */
        uint64_t patience_usec; /* a job whose reservation is not known is passed over for so long; default 10
                                   min */
};
void policy_conf_defaults(struct policy_conf *ret);

struct policy_job {
        uint64_t id;
        uint32_t pool; /* index, from policy_pool_set() */
        uint32_t user;
        int32_t priority;
        uint64_t submitted;     /* waits since */
        uint64_t duration_usec; /* upper bound of its run; UINT64_MAX: none */
        bool preemptible;
};

/* Why a job waits. */
enum policy_reason {
        POLICY_NOT_TRIED,  /* no pass has come to it yet */
        POLICY_NO_FIT,     /* see no_fit */
        POLICY_RESERVED,   /* it would fit, but those before it would start later: see ahead */
        POLICY_POOL_LIMIT, /* the pool's limit */
        POLICY_USER_LIMIT, /* the user's limit in the pool */
        POLICY_PREEMPTING, /* others are being stopped for it: see victims */
        POLICY_NEVER, /* not even if all hosts that are here were empty, or more than a limit by itself */
        POLICY_GUARANTEED, /* it would fit, but could not be stopped when another pool wants what it is
                              guaranteed */
        POLICY_SKIPPED,    /* what it waits for could not be found out: an error of its owner or no memory */
};
struct policy_why {
        enum policy_reason reason;
        struct sched_no_fit no_fit; /* of POLICY_NO_FIT, _RESERVED, _NEVER */
        uint64_t position;          /* so many are tried before it */
        uint64_t starts_by; /* its reservation; UINT64_MAX: none (something runs without a limit, or it
                               is too far behind) */
        uint64_t ahead;     /* id of a job whose reservation it would delay; 0: none */
        uint32_t victims;   /* jobs that are being stopped for it */
};

/* What the policy asks of its owner. userdata is the one of policy_new(). None of them may call back into the
 * policy but where it says so. */
struct policy_ops {
        /* What the job waits for now. Valid until the next call of gang() or placed(). 0; positive: nothing
         * any more (it stays known, and is not tried again before policy_job_wants()); negative: it is left
         * out in this pass. */
        int (*gang)(void *userdata, uint64_t id, struct sched_gang *ret);
        /* Calls each() for what every executor of the job holds. */
        void (*holds)(void *userdata, uint64_t id, void (*each)(void *arg, const struct sched_hold *h),
                      void *arg);
        /* The job got these places; they are held in struct sched already. The owner says policy_held() for
         * each. */
        void (*placed)(void *userdata, uint64_t id, const struct sched_placement *p);
        /* The victim has to go, so that by_id fits. The owner says policy_job_leaving(), and
         * policy_job_wants() when it is to wait again. */
        void (*preempt)(void *userdata, uint64_t victim, uint64_t by_id);
        /* How many "executor microseconds" of work would be lost if it were stopped now: executors × time
         * since its savepoint (or since it started). */
        uint64_t (*cost)(void *userdata, uint64_t id, uint64_t now);
        /* The reason it waits has changed. */
        void (*waits)(void *userdata, uint64_t id, const struct policy_why *why);
};

int policy_new(struct sched *s, const struct policy_conf *conf, const struct policy_ops *ops, void *userdata,
               struct policy **ret);
struct policy *policy_free(struct policy *p);
static inline void policy_free_p(struct policy **p) {
        policy_free(*p);
}

/* A new pool, or other settings for the one of that name. Pool 0 is "default" and exists from the start.
 * -E2BIG: too many. */
int policy_pool_set(struct policy *p, const struct policy_pool *pool, uint32_t *ret_index);
/* -ENOENT. */
int policy_pool_find(const struct policy *p, const char *name, uint32_t *ret_index);
void policy_configure(struct policy *p, const struct policy_conf *conf);

/* The job waits from now on. -EEXIST, -EINVAL (pool), -ENOMEM. O(log n). */
int policy_job_add(struct policy *p, const struct policy_job *job);
/* Other settings of a job that is known; whether it waits or runs stays. -ENOENT. */
int policy_job_update(struct policy *p, const struct policy_job *job);
/* It has executors to place (again). Idempotent. -ENOENT, -ENOMEM. */
int policy_job_wants(struct policy *p, uint64_t id);
/* It waits for nothing any more; what it holds, it holds. */
void policy_job_satisfied(struct policy *p, uint64_t id);
/* Its run began then (also of a job that was loaded): its end is expected duration later. 0: it does not run
 * any more. */
void policy_job_runs(struct policy *p, uint64_t id, uint64_t started);
/* It is being stopped, and gone at the latest then. */
void policy_job_leaving(struct policy *p, uint64_t id, uint64_t gone_by);
/* It is not stopped after all. */
void policy_job_stays(struct policy *p, uint64_t id);
/* Forgets it. What it held must have been given back. */
void policy_job_remove(struct policy *p, uint64_t id);

/* An executor of the job holds (sign 1) or has given back (sign -1) that much, from now on. Usage is charged
 * from this. */
void policy_held(struct policy *p, uint64_t id, const struct policy_amount *a, int sign, uint64_t now);

/* Tries those that wait, in order. Returns how many jobs got something, or a negative errno. *ret_next: when
 * to run again though nothing has changed (aging, the end of a run that blocks a reservation); UINT64_MAX:
 * never; not later than now: there is more to do than one call is to take, call it again soon. */
int policy_run(struct policy *p, uint64_t now, uint64_t *ret_next);

/* In ops->placed(): how many jobs that come before it do not fit; above 0, it fills a hole that they leave.
 */
uint64_t policy_passed_over(const struct policy *p);

/* Why it waits. -ENOENT: it does not. It costs as much as the queue before it is long. */
int policy_why(struct policy *p, uint64_t id, struct policy_why *ret);
/* The same but for position, which is 0: what the last pass said, at no cost. */
int policy_last_why(struct policy *p, uint64_t id, struct policy_why *ret);

/* Those that wait, in the order in which they would be tried: at most n ids. Returns how many. */
size_t policy_order(struct policy *p, uint64_t now, uint64_t *ids, size_t n);

struct policy_trial {
        uint32_t placed;       /* executors that would get a place at once; 0: it would wait */
        struct policy_why why; /* where it would; victims are those that would be stopped for it */
};
/* What would become of the job, which is not known, if it came now: nobody is told, nothing changes. g: what
 * it asks for, of at least one shape. -EEXIST, -EINVAL (pool), -ENOMEM. It costs as much as the queue before
 * it is long, and a copy of the scheduler. */
int policy_try(struct policy *p, const struct policy_job *job, const struct sched_gang *g, uint64_t now,
               struct policy_trial *ret);

struct policy_share {
        uint32_t pool, user;       /* user UINT32_MAX: the pool as a whole */
        double usage;              /* decayed, in cluster seconds: dominant share × seconds */
        uint64_t at;               /* as of then */
        struct policy_amount held; /* now */
        uint32_t running, waiting; /* jobs */
};
/* Calls each() for every pool and every (pool, user) known. */
void policy_shares(struct policy *p, uint64_t now, void (*each)(void *arg, const struct policy_share *s),
                   void *arg);
/* Sets the usage of a (pool, user), after a restart. */
int policy_share_restore(struct policy *p, uint32_t pool, uint32_t user, double usage, uint64_t at);
