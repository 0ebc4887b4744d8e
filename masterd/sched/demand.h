/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts would let those start that wait: the scheduler's own placement, on a copy of the hosts that has
 * imagined ones beside them, each empty and of some shape that could be made. Nobody is told, nothing
 * changes.
 *
 * In the order of the queue each job is placed on what is there, on hosts that are on their way, and on those
 * imagined for the jobs before it. Where that does not do, the cheapest set of further hosts is looked for on
 * which it does: of each shape alone the least number, and of all of them together, the dearest ones taken
 * away first; of these the cheapest, and of equals the fewest. A gang gets all of its hosts or none. An
 * elastic one gets hosts for as many executors as its limits and the shapes' numbers allow. */
#pragma once

#include "masterd/sched/policy.h"

#define DEMAND_SHAPES_MAX 64u

/* A host that could be made. */
struct demand_shape {
        struct sched_capacity capacity;
        struct sched_description description;
        uint32_t free; /* so many more there may be */
        uint64_t cost; /* of one */
        /* Whether that job, of that pool, may bring one; NULL: all may. */
        bool (*serves)(const void *userdata, uint32_t pool, uint64_t job);
        const void *userdata;
};

struct demand_ask {
        const struct demand_shape *shapes;
        size_t n_shapes;
        const uint32_t *coming; /* shapes of those on their way */
        size_t n_coming;
        const uint32_t *back; /* slots of hosts that take nothing now, and would if they were wanted */
        size_t n_back;
        uint64_t boot_usec; /* a job with a reservation this near does not need one */
        /* A host looked at, once for each shape of a gang: 1 to 10 ns. Then the rest of the queue is not
         * looked at. 0: the default. */
        uint64_t work;
};
#define DEMAND_WORK 1500000u

enum demand_verdict {
        DEMAND_HERE,     /* on what is there or coming */
        DEMAND_NEW,      /* with these */
        DEMAND_FULL,     /* with more than there may be */
        DEMAND_NO_SHAPE, /* not even with any number of them */
        DEMAND_LIMIT,    /* its pool or user is at a limit: no host would help */
        DEMAND_SOON,     /* it has a reservation before a new host would be there */
};

struct demand_job {
        uint64_t id;
        enum demand_verdict verdict;
        uint32_t n[DEMAND_SHAPES_MAX]; /* new ones, by shape */
};

struct demand {
        struct demand_job *jobs; /* in the queue's order; of those that want something */
        size_t n;
        uint64_t *coming; /* by ask.coming: the first job that would be placed there; 0: none */
        bool *slots;      /* by slot: something that waits would be placed on that host */
        uint32_t n_slots;
        bool cut; /* there were more jobs than the work allowed */
};
void demand_done(struct demand *d);

/* -EINVAL for a shape outside the bounds, -ENOMEM. */
int policy_demand(struct policy *p, uint64_t now, const struct demand_ask *ask, struct demand *ret);
