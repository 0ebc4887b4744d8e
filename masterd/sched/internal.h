/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the scheduler share: the nodes as they are, and beside them what is free on each as flat
 * arrays of small integers, which the compiler turns into vector code. Invariant: node_refresh() has been
 * called after every change of a node. */
#pragma once

#include "masterd/sched/sched.h"

#define BLOCK 256u       /* nodes looked at together; the arrays are as long as a multiple of it */
#define FILTERS_MAX 128u /* more than a gang has shapes: what it uses is never forgotten meanwhile */
#define LAYOUTS_MAX 16u

struct held {
        uint64_t cpu_milli, memory, shm;
        uint32_t ports, executors; /* how many */
};

struct gpu_kind {
        char model[64], mig[32];
        uint32_t memory_mib, numa;
        uint64_t links;
};

/* GPUs and CPUs of nodes that are alike. Never changes; shared by them and by clones. */
struct layout {
        uint32_t refs;
        uint32_t n_gpus, n_numa, words; /* words of a cpuset that are not 0 */
        bool mixed;                     /* GPUs are of several kinds */
        bool linked;                    /* some are joined, and not all to all: which ones matters */
        uint64_t parts;                 /* GPUs that are parts of one (MIG) */
        uint64_t gpus_of[SCHED_NUMA_MAX];
        uint32_t cpus_in[SCHED_NUMA_MAX];
        struct sched_cpuset *numa; /* behind this struct, in one allocation */
        struct gpu_kind *gpus;
};

/* Labels of a node. Never change; shared with clones. */
struct label_set {
        uint32_t refs, n;
        const char *labels[]; /* the texts are behind it */
};

struct sched_node {
        bool exists, usable;
        bool hidden; /* not for the shape that is being placed */
        bool open;   /* although it has an owner: the gang that is being placed is that */
        struct sched_capacity capacity;
        struct held held;   /* during a placement also what it has chosen so far */
        uint64_t gpus;      /* bits held */
        uint64_t gpus_off;  /* bits that nobody gets, for the time being: the node has them all the same */
        uint64_t *ports;    /* bit per port of the range, made when first needed; behind held.ports in a
                               placement */
        uint32_t port_next; /* where to look next: a port just given back rests a while */
        uint64_t owner;     /* the gang that has it for itself */
        struct sched_cpuset *cpus; /* held exclusively; NULL: none */
        struct layout *layout;     /* NULL: not described */
        struct label_set *labels;
};

static inline uint64_t node_taken_gpus(const struct sched_node *n) {
        return n->gpus | n->gpus_off;
}

/* Which nodes meet a set of constraints and have GPUs that will do, remembered by slot. Shared with clones;
 * changed only while nobody shares it. */
struct filter {
        uint32_t refs, allocated;
        uint64_t hash, used;
        struct constraint **required, **preferred;
        uint32_t *weights;
        size_t n_required, n_preferred;
        char *model, *mig; /* or NULL */
        uint32_t memory_mib;
        uint8_t *rank;        /* 0: preferred most; FILTER_OUT: not at all */
        uint8_t steps[64];    /* ranks by which of few preferences are met */
        uint32_t counts[256]; /* nodes by rank */
        uint64_t *gpus;       /* which will do; NULL: all whole ones */
};
#define FILTER_OUT 255u

struct consumable {
        char *name;
        uint64_t total, held;
};

struct domains;
struct candidate;

struct sched {
        struct sched_node *nodes;
        uint32_t n, allocated; /* slots in use at some time; length of the arrays, a multiple of BLOCK */
        uint32_t existing;
        uint64_t grown; /* rises with each change by which something may fit that did not, or the other way */
        uint64_t changed; /* rises with each change of what there is */

        /* What is free, by slot. 0 everywhere on a node that takes nothing. */
        int32_t *cpu;
        int32_t *memory_mib; /* rounded up: a first sieve; memory[] decides */
        int32_t *gpus;       /* whole ones; of parts, and of GPUs that will do, the bits decide */
        int32_t *ports;
        int32_t *executors;
        uint64_t *memory;

        /* Scratch of a placement, by slot: marks are valid when their stamp is the current one. */
        uint32_t *gang_stamp;  /* an executor of the gang is or goes there */
        uint32_t *shape_stamp; /* shape_count is valid */
        uint32_t *shape_count; /* executors of the shape there */
        uint32_t *allow_stamp; /* the slot was seen */
        uint32_t stamp;
        struct candidate *candidates;
        uint32_t *universe; /* slots that a shape may use, where not all */
        uint32_t *hidden;   /* slots to be shown again */
        uint32_t n_hidden;

        struct filter *filters[FILTERS_MAX];
        size_t n_filters;
        uint64_t filter_clock;
        struct layout *layouts[LAYOUTS_MAX]; /* seen last, to share them */
        uint32_t next_layout;

        char *level_keys[SCHED_LEVELS_MAX];
        uint32_t n_levels;
        uint32_t *level_of[SCHED_LEVELS_MAX]; /* domain by slot; 0: none */
        struct domains *domains; /* names of domains to numbers; shared with clones, only grows */

        struct consumable consumables[SCHED_CONSUMABLES_MAX];
        uint32_t n_consumables;
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
        /* Beyond what the flat arrays know: */
        bool special;  /* any of these is set */
        bool worst;    /* most left over is best */
        uint8_t numa;  /* enum sched_numa */
        uint16_t cpus; /* whole ones for itself */
        uint64_t shm;
        const struct filter *filter;
        uint64_t owner;     /* whole hosts */
        uint32_t gang_mark; /* nodes that the gang has, with owner */
        const struct sched_amount *amounts;
        size_t n_amounts;
};

/* The GPUs or CPUs of an executor are chosen for each by itself. */
static inline bool need_is_exact(const struct need *n) {
        return n->cpus > 0 || (n->numa != SCHED_NUMA_NONE && n->gpus > 0);
}

/* What was chosen of things that have numbers. */
struct grant {
        uint64_t gpus;
        struct sched_cpuset *cpus; /* allocated, or NULL */
};

static inline uint32_t capacity_ports(const struct sched_capacity *c) {
        return c->port_first == 0 ? 0 : (uint32_t)c->port_last - c->port_first + 1;
}

/* Words of the bits of a range of ports. */
static inline size_t port_words(const struct sched_capacity *c) {
        return ((size_t)c->port_last - c->port_first) / 64 + 1;
}

/* nodes.c */
void node_refresh(struct sched *s, uint32_t slot);
/* Counts k executors in and chooses their GPUs (and, of an exact need, of which k is 1, CPUs). -ENOMEM. */
int node_take(struct sched *s, uint32_t slot, const struct need *n, uint32_t k, struct grant *ret);
/* Undoes it, and frees what is in the grant. */
void node_return(struct sched *s, uint32_t slot, const struct need *n, uint32_t k, struct grant *g);
void node_hide(struct sched *s, uint32_t slot);
void nodes_show(struct sched *s);
/* The same for the nodes of an owner: open them for its gang, and close them again. */
void node_open(struct sched *s, uint32_t slot, uint64_t owner, bool open);
void node_own(struct sched *s, uint32_t slot, uint64_t owner);
/* Ports for one executor that was counted with node_take(). ports has room for n->ports. -ENOMEM. */
int node_assign(struct sched *s, uint32_t slot, const struct need *n, uint16_t *ports);
/* Undoes node_assign(), not node_take(). */
void node_unassign(struct sched *s, uint32_t slot, const uint16_t *ports, uint32_t n_ports);

/* sched.c */
/* Longer arrays by slot. -ENOMEM. */
int sched_grow(struct sched *s);

/* describe.c */
void layout_unref(struct layout *l);
void label_set_unref(struct label_set *l);

/* layout.c: which GPUs and CPUs. */
/* A new one, or one that is the same. -EINVAL, -ENOMEM. */
int layout_get(struct sched *s, const struct sched_description *d, struct layout **ret);
/* GPUs that are there and whole. */
uint64_t layout_whole(const struct sched_node *n);
/* GPUs that would do for it, free or not. */
uint64_t layout_will_do(const struct sched *s, const struct need *n, uint32_t slot);
/* How many executors of an exact need find GPUs (of these) and CPUs; at most limit. empty: as if nobody held
 * CPUs. */
uint32_t layout_count(const struct sched_node *node, const struct need *n, uint64_t gpus, bool empty,
                      uint32_t limit);
/* Chooses n GPUs, of those that are least worth. */
uint64_t layout_pick_gpus(const struct sched_node *node, uint64_t gpus, uint32_t n);
/* Chooses for one executor of an exact need, which layout_count() found room for. */
void layout_pick(const struct sched_node *node, const struct need *n, uint64_t gpus, uint64_t *ret_gpus,
                 struct sched_cpuset *ret_cpus);

/* filter.c */
/* The filter of a shape; *ret NULL: it asks for nothing. Valid until the next call of another sched_
 * function. -ENOMEM. */
int filter_get(struct sched *s, const struct sched_shape *h, const struct filter **ret);
/* A node came, went, or is described anew. */
void filters_update(struct sched *s, uint32_t slot);
void filter_unref(struct filter *f);

/* topology.c */
int topology_describe(struct sched *s, uint32_t slot); /* -ENOMEM */
uint32_t domains_count(const struct domains *d);       /* numbers are 1 ... that; d may be NULL */
struct domains *domains_ref(struct domains *d);
struct domains *domains_unref(struct domains *d);

/* consumables.c */
/* So many of limit can have what they take. */
uint32_t consumables_room(const struct sched *s, const struct need *n, uint32_t limit, bool empty,
                          uint32_t *ret_scarce);
void consumables_take(struct sched *s, const struct sched_amount *a, size_t n, uint32_t k);
void consumables_return(struct sched *s, const struct sched_amount *a, size_t n, uint32_t k);

/* fit.c */
#define SLOT_NONE UINT32_MAX
/* The node with room for one on which least is left (most, with worst): preferred ones first, then GPUs, then
 * CPU (memory where no CPU is asked for); the lowest slot among equals. SLOT_NONE: there is none. */
uint32_t fit_best(const struct sched *s, const struct need *n);
/* The same among some slots. */
uint32_t fit_best_of(const struct sched *s, const struct need *n, const uint32_t *slots, size_t n_slots);
/* How many fit on a node, at most limit. */
uint32_t fit_count(const struct sched *s, const struct need *n, uint32_t slot, uint32_t limit);
/* What is left on the node when k more are there, as one number: the smaller, the better the fit. */
uint64_t fit_left(const struct sched *s, const struct need *n, uint32_t slot, uint32_t k);
/* SCHED_... bits of which the node has too little for one. */
uint32_t fit_lacking(const struct sched *s, const struct need *n, uint32_t slot);
/* The same for k executors together, k >= 1. */
uint32_t fit_lacking_for(const struct sched *s, const struct need *n, uint32_t slot, uint32_t k);
/* How many would fit if the node were empty. */
uint32_t fit_capacity(const struct sched *s, const struct need *n, uint32_t slot, uint32_t limit);
/* The same, however many executors the node may have for the time being. */
uint32_t fit_empty(const struct sched *s, const struct need *n, uint32_t slot, uint32_t limit);
/* Whether labels and GPUs of the node are such that the shape may go there at all. */
static inline bool fit_matches(const struct need *n, uint32_t slot) {
        return !n->filter || n->filter->rank[slot] != FILTER_OUT;
}
