/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets what where. Pure: no clock, no bus, no store; sees lib/base alone. All of it is one struct sched:
 * nodes in flat arrays, found by slot, and what is held on each of them. Nothing is ever held beyond what a
 * node has, and a gang holds all of its resources or none. The same calls in the same order give the same
 * answers.
 *
 * Life of an executor: sched_place() chooses and holds (or, after a restart of masterd, sched_reserve() holds
 * what is known to run), sched_release() gives back.
 *
 * Return values: 0; positive SCHED_E_... an outcome the caller handles; negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_GPUS_MAX 64u          /* on a node */
#define SCHED_SHAPES_MAX 64u        /* in a gang */
#define SCHED_EXECUTORS_MAX 100000u /* in a gang */
#define SCHED_PORTS_MAX 64u         /* of an executor */
#define SCHED_CPU_MAX 2000000000u   /* thousandths of a core */
#define SCHED_MEMORY_MAX (UINT64_C(1) << 50)

enum {
        SCHED_E_NO_FIT = 1,   /* not now; nothing is held */
        SCHED_E_CONFLICT = 2, /* a GPU or port is held by somebody else, or the node does not have it */
};

/* What there is to be short of, as bits. */
enum sched_resource {
        SCHED_CPU = 1 << 0,
        SCHED_MEMORY = 1 << 1,
        SCHED_GPUS = 1 << 2,
        SCHED_PORTS = 1 << 3,
        SCHED_EXECUTORS = 1 << 4, /* how many may run on a node, whatever they need */
        SCHED_NODES = 1 << 5,     /* nodes that are usable and allowed, or limits per node */
};

struct sched;

/* What a node has. */
struct sched_capacity {
        uint32_t cpu_milli;             /* thousandths of a core */
        uint64_t memory;                /* bytes */
        uint32_t gpus;                  /* numbered from 0 */
        uint16_t port_first, port_last; /* granted to executors; 0, 0: none */
        uint32_t executors;             /* at most so many */
};

int sched_new(struct sched **ret);
struct sched *sched_free(struct sched *s); /* NULL is fine; returns NULL */
static inline void sched_free_p(struct sched **s) {
        sched_free(*s);
}

/* A scheduler that is the same and goes its own way from here: the same slots, capacities and holds, and the
 * same answers to the same calls. It costs a copy of all arrays (about 150 bytes for each node). -ENOMEM. */
int sched_clone(const struct sched *s, struct sched **ret);

/* A new node, usable. The slot is its name here until it is removed; slots are used again. -EINVAL for a
 * capacity outside the bounds, -ENOMEM. */
int sched_node_add(struct sched *s, const struct sched_capacity *c, uint32_t *ret_slot);
/* The node has something else now. What is held stays held, also where it is more than the node has; nothing
 * new comes until enough is given back. -EINVAL. -EBUSY: the port range changes while ports are held. */
int sched_node_update(struct sched *s, uint32_t slot, const struct sched_capacity *c);
/* An unusable node takes nothing new. */
void sched_node_set_usable(struct sched *s, uint32_t slot, bool usable);
/* -EBUSY while something is held there. */
int sched_node_remove(struct sched *s, uint32_t slot);

struct sched_usage {
        struct sched_capacity capacity;
        uint64_t cpu_milli, memory; /* held */
        uint64_t gpus;              /* held, bit N: GPU N */
        uint32_t ports, executors;  /* held */
        bool usable;
};
/* -ENOENT: no such node. */
int sched_node_usage(const struct sched *s, uint32_t slot, struct sched_usage *ret);

/* What one executor holds on a node. */
struct sched_hold {
        uint32_t slot;
        uint32_t cpu_milli;
        uint64_t memory;
        uint64_t gpus; /* bit N: GPU N */
        const uint16_t *ports;
        uint32_t n_ports;
};

/* Holds what an executor that already runs has. CPU and memory are held even beyond what the node has, for
 * they are in use. SCHED_E_CONFLICT (nothing is held), -ENOENT, -ENOMEM. */
int sched_reserve(struct sched *s, const struct sched_hold *h);
/* Gives back exactly what was held: by sched_reserve(), or one item of a placement. */
void sched_release(struct sched *s, const struct sched_hold *h);

/* ---- gangs
 * ----------------------------------------------------------------------------------------------------------
 */

/* Executors that all need the same: a role. */
struct sched_shape {
        uint32_t min, max;  /* how many: at least min, up to max as many as fit; a plain gang has min = max.
                               max >= 1 */
        uint32_t cpu_milli; /* of each; 0: no share of its own */
        uint64_t memory;
        uint32_t gpus, ports;
        uint32_t max_per_node; /* 0: any number */
        uint32_t per_node; /* exactly so many on every node used; 0: not asked for. min and max are multiples,
                              or what is missing on the nodes of present[] is placed there first */
        bool restricted;   /* only on the nodes of allowed[] */
        const uint32_t *allowed;
        size_t n_allowed;
        const uint32_t *excluded; /* not on these */
        size_t n_excluded;
        const uint32_t
                *present; /* slots of executors of this role that hold something already, one entry each: they
                             count for max_per_node and per_node, and their nodes come first */
        size_t n_present;
};

struct sched_gang {
        const struct sched_shape *shapes;
        size_t n_shapes;
};

/* One executor's place. hold.ports points into the placement. */
struct sched_item {
        uint32_t shape;  /* index in the gang's shapes */
        uint32_t member; /* 0 ... n - 1 within the shape; neighbours are together on a node where possible */
        struct sched_hold hold;
};

struct sched_placement {
        struct sched_item *items; /* by shape, then member */
        size_t n;
        uint16_t *ports;
};
void sched_placement_done(struct sched_placement *p); /* frees the arrays; what is held stays held */

/* Why a gang did not fit. */
struct sched_no_fit {
        uint32_t shape;   /* the first for which there is not enough */
        uint32_t wanted;  /* its min */
        uint32_t fits;    /* how many of it would fit beside the shapes before it */
        uint32_t nodes;   /* usable and allowed for it */
        uint32_t scarce;  /* the one SCHED_... bit of which most nodes have too little for one more */
        uint32_t lacking; /* all such bits, of any node: what the gang waits for; 0 with never */
        bool never;       /* the shape would not fit even if the nodes that are here were empty */
};

/* Chooses nodes, GPUs and ports for every executor of the gang and holds them; or holds nothing:
 * SCHED_E_NO_FIT with *ret_why (may be NULL), -EINVAL for a gang outside the bounds, -ENOMEM. Choice:
 * executors of a gang go together on as few nodes as they can, among those onto the ones with least left
 * over; GPU nodes are spared by what needs none. Where that ends without a fit, largest first and best fit is
 * tried in several orders. */
int sched_place(struct sched *s, const struct sched_gang *g, struct sched_placement *ret,
                struct sched_no_fit *ret_why);

/* The SCHED_... bits of what the gang takes at all (for the queue). */
uint32_t sched_gang_uses(const struct sched_gang *g);

/* "3 of 8 fit, short of memory on most of 12 nodes": one line for people, without the role's name. Returns
 * buf. */
char *sched_no_fit_text(const struct sched_no_fit *why, char *buf, size_t size);
#define SCHED_NO_FIT_TEXT_MAX 160
