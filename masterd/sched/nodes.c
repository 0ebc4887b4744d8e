/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and what is held on them. Invariant: counts in held are those of the bits in gpus and ports, except
 * while a placement is being put together; what the flat arrays say is free is the capacity less what is
 * held, or 0. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

static uint32_t port_count(const struct sched_capacity *c) {
        return c->port_first == 0 ? 0 : (uint32_t)c->port_last - c->port_first + 1;
}

static bool capacity_valid(const struct sched_capacity *c) {
        return c->cpu_milli <= SCHED_CPU_MAX && c->memory <= SCHED_MEMORY_MAX && c->gpus <= SCHED_GPUS_MAX &&
               c->port_first <= c->port_last && (c->port_first > 0 || c->port_last == 0) &&
               c->executors <= INT32_MAX;
}

int sched_new(struct sched **ret) {
        struct sched *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        *ret = s;
        return 0;
}

/* What there is one of for every slot: struct sched's arrays. */
static const struct {
        size_t offset, element;
} arrays[] = {
#define ARRAY(member)                                                                                        \
        { offsetof(struct sched, member), sizeof(*((struct sched *)NULL)->member) }
        ARRAY(nodes),       ARRAY(cpu),        ARRAY(memory_mib), ARRAY(gpus),        ARRAY(ports),
        ARRAY(executors),   ARRAY(memory),     ARRAY(gang_stamp), ARRAY(shape_stamp), ARRAY(shape_count),
        ARRAY(allow_stamp), ARRAY(candidates), ARRAY(hidden),
#undef ARRAY
};

static void **array_of(struct sched *s, size_t i) {
        return (void **)((char *)s + arrays[i].offset);
}

struct sched *sched_free(struct sched *s) {
        if (!s)
                return NULL;
        for (uint32_t i = 0; i < s->n; i++)
                free(s->nodes[i].ports);
        for (size_t i = 0; i < ELEMENTSOF(arrays); i++)
                free(*array_of(s, i));
        free(s);
        return NULL;
}

/* Lengthens the arrays, the new elements zero. */
static int grow_all(struct sched *s) {
        uint32_t n = s->allocated, m = n ? n * 2 : BLOCK;

        for (size_t i = 0; i < ELEMENTSOF(arrays); i++) {
                void **a = array_of(s, i), *p = realloc(*a, m * arrays[i].element);
                if (!p)
                        return -ENOMEM; /* those that did grow are longer than they need be, which is fine */
                memset((char *)p + n * arrays[i].element, 0, (m - n) * arrays[i].element);
                *a = p;
        }
        s->allocated = m;
        return 0;
}

static size_t port_words(const struct sched_capacity *c) {
        return (port_count(c) + 63) / 64;
}

static int copy_ports(struct sched_node *n) {
        uint64_t *ports = n->ports;

        if (!ports)
                return 0;
        n->ports = calloc(port_words(&n->capacity), sizeof(*ports));
        if (!n->ports)
                return -ENOMEM;
        memcpy(n->ports, ports, port_words(&n->capacity) * sizeof(*ports));
        return 0;
}

int sched_clone(const struct sched *s, struct sched **ret) {
        _cleanup_(sched_free_p) struct sched *c = malloc(sizeof(*c));

        if (!c)
                return -ENOMEM;
        *c = *s;
        c->n = 0; /* nodes whose ports are c's own */
        for (size_t i = 0; i < ELEMENTSOF(arrays); i++)
                *array_of(c, i) = NULL;
        for (size_t i = 0; i < ELEMENTSOF(arrays) && s->allocated > 0; i++) {
                size_t size = s->allocated * arrays[i].element;
                void **a = array_of(c, i);
                *a = malloc(size);
                if (!*a)
                        return -ENOMEM;
                memcpy(*a, *array_of((struct sched *)s, i), size);
        }
        for (; c->n < s->n; c->n++)
                if (copy_ports(&c->nodes[c->n]) < 0)
                        return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}

void node_refresh(struct sched *s, uint32_t slot) {
        const struct sched_node *n = &s->nodes[slot];
        const struct sched_capacity *c = &n->capacity;
        const struct held *h = &n->held;
        bool open = n->exists && n->usable && !n->hidden;

#define FREE(has, taken) (open && (has) > (taken) ? (has) - (taken) : 0)
        s->cpu[slot] = (int32_t)FREE(c->cpu_milli, h->cpu_milli);
        s->memory[slot] = FREE(c->memory, h->memory);
        s->memory_mib[slot] = (int32_t)((s->memory[slot] + (1 << 20) - 1) >> 20);
        s->gpus[slot] = (int32_t)FREE(c->gpus, h->gpus);
        s->ports[slot] = (int32_t)FREE(port_count(c), h->ports);
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
                r = grow_all(s);
                if (r < 0)
                        return r;
        }
        s->nodes[slot] = (struct sched_node){ .exists = true, .usable = true, .capacity = *c };
        s->n = MAX(s->n, slot + 1);
        s->existing++;
        s->grown++;
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
        node_refresh(s, slot);
        return 0;
}

void sched_node_set_usable(struct sched *s, uint32_t slot, bool usable) {
        struct sched_node *n = get(s, slot);

        if (!n)
                return;
        s->grown += n->usable != usable;
        n->usable = usable;
        node_refresh(s, slot);
}

int sched_node_remove(struct sched *s, uint32_t slot) {
        struct sched_node *n = get(s, slot);

        if (!n)
                return -ENOENT;
        if (n->held.executors > 0)
                return -EBUSY;
        free(n->ports);
        *n = (struct sched_node){};
        s->existing--;
        s->grown++;
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
                .ports = n->held.ports,
                .executors = n->held.executors,
                .usable = n->usable,
        };
        return 0;
}

void node_take(struct sched *s, uint32_t slot, const struct need *n, uint32_t k) {
        struct held *h = &s->nodes[slot].held;

        h->cpu_milli += (uint64_t)n->cpu_milli * k;
        h->memory += n->memory * k;
        h->gpus += n->gpus * k;
        h->ports += n->ports * k;
        h->executors += k;
        node_refresh(s, slot);
}

void node_return(struct sched *s, uint32_t slot, const struct need *n, uint32_t k) {
        struct held *h = &s->nodes[slot].held;

        h->cpu_milli -= (uint64_t)n->cpu_milli * k;
        h->memory -= n->memory * k;
        h->gpus -= n->gpus * k;
        h->ports -= n->ports * k;
        h->executors -= k;
        node_refresh(s, slot);
}

void node_hide(struct sched *s, uint32_t slot) {
        struct sched_node *n = get(s, slot);

        if (!n || n->hidden)
                return;
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

int node_assign(struct sched *s, uint32_t slot, const struct need *need, uint64_t *ret_gpus,
                uint16_t *ports) {
        struct sched_node *n = &s->nodes[slot];
        uint32_t range = port_count(&n->capacity);
        uint64_t gpus = 0;
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
        for (uint32_t k = 0, i = 0; k < need->gpus; i++)
                if (!(n->gpus >> i & 1)) {
                        gpus |= UINT64_C(1) << i;
                        k++;
                }
        n->gpus |= gpus;
        *ret_gpus = gpus;
        return 0;
}

void node_unassign(struct sched *s, uint32_t slot, uint64_t gpus, const uint16_t *ports, uint32_t n_ports) {
        struct sched_node *n = &s->nodes[slot];

        n->gpus &= ~gpus;
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
                .gpus = (uint32_t)__builtin_popcountll(h->gpus),
                .ports = h->n_ports,
        };
}

/* Whether every GPU and port is the node's and nobody's, and no port is named twice. */
static bool grantable(const struct sched_node *n, const struct sched_hold *h) {
        uint64_t all = n->capacity.gpus == 64 ? UINT64_MAX : (UINT64_C(1) << n->capacity.gpus) - 1;

        if ((h->gpus & ~all) || (h->gpus & n->gpus) || h->n_ports > SCHED_PORTS_MAX)
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
        if (h->cpu_milli > SCHED_CPU_MAX || h->memory > SCHED_MEMORY_MAX)
                return -EINVAL;
        if (!grantable(n, h))
                return SCHED_E_CONFLICT;
        if (h->n_ports > 0) {
                r = need_port_bits(n);
                if (r < 0)
                        return r;
        }
        n->gpus |= h->gpus;
        for (uint32_t i = 0; i < h->n_ports; i++) {
                uint32_t p = (uint32_t)h->ports[i] - n->capacity.port_first;
                n->ports[p / 64] |= UINT64_C(1) << (p % 64);
        }
        node_take(s, h->slot, &need, 1);
        return 0;
}

void sched_release(struct sched *s, const struct sched_hold *h) {
        struct sched_node *n = get(s, h->slot);
        struct need need = need_of(h);

        if (!n)
                return;
        s->grown++;
        node_unassign(s, h->slot, h->gpus, h->ports, h->n_ports);
        node_return(s, h->slot, &need, 1);
        if (n->held.ports == 0)
                free(TAKE_PTR(n->ports)); /* port_next stays */
}
