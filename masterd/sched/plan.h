/* SPDX-License-Identifier: Apache-2.0 */
/* What is expected of the future: who ends when, and what is reserved from when on. Lives for one pass; the
 * reservations themselves are kept by their jobs from pass to pass. */
#pragma once

#include "masterd/sched/policy-internal.h"

#define OVERDUE_USEC UINT64_C(1000000) /* what ought to have ended by now is expected to in a second */

/* Places that a job is to have from a time on. */
struct reservation {
        struct entry *entry;
        uint64_t start, end;           /* UINT64_MAX: nobody knows when it ends */
        struct sched_placement places; /* of the least of its gang; the ports in it are not promised */
        uint64_t made;                 /* when it was found */
        uint64_t sign;                 /* of all that it was derived from */
        bool guess;                    /* the time is: something runs that has no limit */
        bool claim; /* others are being stopped for it: it comes before all other reservations */
        uint32_t victims;
        uint32_t leaving; /* so many of them are still there */
};
struct reservation *reservation_free(struct reservation *r);
/* It is nobody's any more, though plans may still know it. */
static inline void reservation_void(struct reservation *r) {
        r->start = UINT64_MAX;
        r->end = 0;
}

struct plan;
int plan_new(struct policy *p, uint64_t now, struct plan **ret);
struct plan *plan_free(struct plan *plan);
static inline void plan_free_p(struct plan **plan) {
        plan_free(*plan);
}

/* Those behind have to respect it from now on; it stays its entry's. */
int plan_add(struct plan *plan, struct reservation *r);
size_t plan_length(const struct plan *plan);
/* A number that says what the plan is derived from: the same number, the same plan. */
uint64_t plan_sign(const struct plan *plan);
/* The entry holds this now, in the live scheduler. */
int plan_started(struct plan *plan, struct entry *e, const struct sched_placement *places);
/* When the entry ends has changed: it is being stopped. */
int plan_leaves(struct plan *plan, struct entry *e);

/* Places the gang in the live scheduler so that its run delays no reservation of others: what those take
 * later is not there for it. Like sched_place(); *ret_ahead is the job with a reservation in its way, 0:
 * none, it does not fit in any case. */
int plan_place(struct plan *plan, struct entry *e, const struct sched_gang *g, struct sched_placement *ret,
               struct sched_no_fit *ret_why, uint64_t *ret_ahead);
/* The same for exactly these places. Ports that are taken meanwhile are chosen anew. *ret: as held. */
int plan_place_there(struct plan *plan, struct entry *e, const struct sched_gang *g,
                     const struct sched_placement *places, struct sched_placement *ret);
/* The first time at which the gang fits without delaying a reservation of others. SCHED_E_NO_FIT: not even
 * when all has ended of which the end is known. */
int plan_find(struct plan *plan, struct entry *e, const struct sched_gang *g, struct reservation **ret);
/* Whether the gang would fit if nothing else were there at all. SCHED_E_NO_FIT: no. */
int plan_possible(struct plan *plan, const struct sched_gang *g);
/* So much was looked for that it has to do for this call. */
bool plan_exhausted(const struct plan *plan);
/* Whether a reservation still holds. */
bool plan_keeps(struct plan *plan, const struct reservation *r);

/* Gives back what was placed in s. */
void places_give_back(struct sched *s, const struct sched_placement *p);

/* For preemption: what if these were gone? entry->out says which. Changes of out go through plan_out(). */
int plan_out(struct plan *plan, struct entry *e, bool out);
/* Whether the gang would fit then, now, without delaying a reservation of others. ret may be NULL. */
int plan_fits(struct plan *plan, struct entry *e, const struct sched_gang *g, struct sched_placement *ret);
