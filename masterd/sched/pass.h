/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over those that wait: what its files share. */
#pragma once

#include "masterd/sched/plan.h"
#include "masterd/sched/policy-internal.h"

/* policy.c */
/* Says why it waits, to the owner if that is new. */
void entry_waits(struct policy *p, struct entry *e, const struct policy_why *why);
/* It wants nothing any more. */
void entry_satisfied(struct policy *p, struct entry *e);
/* Gives the entry a reservation instead of the one that it has; NULL: none. */
void entry_reserve(struct policy *p, struct entry *e, struct reservation *r);

#define MISSES_MAX 128u

/* A shape for which there was no room: neither is there for one that takes as much for as long, until
 * something is given back. */
struct miss {
        struct sched_shape shape;
        struct sched_no_fit why; /* if .explained */
        bool explained;
        uint64_t until; /* the end of its run, if it was in the way of reservations; else 0 */
        uint64_t ahead;
};

/* A shape for which there were not enough victims either. */
struct hopeless {
        struct sched_shape shape;
        uint32_t pool;
        int32_t priority;
};

/* Of a pass that only asks about one entry: nobody is told, stopped or given anything. */
struct trial {
        uint32_t placed; /* executors that would get a place; 0: why.reason of the entry says why not */
};

struct pass {
        struct policy *policy;
        struct trial *trial; /* NULL: it is carried out */
        struct plan *plan;   /* NULL: none was needed yet */
        uint64_t now, next;
        uint32_t started, planned, searched;
        uint32_t
                owed; /* SCHED_... bits that those before wait for, and may not be passed over for any more */
        uint64_t owed_to;
        bool cut;       /* those behind are for the next call */
        bool firm_owed; /* the same for what is not guaranteed to anybody */
        struct miss misses[MISSES_MAX];
        size_t n_misses;
        struct hopeless hopeless[MISSES_MAX];
        size_t n_hopeless;
        uint32_t pool_owed[POLICY_POOLS_MAX]; /* SCHED_... bits of limits */
        struct reservation **voided;          /* freed at the end */
        size_t n_voided;
};

/* pass.c */
/* -ENOMEM. */
int pass_new(struct policy *p, uint64_t now, struct pass **ret);
struct pass *pass_free(struct pass *pass);
/* Makes the plan, if there is none yet. */
int pass_need_plan(struct pass *pass);
/* Claims come before everything else. */
int pass_add_claims(struct pass *pass);
/* Places what the entry asks for, or says why it waits. -ENOMEM; whatever else went wrong is the entry's. */
int pass_try(struct pass *pass, struct entry *e, const struct sched_gang *g);
/* What the one before keeps from those behind it once it has waited for its patience: of what there is, and
 * of a limit that it is at. */
void pass_keep_hosts(struct pass *pass, const struct entry *e, uint32_t lacking);
void pass_keep_limit(struct pass *pass, const struct entry *e, enum policy_reason reason,
                     const struct policy_amount *least);

/* preempt.c */
/* Looks for jobs to be stopped for the entry, and has them stopped. *ret: the claim on their places; NULL:
 * nobody is to be stopped. */
int preempt_for(struct pass *pass, struct entry *e, const struct sched_gang *g, struct reservation **ret);
