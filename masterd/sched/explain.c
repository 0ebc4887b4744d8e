/* SPDX-License-Identifier: Apache-2.0 */
/* Why a gang did not fit. */
#include <errno.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/placing.h"

/* What a look at all nodes tells. */
struct tally {
        uint32_t lacking[SCHED_RESOURCES]; /* nodes that have too little of it for one more than fits there */
        uint32_t never[SCHED_RESOURCES];   /* the same, if all were empty */
        uint64_t empty;                    /* executors for which there would be room if all were empty */
};

/* What keeps k executors from the node even when it is empty. */
static uint32_t lacking_empty(const struct placing *p, uint32_t shape, uint32_t slot, uint32_t k) {
        const struct sched_capacity *c = &p->s->nodes[slot].capacity;
        const struct need *n = &p->needs[shape];
        uint32_t gpus = (uint32_t)__builtin_popcountll(layout_will_do(p->s, n, slot)), bits;

        bits = (c->cpu_milli / k < n->cpu_milli ? SCHED_CPU : 0u) |
               (c->memory / k < n->memory ? SCHED_MEMORY : 0u) | (gpus / k < n->gpus ? SCHED_GPUS : 0u) |
               (capacity_ports(c) / k < n->ports ? SCHED_PORTS : 0u) |
               (c->executors < k ? SCHED_EXECUTORS : 0u) | (c->shm / k < n->shm ? SCHED_SHM : 0u);
        return bits ?: (need_is_exact(n) ? SCHED_CPU_SETS : SCHED_NODES);
}

static void count_bits(uint32_t *counts, uint32_t bits) {
        for (unsigned b = 0; b < SCHED_RESOURCES; b++)
                counts[b] += bits >> b & 1;
}

static uint32_t most_counted(const uint32_t *counts) {
        uint32_t bit = SCHED_NODES, most = 0;

        for (unsigned b = 0; b < SCHED_RESOURCES; b++)
                if (counts[b] > most) {
                        most = counts[b];
                        bit = 1u << b;
                }
        return bit;
}

/* A node is short of what it has too little of for one more than it has room for (with per_node, for as many
 * as that says). */
static void look_at(struct placing *p, uint32_t shape, uint32_t slot, struct tally *t,
                    struct sched_no_fit *why) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        const struct sched_node *n = slot < p->s->n ? &p->s->nodes[slot] : NULL;
        uint32_t limit = p->apart[shape] & UINT64_C(1) << (shape & 63) ? 1
                         : h->per_node > 0                             ? h->per_node
                         : h->max_per_node > 0                         ? h->max_per_node
                                                                       : UINT32_MAX,
                 least = MAX(h->min, 1u), bits, k;

        if (!n || !n->exists || !n->usable)
                return;
        if (!fit_matches(&p->needs[shape], slot)) {
                why->unmatched++;
                return;
        }
        k = fit_capacity(p->s, &p->needs[shape], slot, MIN(limit, least));
        t->empty += h->per_node > 0 && k < h->per_node ? 0 : k;
        if (k < least)
                count_bits(t->never,
                           k == limit ? SCHED_NODES : lacking_empty(p, shape, slot, MAX(k + 1, h->per_node)));
        if (n->hidden)
                return;
        why->nodes++;
        limit = MIN(placing_allowance(p, shape, slot), least);
        bits = limit == 0 ? SCHED_NODES : fit_lacking(p->s, &p->needs[shape], slot);
        why->lacking |= bits;
        if (bits == 0) {
                k = fit_count(p->s, &p->needs[shape], slot, limit);
                if (k < limit)
                        bits = fit_lacking_for(p->s, &p->needs[shape], slot, MAX(k + 1, h->per_node));
                else if (limit < least)
                        bits = SCHED_NODES;
        }
        count_bits(t->lacking, bits);
}

void explain_shape(struct placing *p, uint32_t shape, struct sched_no_fit *ret) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        struct sched_no_fit why = { .shape = shape, .wanted = h->min, .waiting = h->max };
        uint32_t least = MAX(h->min, 1u); /* of those that may come beyond min, one would do */
        unsigned company = p->company;
        struct tally t = {};
        uint32_t of_amounts, ever;
        uint64_t room;

        p->company = 0;
        placing_begin_shape(p, shape);
        (void)placing_find_candidates(p, shape, least, &room);
        of_amounts = consumables_room(p->s, &p->needs[shape], least, false, &why.consumable);
        ever = consumables_room(p->s, &p->needs[shape], least, true, &why.consumable);
        why.fits = (uint32_t)MIN(room, of_amounts);
        for (size_t i = 0; i < (p->limited ? p->n_universe : p->s->n); i++)
                look_at(p, shape, p->limited ? p->s->universe[i] : (uint32_t)i, &t, &why);
        placing_end_shape(p);
        p->company = company;
        /* Beside others of its gang there may be less, which tells nothing of later. */
        why.never = why.nodes > 0 && (t.empty < least || ever < least);
        why.scarce = most_counted(why.never ? t.never : t.lacking);
        if (of_amounts < least) {
                why.lacking |= SCHED_CONSUMABLES;
                if (room >= of_amounts || ever < least)
                        why.scarce = SCHED_CONSUMABLES;
        }
        why.lacking = why.never ? 0 : why.lacking ?: SCHED_NODES;
        *ret = why;
}

int explain_topology(struct placing *p, struct sched_no_fit *ret) {
        struct sched_no_fit why = { .wanted = (uint32_t)p->min,
                                    .waiting = (uint32_t)MAX(p->min, UINT64_C(1)),
                                    .scarce = SCHED_TOPOLOGY };
        uint64_t most = 0;
        bool all = false;
        int r = topology_room(p, true, &most, &all);

        if (r < 0)
                return r;
        why.never = !all;
        r = topology_room(p, false, &most, &all);
        if (r < 0)
                return r;
        why.fits = (uint32_t)MIN(most, p->min);
        for (uint32_t i = 0; i < p->s->n; i++)
                why.nodes += p->s->executors[i] > 0;
        why.lacking = why.never ? 0 : sched_gang_uses(p->gang) | SCHED_TOPOLOGY;
        *ret = why;
        return 0;
}

uint32_t sched_gang_uses(const struct sched_gang *g) {
        uint32_t bits = SCHED_EXECUTORS;

        for (size_t i = 0; i < g->n_shapes; i++) {
                const struct sched_shape *h = &g->shapes[i];
                bits |= (h->shm > 0 ? SCHED_SHM : 0u) | (h->n_amounts > 0 ? SCHED_CONSUMABLES : 0u) |
                        (h->exclusive_cpus || h->numa != SCHED_NUMA_NONE ? SCHED_CPU_SETS : 0u);
                bits |= (h->cpu_milli > 0 ? SCHED_CPU : 0u) | (h->memory > 0 ? SCHED_MEMORY : 0u) |
                        (h->gpus > 0 ? SCHED_GPUS : 0u) | (h->ports > 0 ? SCHED_PORTS : 0u);
        }
        bits |= (g->whole_hosts != 0 ? SCHED_WHOLE_HOSTS : 0u) |
                (g->topology == SCHED_REQUIRE ? SCHED_TOPOLOGY : 0u);
        return bits;
}

char *sched_no_fit_text(const struct sched_no_fit *why, char *buf, size_t size) {
        static const char *const names[SCHED_RESOURCES] = { "CPU",
                                                            "memory",
                                                            "GPUs",
                                                            "ports",
                                                            "room for another executor on a node",
                                                            "nodes",
                                                            "shared memory",
                                                            "whole CPUs (or CPUs and GPUs of one NUMA node)",
                                                            "licences",
                                                            "hosts on which nobody else is",
                                                            "room in one domain of the topology" };
        unsigned bit = why->scarce ? (unsigned)__builtin_ctz(why->scarce) : ELEMENTSOF(names);
        const char *name = bit < ELEMENTSOF(names) ? names[bit] : NULL, *of = name ? ", short of " : "";
        char fit[64];

        if (why->wanted == 0) /* those that may come beyond minNum */
                snprintf(fit, sizeof(fit), "none of the %u beyond minNum fits", why->waiting);
        else if (why->wanted == 1 && why->waiting > 1 && why->fits == 0) /* they come one by one */
                snprintf(fit, sizeof(fit), "none of %u fits", why->waiting);
        else
                snprintf(fit, sizeof(fit), "%u of %u fit", why->fits, why->wanted);
        if (why->nodes == 0 && why->unmatched > 0)
                snprintf(buf, size, "none of %u usable nodes meets its constraints", why->unmatched);
        else if (why->nodes == 0)
                snprintf(buf, size, "no usable node is there for it");
        else if (why->never && why->wanted == 0)
                snprintf(buf, size, "%s on the %u usable nodes even when empty%s%s", fit, why->nodes, of,
                         name ?: "");
        else if (why->never)
                snprintf(buf, size, "%u wanted, more than the %u usable nodes hold even when empty%s%s",
                         why->wanted, why->nodes, of, name ?: "");
        else if (why->scarce == SCHED_NODES)
                snprintf(buf, size,
                         "%s now on %u usable nodes; what is free is on other nodes than it would have to be",
                         fit, why->nodes);
        else
                snprintf(buf, size, "%s now on %u usable nodes%s%s", fit, why->nodes, of, name ?: "");
        return buf;
}
