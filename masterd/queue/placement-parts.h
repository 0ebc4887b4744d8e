/* SPDX-License-Identifier: Apache-2.0 */
/* What the files between jobs and the scheduler share: placement.c (who holds what where) and queueing.c (who
 * is next). For them alone. */
#pragma once

#include "masterd/queue/queueing.h"
#include "masterd/queue/shapes.h"
#include "masterd/sched/policy.h"
#include "masterd/sched/sched.h"

#define BLOCKED_MAX 256u

/* A port that somebody outside of our books uses. */
struct blocked_port {
        uint32_t slot;
        uint16_t port;
        uint64_t until;
};

/* What the policy has decided in a pass, to be done when it is through. */
struct verdict_of_pass {
        uint32_t job, by;     /* by 0: it was placed; else it has to go for that job */
        uint64_t passed_over; /* so many before it did not fit */
};

struct placement {
        struct sched *sched;
        struct node **nodes; /* by slot; NULL: free */
        size_t n_slots;
        struct blocked_port blocked[BLOCKED_MAX];
        size_t n_blocked;

        struct policy *policy;
        struct gang_data gang; /* what the policy asked for last */
        struct verdict_of_pass *verdicts;
        size_t n_verdicts, verdicts_allocated;
        bool shares_unwritten; /* something has run since the shares were last written */
        bool reloading;
        sd_event_source *pass_timer, *share_timer;
        struct worker *worker; /* looks users up */
};

/* placement.c */
struct sched_hold placement_hold_of(const struct executor *e);
/* NULL: nothing is there. */
struct node *placement_node(struct manager *m, uint32_t slot);
/* Gives the gang's executors the places that were found and are held. */
int placement_take(struct manager *m, struct job *j, const struct gang_data *g,
                   const struct sched_placement *p);
