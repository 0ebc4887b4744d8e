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

#include "lib/base/labels.h"

#define SCHED_GPUS_MAX 64u          /* on a node */
#define SCHED_SHAPES_MAX 64u        /* in a gang */
#define SCHED_EXECUTORS_MAX 100000u /* in a gang */
#define SCHED_PORTS_MAX 64u         /* of an executor */
#define SCHED_CPU_MAX 2000000000u   /* thousandths of a core */
#define SCHED_MEMORY_MAX (UINT64_C(1) << 50)
#define SCHED_CPUS_MAX 1024u      /* ids of CPUs are less than that */
#define SCHED_NUMA_MAX 64u        /* NUMA nodes with CPUs on a node */
#define SCHED_LABELS_MAX 128u     /* on a node */
#define SCHED_CONSTRAINTS_MAX 32u /* required and preferred ones of a shape together */
#define SCHED_WEIGHT_MAX 1000000u
#define SCHED_LEVELS_MAX 8u       /* of the topology */
#define SCHED_CONSUMABLES_MAX 64u /* in the cluster */
#define SCHED_CONSUMABLE_MAX 64u  /* bytes of its name */
#define SCHED_AMOUNTS_MAX 8u      /* consumables of a shape */

enum {
        SCHED_E_NO_FIT = 1,   /* not now; nothing is held */
        SCHED_E_CONFLICT = 2, /* a GPU, port or CPU is held by somebody else, or the node does not have it */
};

/* What there is to be short of, as bits. */
enum sched_resource {
        SCHED_CPU = 1 << 0,
        SCHED_MEMORY = 1 << 1,
        SCHED_GPUS = 1 << 2,
        SCHED_PORTS = 1 << 3,
        SCHED_EXECUTORS = 1 << 4,   /* how many may run on a node, whatever they need */
        SCHED_NODES = 1 << 5,       /* nodes that are usable and allowed, or limits per node */
        SCHED_SHM = 1 << 6,         /* shared memory (/dev/shm) */
        SCHED_CPU_SETS = 1 << 7,    /* whole CPUs, or CPUs and GPUs of one NUMA node */
        SCHED_CONSUMABLES = 1 << 8, /* licences and the like */
        SCHED_WHOLE_HOSTS = 1 << 9, /* hosts on which nobody else is */
        SCHED_TOPOLOGY = 1 << 10,   /* room in one domain */
};
#define SCHED_RESOURCES 11u

struct sched;

/* What a node has. */
struct sched_capacity {
        uint32_t cpu_milli;             /* thousandths of a core */
        uint64_t memory;                /* bytes */
        uint32_t gpus;                  /* numbered from 0 */
        uint16_t port_first, port_last; /* granted to executors; 0, 0: none */
        uint32_t executors;             /* at most so many */
        uint64_t shm;                   /* bytes of shared memory */
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
/* GPUs that nobody gets any more, bit N: GPU N, in the place of those before; whoever holds one keeps it. */
void sched_node_set_gpus_off(struct sched *s, uint32_t slot, uint64_t gpus);
/* -EBUSY while something is held there. */
int sched_node_remove(struct sched *s, uint32_t slot);

/* A set of CPU ids, or of others below SCHED_CPUS_MAX. */
struct sched_cpuset {
        uint64_t bits[SCHED_CPUS_MAX / 64];
};

struct sched_usage {
        struct sched_capacity capacity;
        uint64_t cpu_milli, memory; /* held */
        uint64_t gpus;              /* held, bit N: GPU N */
        uint64_t gpus_off;          /* nobody gets them */
        uint32_t ports, executors;  /* held */
        bool usable;
        uint64_t shm;             /* held */
        struct sched_cpuset cpus; /* held exclusively; their cpu_milli is in the above as well */
        uint64_t owner;           /* the gang that has the host for itself; 0: none */
};
/* -ENOENT: no such node. */
int sched_node_usage(const struct sched *s, uint32_t slot, struct sched_usage *ret);

/* ---- what a node is like ---- */

struct sched_gpu {
        const char *model;   /* "H100"; NULL: unknown */
        uint32_t memory_mib; /* 0: unknown */
        const char *mig;     /* profile, "1g.10gb", of a part of a GPU; NULL: it is a whole one */
        uint32_t numa;       /* index into numa[]; beyond it: unknown, taken as 0 */
        uint64_t links;      /* bit N: joined to GPU N by something fast */
};

struct sched_description {
        const char *const *labels; /* "KEY=VALUE" or "KEY", each key once */
        size_t n_labels;
        const struct sched_gpu
                *gpus; /* by number; those of the capacity without one here are unknown whole ones */
        size_t n_gpus;
        const struct sched_cpuset *numa; /* the CPUs of each NUMA node; none: no exclusive CPUs here */
        size_t n_numa;
};

/* Says what a node is like, in the place of what was said before. What is held stays held. -ENOENT, -EINVAL
 * for what is outside the bounds, -ENOMEM; then nothing has changed. */
int sched_node_describe(struct sched *s, uint32_t slot, const struct sched_description *d);
/* The value of a label of the node; "" where it has none; NULL: no such label, or no such node. Valid until
 * it is described anew. */
const char *sched_node_label(const struct sched *s, uint32_t slot, const char *key);

/* The levels of the topology, the nearest first: keys of labels, such as "switch", "rack". Two nodes are in
 * one domain of a level when their labels of that level and of all farther ones are the same; a node without
 * one of these labels is in no domain of that level. -EINVAL, -ENOMEM. */
int sched_topology_set(struct sched *s, const char *const *keys, size_t n);
/* The domain of a node at a level: equal for nodes of one domain; 0: none. */
uint32_t sched_node_domain(const struct sched *s, uint32_t slot, uint32_t level);

/* A consumable of the whole cluster, such as licences, that executors hold amounts of; or another total for
 * the one of that name, which may be less than is held. -E2BIG: too many of them. -EINVAL, -ENOMEM. */
int sched_consumable_set(struct sched *s, const char *name, uint64_t total, uint32_t *ret_index);
/* -ENOENT. */
int sched_consumable_find(const struct sched *s, const char *name, uint32_t *ret_index);
int sched_consumable_get(const struct sched *s, uint32_t index, const char **ret_name, uint64_t *ret_total,
                         uint64_t *ret_held);

#define SCHED_LEVEL_NODE UINT32_MAX /* for SCHED_SPREAD: every node is a domain */

/* How many nodes, usable or not, meet it. */
uint32_t sched_constraint_count(const struct sched *s, const struct constraint *c);

/* ---- holding ----------------------------------------------------------------------------------------------
 */

/* So much of a consumable. */
struct sched_amount {
        uint32_t index;
        uint32_t n;
};

/* What one executor holds on a node. */
struct sched_hold {
        uint32_t slot;
        uint32_t cpu_milli;
        uint64_t memory;
        uint64_t gpus; /* bit N: GPU N */
        const uint16_t *ports;
        uint32_t n_ports;
        uint64_t shm;
        const struct sched_cpuset
                *cpus; /* it has these for itself; NULL: it shares those that nobody has so */
        const struct sched_amount *amounts;
        uint32_t n_amounts;
        uint64_t owner; /* it is on a whole host of this gang; 0: not so */
};

/* Holds what an executor that already runs has. CPU, memory, shared memory and consumables are held even
 * beyond what there is, for they are in use. SCHED_E_CONFLICT (nothing is held; also: the host is another
 * gang's whole one), -ENOENT, -EINVAL, -ENOMEM. */
int sched_reserve(struct sched *s, const struct sched_hold *h);
/* Gives back exactly what was held: by sched_reserve(), or one item of a placement. */
void sched_release(struct sched *s, const struct sched_hold *h);

/* ---- gangs ---- */

enum sched_numa {
        SCHED_NUMA_NONE,    /* anywhere; neighbours where it is free */
        SCHED_NUMA_PREFER,  /* its CPUs in one NUMA node, that of its GPUs, where that is possible */
        SCHED_NUMA_REQUIRE, /* or else it does not fit */
};

struct sched_preference {
        const struct constraint *constraint;
        uint32_t weight; /* 1 ... SCHED_WEIGHT_MAX */
};

/* Which GPUs will do. All zero: any whole one. */
struct sched_gpu_want {
        const char *model;   /* as in sched_gpu.model, letter case apart; NULL: any */
        uint32_t memory_mib; /* at least */
        const char *mig;     /* parts of this profile; NULL: whole GPUs */
};

/* Executors that all need the same: a role. Of what is behind n_present, zero means: not asked for. */
struct sched_shape {
        uint32_t min, max;  /* how many: at least min, up to max as many as fit; a plain gang has min = max.
                               max 0: none now; the shape says by present[] where those of its role are */
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
        uint64_t shm;
        const struct constraint *const *required; /* all of them */
        size_t n_required;
        const struct sched_preference *preferred; /* nodes with more weight come first */
        size_t n_preferred;
        struct sched_gpu_want gpu;
        const struct sched_amount *amounts; /* of each executor; indices differ */
        size_t n_amounts;
        bool exclusive_cpus; /* whole CPUs of its own, cpu_milli / 1000 of them (a multiple) */
        uint8_t numa;        /* enum sched_numa: of exclusive CPUs and of GPUs */
        bool worst;          /* onto the nodes with most left over, not least */
        uint64_t near;  /* bit N: only on hosts where an executor of shape N is (which is then placed before
                           it); no  circles */
        uint64_t apart; /* bit N: not on a host with one of shape N, nor the other way round; its own bit: one
                           on a host */
};

enum sched_topology {
        SCHED_ANYWHERE, /* on as few nodes as can be */
        SCHED_PACK,    /* in one domain of the nearest level that has room; or else in as few domains of level
                          as can be, those with most room first */
        SCHED_REQUIRE, /* in one domain of level; that in which executors of the gang are */
        SCHED_SPREAD,  /* over as many domains of level as there are, evenly */
};

/* How many nodes, usable or not, meet all of its constraints and have GPUs that will do. -ENOMEM. */
int sched_shape_nodes(struct sched *s, const struct sched_shape *h, uint32_t *ret);

/* What the nodes hold when they are empty, usable or not: what somebody may wait for at all. Of the nodes
 * that are allowed, meet its constraints and have GPUs that will do: */
struct sched_ever {
        uint32_t fits;              /* executors, min of the shape at the most */
        uint32_t nodes;             /* so many there are */
        uint32_t short_;            /* SCHED_... bits of which no node has enough for a single executor */
        struct sched_capacity most; /* the most of each that a node has; executors is not set */
};
/* Nothing is held. -EINVAL for a shape outside the bounds, -ENOMEM. It looks at no more nodes than it takes
 * to find room for min. */
int sched_shape_ever(struct sched *s, const struct sched_shape *h, struct sched_ever *ret);

struct sched_gang {
        const struct sched_shape *shapes;
        size_t n_shapes;
        uint8_t topology;     /* enum sched_topology */
        uint32_t level;       /* of sched_topology_set(), or SCHED_LEVEL_NODE; beyond it REQUIRE fits nowhere,
                                 others ANYWHERE */
        uint64_t whole_hosts; /* only on hosts where nobody else is, and then nobody else gets on them. The
                                 gang's number, which its holds have as owner; 0: not so */
};

/* One executor's place. What hold points to is the placement's. */
struct sched_item {
        uint32_t shape;  /* index in the gang's shapes */
        uint32_t member; /* 0 ... n - 1 within the shape; neighbours are together on a node where possible */
        struct sched_hold hold;
};

struct sched_placement {
        struct sched_item *items; /* by shape, then member */
        size_t n;
        uint16_t *ports;
        struct sched_cpuset *cpus;
        struct sched_amount *amounts;
};
/* With arrays of its own. -ENOMEM. */
int sched_placement_copy(const struct sched_placement *p, struct sched_placement *ret);
void sched_placement_done(struct sched_placement *p); /* frees the arrays; what is held stays held */

/* Why a gang did not fit. */
struct sched_no_fit {
        uint32_t shape;      /* the first for which there is not enough */
        uint32_t wanted;     /* its min */
        uint32_t waiting;    /* its max; 0: nothing was found out */
        uint32_t fits;       /* how many of it would fit beside the shapes before it */
        uint32_t nodes;      /* usable and allowed for it */
        uint32_t scarce;     /* the one SCHED_... bit of which most nodes have too little for one more than
                                they have room for */
        uint32_t lacking;    /* all such bits, of any node: what the gang waits for; 0 with never */
        bool never;          /* the shape would not fit even if the nodes that are here were empty */
        uint32_t unmatched;  /* further usable nodes that its constraints, or the GPUs that will do, leave out
                              */
        uint32_t consumable; /* the one that is scarce, with SCHED_CONSUMABLES */
};

/* Chooses nodes, GPUs, CPUs and ports for every executor of the gang and holds them; or holds nothing:
 * SCHED_E_NO_FIT with *ret_why (may be NULL), -EINVAL for a gang outside the bounds, -ENOMEM. Choice: nodes
 * that are preferred first; executors of a gang go together on as few nodes as they can, among those onto the
 * ones with least left over, so that whole hosts stay free; GPU nodes are spared by what needs none, and
 * larger GPUs by what needs less. Where that ends without a fit, largest first and best fit is tried in
 * several orders.
 *
 * What is found: for one shape without near and without NUMA_REQUIRE on nodes with GPUs of several kinds, a
 * fit whenever there is one. With several shapes, whatever those orders find: bin packing in several
 * dimensions is hard, and a gang that only a cleverer mixture would let in waits. */
int sched_place(struct sched *s, const struct sched_gang *g, struct sched_placement *ret,
                struct sched_no_fit *ret_why);

/* The SCHED_... bits of what the gang takes at all (for the queue). */
uint32_t sched_gang_uses(const struct sched_gang *g);

/* "3 of 8 fit, short of memory on most of 12 nodes": one line for people, without the role's name. Returns
 * buf. */
char *sched_no_fit_text(const struct sched_no_fit *why, char *buf, size_t size);
#define SCHED_NO_FIT_TEXT_MAX 160
