/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the scheduler share: the nodes as they are, and beside them what is free on each as flat
 * arrays of small integers, which the compiler turns into vector code. Invariant: node_refresh() has been
 * called after every change of a node. */
#pragma once

#include "masterd/sched/sched.h"

#define BLOCK 256u /* nodes looked at together; the arrays are as long as a multiple of it */

struct held {
        uint64_t cpu_milli, memory;
        uint32_t gpus, ports, executors; /* how many */
};

struct sched_node {
        bool exists, usable;
        bool hidden; /* not for the shape that is being placed */
        struct sched_capacity capacity;
        struct held held;   /* during a placement also what it has chosen so far */
        uint64_t gpus;      /* bits held; behind held.gpus during a placement */
        uint64_t *ports;    /* bit per port of the range, made when first needed */
        uint32_t port_next; /* where to look next: a port just given back rests a while */
};

struct candidate;

struct sched {
        struct sched_node *nodes;
        uint32_t n, allocated; /* slots in use at some time; length of the arrays, a multiple of BLOCK */
        uint32_t existing;
        uint64_t grown; /* rises with each change by which something may fit that did not, or the other way */

        /* What is free, by slot. 0 everywhere on a node that takes nothing. */
        int32_t *cpu;
        int32_t *memory_mib; /* rounded up: a first sieve; memory[] decides */
        int32_t *gpus;
        int32_t *ports;
        int32_t *executors;
        uint64_t *memory;

        /* Scratch of a placement, by slot: marks are valid when their stamp is the current one. */
        uint32_t *gang_stamp;  /* an executor of the gang is or goes there */
        uint32_t *shape_stamp; /* shape_count is valid */
        uint32_t *shape_count; /* executors of the shape there */
        uint32_t *allow_stamp; /* the slot was seen in allowed[] */
        uint32_t stamp;
        struct candidate *candidates;
        uint32_t *hidden; /* slots to be shown again */
        uint32_t n_hidden;
};

/* A node on which some executors of a shape fit. */
struct candidate {
        uint64_t key; /* the smaller, the sooner it is taken */
        uint32_t slot, count;
};

/* What one executor of a shape takes. */
struct need {
        uint32_t cpu_milli, gpus, ports;
        uint64_t memory;
};

/* nodes.c */
void node_refresh(struct sched *s, uint32_t slot);
/* Counts k executors in (or out), without choosing GPUs and ports. */
void node_take(struct sched *s, uint32_t slot, const struct need *n, uint32_t k);
void node_return(struct sched *s, uint32_t slot, const struct need *n, uint32_t k);
void node_hide(struct sched *s, uint32_t slot);
void nodes_show(struct sched *s);
/* GPUs and ports for one executor that was counted with node_take(). ports has room for n->ports. -ENOMEM. */
int node_assign(struct sched *s, uint32_t slot, const struct need *n, uint64_t *ret_gpus, uint16_t *ports);
/* Undoes node_assign(), not node_take(). */
void node_unassign(struct sched *s, uint32_t slot, uint64_t gpus, const uint16_t *ports, uint32_t n_ports);

/* fit.c */
#define SLOT_NONE UINT32_MAX
/* The node with room for one on which least is left: GPUs first, then CPU (memory where no CPU is asked for);
 * the lowest slot among equals. SLOT_NONE: there is none. */
uint32_t fit_best(const struct sched *s, const struct need *n);
/* The same among some slots. */
uint32_t fit_best_of(const struct sched *s, const struct need *n, const uint32_t *slots, size_t n_slots);
/* How many fit on a node, at most limit. */
uint32_t fit_count(const struct sched *s, const struct need *n, uint32_t slot, uint32_t limit);
/* What is left on the node when k more are there, as one number: the smaller, the better the fit. */
uint64_t fit_left(const struct sched *s, const struct need *n, uint32_t slot, uint32_t k);
/* SCHED_... bits of which the node has too little for one. */
uint32_t fit_lacking(const struct sched *s, const struct need *n, uint32_t slot);
/* How many would fit if the node were empty. */
uint32_t fit_capacity(const struct sched_capacity *c, const struct need *n, uint32_t limit);
