/* SPDX-License-Identifier: Apache-2.0 */
/* Whether executors of a shape will ever fit, whoever holds what now. Invariant: a node that is not usable,
 * or takes few executors for the time being, counts like any other: it may be well again. */
#include "lib/base/cleanup.h"
#include "masterd/sched/placing.h"

static uint32_t per_node_most(const struct sched_shape *h) {
        return h->per_node > 0 ? h->per_node : h->max_per_node > 0 ? h->max_per_node : UINT32_MAX;
}

/* What a single executor lacks on the node when it is empty. */
static uint32_t lacking(const struct sched *s, const struct need *n, uint32_t slot) {
        const struct sched_node *node = &s->nodes[slot];
        const struct sched_capacity *c = &node->capacity;
        uint64_t gpus = layout_will_do(s, n, slot);
        uint32_t bits =
                (c->cpu_milli < n->cpu_milli ? SCHED_CPU : 0u) | (c->memory < n->memory ? SCHED_MEMORY : 0u) |
                (capacity_ports(c) < n->ports ? SCHED_PORTS : 0u) | (c->shm < n->shm ? SCHED_SHM : 0u) |
                ((uint32_t)__builtin_popcountll(gpus) < n->gpus ? SCHED_GPUS : 0u);

        if (bits == 0 && need_is_exact(n) && layout_count(node, n, gpus, true, 1) == 0)
                bits = SCHED_CPU_SETS;
        return bits;
}

static void look_at(const struct sched *s, const struct need *n, const struct sched_shape *h, uint32_t slot,
                    struct sched_ever *e) {
        const struct sched_node *node = slot < s->n ? &s->nodes[slot] : NULL;
        uint32_t room;

        if (!node || !node->exists || !fit_matches(n, slot))
                return;
        e->nodes++;
        e->most.cpu_milli = MAX(e->most.cpu_milli, node->capacity.cpu_milli);
        e->most.memory = MAX(e->most.memory, node->capacity.memory);
        e->most.shm = MAX(e->most.shm, node->capacity.shm);
        e->most.gpus = MAX(e->most.gpus, (uint32_t)__builtin_popcountll(layout_will_do(s, n, slot)));
        room = fit_empty(s, n, slot, MIN(per_node_most(h), h->min));
        e->short_ &= room > 0 ? 0 : lacking(s, n, slot);
        if (h->per_node > 0 && room < h->per_node)
                return;
        e->fits = MIN(h->min, e->fits + room);
}

int sched_shape_ever(struct sched *s, const struct sched_shape *h, struct sched_ever *ret) {
        struct sched_ever e = { .short_ = UINT32_MAX };
        struct need n;
        int r = shape_need(s, h, 0, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < (h->restricted ? h->n_allowed : s->n) && (e.fits < h->min || e.nodes == 0);
             i++)
                look_at(s, &n, h, h->restricted ? h->allowed[i] : (uint32_t)i, &e);
        if (e.nodes == 0)
                e.short_ = 0;
        *ret = e;
        return 0;
}
