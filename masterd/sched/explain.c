/* SPDX-License-Identifier: Apache-2.0 */
/* Why a gang did not fit. */
#include <errno.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/placing.h"

/* What a look at all nodes tells. */
struct tally {
        uint32_t lacking[SCHED_RESOURCES]; /* nodes that have too little of it */
        uint64_t empty;                    /* executors for which there would be room if all were empty */
};

static void look_at(struct placing *p, uint32_t shape, uint32_t slot, struct tally *t,
                    struct sched_no_fit *why) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        const struct sched_node *n = slot < p->s->n ? &p->s->nodes[slot] : NULL;
        uint32_t limit = p->apart[shape] & UINT64_C(1) << (shape & 63) ? 1
                         : h->per_node > 0                             ? h->per_node
                         : h->max_per_node > 0                         ? h->max_per_node
                                                                       : UINT32_MAX,
                 bits, k;

        if (!n || !n->exists || !n->usable)
                return;
        if (!fit_matches(&p->needs[shape], slot)) {
                why->unmatched++;
                return;
        }
        k = fit_capacity(p->s, &p->needs[shape], slot, MIN(limit, MAX(h->min, 1u)));
        t->empty += h->per_node > 0 && k < h->per_node ? 0 : k;
        if (n->hidden)
                return;
        why->nodes++;
        bits = allowance(p, shape, slot) == 0 ? SCHED_NODES : fit_lacking(p->s, &p->needs[shape], slot);
        why->lacking |= bits;
        for (unsigned b = 0; b < SCHED_RESOURCES; b++)
                t->lacking[b] += bits >> b & 1;
}

void explain(struct placing *p, uint32_t shape, struct sched_no_fit *ret) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        struct sched_no_fit why = { .shape = shape, .wanted = h->min };
        unsigned company = p->company;
        struct tally t = {};
        uint32_t of_amounts, ever;
        uint64_t room;

        p->company = 0;
        begin_shape(p, shape);
        (void)find_candidates(p, shape, MAX(h->min, 1u), &room);
        of_amounts = consumables_room(p->s, &p->needs[shape], h->min, false, &why.consumable);
        ever = consumables_room(p->s, &p->needs[shape], h->min, true, &why.consumable);
        why.fits = (uint32_t)MIN(room, of_amounts);
        for (size_t i = 0; i < (p->limited ? p->n_universe : p->s->n); i++)
                look_at(p, shape, p->limited ? p->s->universe[i] : (uint32_t)i, &t, &why);
        end_shape(p);
        p->company = company;
        why.scarce = SCHED_NODES;
        for (unsigned b = 0, most = 0; b < SCHED_RESOURCES; b++)
                if (t.lacking[b] > most) {
                        most = t.lacking[b];
                        why.scarce = 1u << b;
                }
        if (of_amounts < h->min) {
                why.lacking |= SCHED_CONSUMABLES;
                if (room >= of_amounts || ever < h->min)
                        why.scarce = SCHED_CONSUMABLES;
        }
        /* Beside others of its gang there may be less, which tells nothing of later. */
        why.never = why.nodes > 0 && (t.empty < h->min || ever < h->min);
        why.lacking = why.never ? 0 : why.lacking ?: SCHED_NODES;
        *ret = why;
}

int explain_topology(struct placing *p, struct sched_no_fit *ret) {
        struct sched_no_fit why = { .wanted = (uint32_t)p->min, .scarce = SCHED_TOPOLOGY };
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
                                                            "executors per node",
                                                            "nodes",
                                                            "shared memory",
                                                            "whole CPUs (or CPUs and GPUs of one NUMA node)",
                                                            "licences",
                                                            "hosts on which nobody else is",
                                                            "room in one domain of the topology" };
        unsigned bit = why->scarce ? (unsigned)__builtin_ctz(why->scarce) : ELEMENTSOF(names);
        const char *name = bit < ELEMENTSOF(names) ? names[bit] : NULL;

        if (why->nodes == 0 && why->unmatched > 0)
                snprintf(buf, size, "none of %u usable nodes meets its constraints", why->unmatched);
        else if (why->nodes == 0)
                snprintf(buf, size, "no usable node is there for it");
        else if (why->never)
                snprintf(buf, size, "%u wanted, more than the %u usable nodes hold even when empty%s%s",
                         why->wanted, why->nodes, name ? ", short of " : "", name ?: "");
        else if (why->scarce == SCHED_NODES)
                snprintf(buf, size,
                         "%u of %u fit now on %u usable nodes; what is free is on other nodes than it would "
                         "have to be",
                         why->fits, why->wanted, why->nodes);
        else
                snprintf(buf, size, "%u of %u fit now on %u usable nodes%s%s", why->fits, why->wanted,
                         why->nodes, name ? ", short of " : "", name ?: "");
        return buf;
}
