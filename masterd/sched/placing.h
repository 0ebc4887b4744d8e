/* SPDX-License-Identifier: Apache-2.0 */
/* A placement while it is being put together: choose.c has the steps, topology.c and gang.c say in which
 * order. */
#pragma once

#include "masterd/sched/internal.h"

/* k executors of a shape on a node. */
struct choice {
        uint32_t shape, slot, k;
        struct grant grant;
};

struct placing {
        struct sched *s;
        const struct sched_gang *gang;
        struct need needs[SCHED_SHAPES_MAX];
        uint64_t apart[SCHED_SHAPES_MAX]; /* both ways */
        struct choice *choices;
        size_t n, allocated;
        uint32_t gang_mark, shape_mark;
        uint64_t min;              /* executors at the least */
        bool has_limits, has_near; /* of a shape: not on all nodes; near to another */

        /* Only nodes of some domains of a level: by domain; NULL: all nodes. */
        const bool *scope;
        uint32_t scope_level;

        /* A node for a shape that others have to be near to also has room for so many of them, in relation to
         * their numbers: 0: does not matter; 1: for one; 2: for as many as come to one of it. */
        unsigned company;

        /* Of the current shape: the slots it may use, in s->universe, unless all. */
        bool limited;
        size_t n_universe;
};

/* What one executor of a valid shape takes. -EINVAL, -ENOMEM. */
int shape_need(struct sched *s, const struct sched_shape *h, uint64_t whole_hosts, struct need *ret);

/* A stamp that no slot carries yet. */
uint32_t placing_stamp(struct sched *s);

/* Chooses k executors of the shape there. -ENOMEM. */
int placing_choose(struct placing *p, uint32_t shape, uint32_t slot, uint32_t k);
/* Gives back the choices behind the first n. */
void placing_take_back(struct placing *p, size_t n);

/* Makes marks and universe those of a shape: where executors of it are, and what it may not use. Undone by
 * placing_end_shape(). */
void placing_begin_shape(struct placing *p, uint32_t shape);
void placing_end_shape(struct placing *p);

/* How many more of the shape the limits per node allow on a node. */
uint32_t placing_allowance(const struct placing *p, uint32_t shape, uint32_t slot);
/* Executors of the current shape there. */
uint32_t placing_count_there(const struct placing *p, uint32_t slot);

/* Where the current shape may go, and how many: s->candidates, the best of them first. Returns how many
 * nodes; *ret_room: executors on them together, each node counted for no more than are wanted. */
uint32_t placing_find_candidates(struct placing *p, uint32_t shape, uint32_t wanted, uint64_t *ret_room);
bool candidate_comes_before(const struct candidate *a, const struct candidate *b);
/* Heap of candidates, the best first. */
void candidates_heap(struct candidate *c, uint32_t n);
void candidates_sift(struct candidate *c, uint32_t n, uint32_t i);

/* Chooses places for wanted executors of the current shape, as few nodes as possible; or, when partial, for
 * as many as fit. *ret_placed of them. SCHED_E_NO_FIT: there is no room for all (then what was chosen, of
 * shapes with per_node, is the caller's to take back). */
int place_together(struct placing *p, uint32_t shape, uint32_t wanted, bool partial, uint32_t *ret_placed);
/* One by one; together: on a node of the gang where one fits. */
int place_singly(struct placing *p, uint32_t shape, uint32_t wanted, bool together);
/* Evenly over the domains of the gang's level. */
int place_spread(struct placing *p, uint32_t shape, uint32_t wanted, bool partial, uint32_t *ret_placed);

/* How shapes are sorted, largest first. */
enum order {
        BY_FREEDOM, /* those that have fewer nodes to choose from first, then as BY_GPUS */
        BY_GPUS,
        BY_MEMORY,
        BY_CPU,
        _ORDER_MAX
};
/* In whichever way works, of all that p->scope allows; nothing is chosen on SCHED_E_NO_FIT. ret_why may be
 * NULL. */
int place_somehow(struct placing *p, struct sched_no_fit *ret_why);
/* Begins anew: only the executors that are present are the gang's. */
void placing_restart(struct placing *p);
/* topology.c: the same as place_somehow(), within the gang's topology. *ret_scope is what p->scope is set to,
 * for the caller to free when all is done. */
int place_in_topology(struct placing *p, bool **ret_scope);
/* For how many of the gang's least numbers there is room in the domain of a level that has most; empty: if
 * nobody held anything. *ret_all: in one of them, for all. -ENOMEM. */
int topology_room(struct placing *p, bool empty, uint64_t *ret_most, bool *ret_all);

/* explain.c: why there is no room for a shape beside what is chosen now. */
void explain_shape(struct placing *p, uint32_t shape, struct sched_no_fit *ret);
/* Why there is none in one domain, though there is in several. -ENOMEM. */
int explain_topology(struct placing *p, struct sched_no_fit *ret);
