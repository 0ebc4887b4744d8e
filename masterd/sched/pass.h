/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over those that wait: what its files share. */
#pragma once

#include "masterd/sched/policy-internal.h"

/* policy.c */
/* Says why it waits, to the owner if that is new. */
void entry_waits(struct policy *p, struct entry *e, const struct policy_why *why);
/* It wants nothing any more. */
void entry_satisfied(struct policy *p, struct entry *e);

#define MISSES_MAX 32u

/* A shape for which there was no room: neither is there for one that takes as much, until something is given
 * back. */
struct miss {
        struct sched_shape shape;
        struct sched_no_fit why;
};

struct pass {
        struct policy *policy;
        uint64_t now, next;
        uint32_t started;
        uint32_t
                owed; /* SCHED_... bits that those before wait for, and may not be passed over for any more */
        uint64_t owed_to;
        struct miss misses[MISSES_MAX];
        size_t n_misses;
};
