/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the plan share. */
#pragma once

#include "masterd/sched/internal.h"
#include "masterd/sched/plan.h"

#define FOUND_MAX 64u
#define NONE UINT32_MAX

/* What an executor holds until its job ends. */
struct run {
        uint64_t end;
        struct entry *entry;
        struct sched_hold hold;
        uint32_t next; /* on the same node */
        bool guess;    /* the end is one */
};

/* What a reservation takes on a node. */
struct item {
        const struct reservation *r;
        const struct sched_hold *hold;
        uint32_t next;
};

/* What was found for a shape: one that takes as much for as long does not fit before it either. */
struct found {
        struct sched_shape shape;
        uint64_t duration, start;
};

/* What has been given back by a time, beside what is free now, on all nodes. */
struct moment {
        uint64_t at;
        struct policy_amount there;
};

/* What the reservation that is looked at takes on a node. */
struct own {
        uint64_t cpu, memory, shm, gpus;
        bool whole;
};

struct shadow {
        struct sched_hold *holds;
        size_t n, allocated;
        uint32_t *stamps; /* by slot */
        uint32_t stamp;
};

struct plan {
        struct policy *policy;
        struct sched *live, *copy;
        struct sched *empty; /* the same nodes with nothing on them; NULL: not needed yet */
        uint64_t now, at;
        uint32_t n_slots;
        uint32_t *slot_runs, *slot_items; /* heads of chains */
        struct run *runs;
        uint32_t *by_end; /* indices of runs */
        size_t n_runs, runs_allocated;
        size_t released; /* so many of by_end are given back in the copy */
        struct item *items;
        size_t n_items, items_allocated;
        const struct reservation **reservations;
        size_t n_reservations, reservations_allocated;
        uint64_t sign;
        struct shadow shadow;
        struct own *own; /* scratch, by slot; NULL: not needed yet */
        bool building, guessing;
        struct moment *times; /* at which something ends, as far as runs go; as of n_times > 0 */
        size_t n_times, times_allocated;
        struct found found[FOUND_MAX];
        size_t n_found;
        unsigned fits; /* how often that was looked at */
        int error;     /* of a callback */
};

/* plan.c: what ends when. */
bool plan_room(void *array, size_t element, size_t n, size_t *allocated);
uint64_t plan_mix(uint64_t a, uint64_t b);
/* A time in the future, if the one that was said has come and gone. */
uint64_t plan_not_past(const struct plan *plan, uint64_t t);
/* Moves the copy to a time. */
void plan_seek(struct plan *plan, uint64_t t);

/* plan-shadow.c: reservations of others. */
/* When a reservation begins to hold, as far as the plan is concerned, and when it ends or may be guessed to.
 */
uint64_t reservation_begins(const struct plan *plan, const struct reservation *r);
uint64_t reservation_over(const struct plan *plan, const struct reservation *r);
/* Whether a run of the entry between two times has to respect it. */
bool plan_concerns(const struct plan *plan, const struct reservation *r, const struct entry *e, uint64_t from,
                   uint64_t to);
/* Holds in s, for a run between two times, what it must not use; s is as of the first one. */
int shadow_cast(struct plan *plan, struct sched *s, const struct entry *e, uint64_t from, uint64_t to);
void shadow_lift(struct plan *plan, struct sched *s);
