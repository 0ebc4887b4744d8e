/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and what is held on them. Invariant: counts in held are those of the bits in gpus and ports, except
 * while a placement is being put together; what the flat arrays say is free is the capacity less what is
 * held, or 0. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

static bool capacity_valid(const struct sched_capacity *c) {
        return c->cpu_milli <= SCHED_CPU_MAX && c->memory <= SCHED_MEMORY_MAX && c->gpus <= SCHED_GPUS_MAX &&
               c->port_first <= c->port_last && (c->port_first > 0 || c->port_last == 0) &&
               c->executors <= INT32_MAX && c->shm <= SCHED_MEMORY_MAX;
}

void node_refresh(struct sched *s, uint32_t slot) {
        const struct sched_node *n = &s->nodes[slot];
        const struct sched_capacity *c = &n->capacity;
        const struct held *h = &n->held;
        bool open = n->exists && n->usable && !n->hidden && (n->owner == 0 || n->open);

#define FREE(has, taken) (open && (has) > (taken) ? (has) - (taken) : 0)
        s->cpu[slot] = (int32_t)FREE(c->cpu_milli, h->cpu_milli);
        s->memory[slot] = FREE(c->memory, h->memory);
        s->memory_mib[slot] = (int32_t)((s->memory[slot] + (1 << 20) - 1) >> 20);
        s->gpus[slot] = open && c->gpus > 0 ? __builtin_popcountll(layout_whole(n) & ~node_taken_gpus(n)) : 0;
        s->ports[slot] = (int32_t)FREE(capacity_ports(c), h->ports);
        s->executors[slot] = (int32_t)FREE(c->executors, h->executors);
#undef FREE
}

int sched_node_add(struct sched *s, const struct sched_capacity *c, uint32_t *ret_slot) {
        uint32_t slot = 0;
        int r;

        if (!capacity_valid(c))
                return -EINVAL;
        if (s->existing == s->n)
                slot = s->n;
        while (slot < s->n && s->nodes[slot].exists)
                slot++;
        if (slot == s->allocated) {
                r = sched_grow(s);
                if (r < 0)
                        return r;
        }
        s->nodes[slot] = (struct sched_node){ .exists = true, .usable = true, .capacity = *c };
        s->n = MAX(s->n, slot + 1);
        s->existing++;
        s->grown++;
        s->changed++;
        for (uint32_t i = 0; i < s->n_levels; i++)
                s->level_of[i][slot] = 0;
        filters_update(s, slot);
        node_refresh(s, slot);
        *ret_slot = slot;
        return 0;
}

static struct sched_node *get(const struct sched *s, uint32_t slot) {
        return slot < s->n && s->nodes[slot].exists ? &s->nodes[slot] : NULL;
}

int sched_node_update(struct sched *s, uint32_t slot, const struct sched_capacity *c) {
        struct sched_node *n = get(s, slot);

        if (!n || !capacity_valid(c))
                return -EINVAL;
        if (c->port_first != n->capacity.port_first || c->port_last != n->capacity.port_last) {
                if (n->held.ports > 0)
                        return -EBUSY;
                free(TAKE_PTR(n->ports));
                n->port_next = 0;
        }
        n->capacity = *c;
        s->grown++;
        s->changed++;
        node_refresh(s, slot);
        return 0;
}

void sched_node_set_usable(struct sched *s, uint32_t slot, bool usable) {
        struct sched_node *n = get(s, slot);

        if (!n)
                return;
        s->grown += n->usable != usable;
        s->changed += n->usable != usable;
        n->usable = usable;
        node_refresh(s, slot);
}

void sched_node_set_gpus_off(struct sched *s, uint32_t slot, uint64_t gpus) {
        struct sched_node *n = get(s, slot);

        if (!n || n->gpus_off == gpus)
                return;
        s->grown++;
        s->changed++;
        n->gpus_off = gpus;
        node_refresh(s, slot);
}

int sched_node_remove(struct sched *s, uint32_t slot) {
        struct sched_node *n = get(s, slot);

        if (!n)
                return -ENOENT;
        if (n->held.executors > 0)
                return -EBUSY;
        free(n->ports);
        free(n->cpus);
        layout_unref(n->layout);
        label_set_unref(n->labels);
        *n = (struct sched_node){};
        s->existing--;
        s->grown++;
        s->changed++;
        filters_update(s, slot);
        node_refresh(s, slot);
        return 0;
}

int sched_node_usage(const struct sched *s, uint32_t slot, struct sched_usage *ret) {
        const struct sched_node *n = get(s, slot);

        if (!n)
                return -ENOENT;
        *ret = (struct sched_usage){
                .capacity = n->capacity,
                .cpu_milli = n->held.cpu_milli,
                .memory = n->held.memory,
                .gpus = n->gpus,
                .gpus_off = n->gpus_off,
                .ports = n->held.ports,
                .executors = n->held.executors,
                .usable = n->usable,
                .shm = n->held.shm,
                .owner = n->owner,
        };
        if (n->cpus)
                ret->cpus = *n->cpus;
        return 0;
}

static void count_in(struct held *h, const struct need *n, uint32_t k) {
        h->cpu_milli += (uint64_t)n->cpu_milli * k;
        h->memory += n->memory * k;
        h->shm += n->shm * k;
        h->ports += n->ports * k;
        h->executors += k;
}

static void count_out(struct held *h, const struct need *n, uint32_t k) {
        h->cpu_milli -= (uint64_t)n->cpu_milli * k;
        h->memory -= n->memory * k;
        h->shm -= n->shm * k;
        h->ports -= n->ports * k;
        h->executors -= k;
}

static int need_cpu_bits(struct sched_node *n) {
        if (!n->cpus)
                n->cpus = calloc(1, sizeof(*n->cpus));
        return n->cpus ? 0 : -ENOMEM;
}

static void add_cpus(struct sched_cpuset *to, const struct sched_cpuset *from) {
        for (size_t i = 0; i < ELEMENTSOF(to->bits); i++)
                to->bits[i] |= from->bits[i];
}

static void remove_cpus(struct sched_node *n, const struct sched_cpuset *cpus) {
        for (size_t i = 0; i < ELEMENTSOF(cpus->bits); i++)
                n->cpus->bits[i] &= ~cpus->bits[i];
}

static bool overlap(const struct sched_cpuset *a, const struct sched_cpuset *b) {
        uint64_t both = 0;

        for (size_t i = 0; i < ELEMENTSOF(a->bits); i++)
                both |= a->bits[i] & b->bits[i];
        return both;
}

int node_take(struct sched *s, uint32_t slot, const struct need *n, uint32_t k, struct grant *ret) {
        struct sched_node *node = &s->nodes[slot];
        _cleanup_free_ struct sched_cpuset *cpus = NULL;
        uint64_t gpus = 0, free_gpus = n->gpus > 0 ? layout_will_do(s, n, slot) & ~node_taken_gpus(node) : 0;

        if (n->cpus > 0 && (!(cpus = malloc(sizeof(*cpus))) || need_cpu_bits(node) < 0))
                return -ENOMEM;
        if (need_is_exact(n)) {
                struct sched_cpuset chosen;
                layout_pick(node, n, free_gpus, &gpus, &chosen);
                if (cpus) {
                        *cpus = chosen;
                        add_cpus(node->cpus, cpus);
                }
        } else if (n->gpus > 0)
                gpus = layout_pick_gpus(node, free_gpus, n->gpus * k);
        assert(!(gpus & ~free_gpus)); /* what nobody has */
        node->gpus |= gpus;
        count_in(&node->held, n, k);
        consumables_take(s, n->amounts, n->n_amounts, k);
        node_refresh(s, slot);
        *ret = (struct grant){ gpus, TAKE_PTR(cpus) };
        return 0;
}

void node_return(struct sched *s, uint32_t slot, const struct need *n, uint32_t k, struct grant *g) {
        struct sched_node *node = &s->nodes[slot];

        assert(node->held.executors >= k && (g->gpus & node->gpus) == g->gpus);
        node->gpus &= ~g->gpus;
        if (g->cpus)
                remove_cpus(node, g->cpus);
        free(TAKE_PTR(g->cpus));
        count_out(&node->held, n, k);
        consumables_return(s, n->amounts, n->n_amounts, k);
        node_refresh(s, slot);
}

void node_open(struct sched *s, uint32_t slot, uint64_t owner, bool open) {
        struct sched_node *n = get(s, slot);

        if (!n || n->owner != owner || n->open == open)
                return;
        n->open = open;
        node_refresh(s, slot);
}

void node_own(struct sched *s, uint32_t slot, uint64_t owner) {
        s->nodes[slot].owner = owner;
        node_refresh(s, slot);
}

void node_hide(struct sched *s, uint32_t slot) {
        struct sched_node *n = get(s, slot);

        if (!n || n->hidden)
                return;
        assert(s->n_hidden < s->allocated);
        n->hidden = true;
        s->hidden[s->n_hidden++] = slot;
        node_refresh(s, slot);
}

void nodes_show(struct sched *s) {
        while (s->n_hidden > 0) {
                uint32_t slot = s->hidden[--s->n_hidden];
                s->nodes[slot].hidden = false;
                node_refresh(s, slot);
        }
}

static int need_port_bits(struct sched_node *n) {
        if (!n->ports)
                n->ports = calloc(port_words(&n->capacity), sizeof(uint64_t));
        return n->ports ? 0 : -ENOMEM;
}

static bool port_held(const struct sched_node *n, uint32_t i) {
        return n->ports && n->ports[i / 64] >> (i % 64) & 1;
}

int node_assign(struct sched *s, uint32_t slot, const struct need *need, uint16_t *ports) {
        struct sched_node *n = &s->nodes[slot];
        uint32_t range = capacity_ports(&n->capacity);
        int r;

        if (need->ports > 0) {
                r = need_port_bits(n);
                if (r < 0)
                        return r;
        }
        for (uint32_t k = 0, i = n->port_next; k < need->ports;
             i++) { /* there are as many: they were counted */
                i = i < range ? i : 0;
                if (port_held(n, i))
                        continue;
                n->ports[i / 64] |= UINT64_C(1) << (i % 64);
                n->port_next = i + 1;
                ports[k++] = (uint16_t)(n->capacity.port_first + i);
        }
        return 0;
}

void node_unassign(struct sched *s, uint32_t slot, const uint16_t *ports, uint32_t n_ports) {
        struct sched_node *n = &s->nodes[slot];

        for (uint32_t i = 0; i < n_ports; i++) {
                uint32_t p = (uint32_t)ports[i] - n->capacity.port_first;
                n->ports[p / 64] &= ~(UINT64_C(1) << (p % 64));
        }
}

/* What a hold counts as. */
static struct need need_of(const struct sched_hold *h) {
        return (struct need){
                .cpu_milli = h->cpu_milli,
                .memory = h->memory,
                .ports = h->n_ports,
                .shm = h->shm,
        };
}

static bool valid(const struct sched *s, const struct sched_hold *h) {
        for (uint32_t i = 0; i < h->n_amounts; i++)
                if (h->amounts[i].index >= s->n_consumables)
                        return false;
        return h->cpu_milli <= SCHED_CPU_MAX && h->memory <= SCHED_MEMORY_MAX && h->shm <= SCHED_MEMORY_MAX &&
               h->n_amounts <= SCHED_AMOUNTS_MAX;
}

/* Whether every GPU, CPU and port is the node's and nobody's, and no port is named twice. CPUs need not be
 * the node's: it may be described differently by now. */
static bool grantable(const struct sched_node *n, const struct sched_hold *h) {
        uint64_t all = n->capacity.gpus == 64 ? UINT64_MAX : (UINT64_C(1) << n->capacity.gpus) - 1;

        if ((h->gpus & ~all) || (h->gpus & n->gpus) || h->n_ports > SCHED_PORTS_MAX)
                return false;
        if (h->cpus && n->cpus && overlap(h->cpus, n->cpus))
                return false;
        if (n->owner != 0 && h->owner != 0 && n->owner != h->owner)
                return false;
        for (uint32_t i = 0; i < h->n_ports; i++) {
                uint16_t p = h->ports[i];
                if (n->capacity.port_first == 0 || p < n->capacity.port_first || p > n->capacity.port_last ||
                    port_held(n, (uint32_t)p - n->capacity.port_first))
                        return false;
                for (uint32_t k = 0; k < i; k++)
                        if (h->ports[k] == p)
                                return false;
        }
        return true;
}

int sched_reserve(struct sched *s, const struct sched_hold *h) {
        struct sched_node *n = get(s, h->slot);
        struct need need = need_of(h);
        int r;

        if (!n)
                return -ENOENT;
        if (!valid(s, h))
                return -EINVAL;
        if (!grantable(n, h))
                return SCHED_E_CONFLICT;
        if (h->n_ports > 0) {
                r = need_port_bits(n);
                if (r < 0)
                        return r;
        }
        if (h->cpus) {
                r = need_cpu_bits(n);
                if (r < 0)
                        return r;
                add_cpus(n->cpus, h->cpus);
        }
        n->gpus |= h->gpus;
        for (uint32_t i = 0; i < h->n_ports; i++) {
                uint32_t p = (uint32_t)h->ports[i] - n->capacity.port_first;
                n->ports[p / 64] |= UINT64_C(1) << (p % 64);
        }
        count_in(&n->held, &need, 1);
        consumables_take(s, h->amounts, h->n_amounts, 1);
        n->owner = h->owner ?: n->owner;
        node_refresh(s, h->slot);
        return 0;
}

void sched_release(struct sched *s, const struct sched_hold *h) {
        struct sched_node *n = get(s, h->slot);
        struct need need = need_of(h);

        if (!n)
                return;
        s->grown++;
        node_unassign(s, h->slot, h->ports, h->n_ports);
        n->gpus &= ~h->gpus;
        if (h->cpus && n->cpus)
                remove_cpus(n, h->cpus);
        count_out(&n->held, &need, 1);
        consumables_return(s, h->amounts, h->n_amounts, 1);
        if (n->held.executors == 0) {
                n->owner = 0;
                free(TAKE_PTR(n->cpus));
        }
        if (n->held.ports == 0)
                free(TAKE_PTR(n->ports)); /* port_next stays */
        node_refresh(s, h->slot);
}
