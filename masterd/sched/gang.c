/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of gangs. Invariant: sched_place() either holds everything of the placement that it returns, or
 * leaves every count and bit as it found them. Choices are first made as counts per node; ports are
 * picked at the end, when nothing can fail any more but memory. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/placing.h"

/* Executors; larger gangs are not tried one by one, which takes a look at all nodes for each. */
#define ONE_BY_ONE_MAX 512u

/* Before stamps run out, which one placement never does by itself. */
static void renew_stamps(struct sched *s) {
        if (s->stamp < UINT32_MAX / 2)
                return;
        memset(s->gang_stamp, 0, s->allocated * sizeof(*s->gang_stamp));
        memset(s->shape_stamp, 0, s->allocated * sizeof(*s->shape_stamp));
        memset(s->allow_stamp, 0, s->allocated * sizeof(*s->allow_stamp));
        s->stamp = 0;
}

void placing_restart(struct placing *p) {
        p->gang_mark = placing_stamp(p->s);
        for (uint32_t i = 0; i < p->gang->n_shapes; i++) {
                const struct sched_shape *h = &p->gang->shapes[i];
                p->needs[i].gang_mark = p->gang_mark;
                for (size_t k = 0; k < h->n_present; k++)
                        if (h->present[k] < p->s->n)
                                p->s->gang_stamp[h->present[k]] = p->gang_mark;
        }
}

/* ---- order ---- */

static int compare_u64(uint64_t a, uint64_t b) {
        return a > b ? -1 : a < b;
}

static bool larger(const struct need *a, const struct need *b, enum order order) {
        int gpus = compare_u64(a->gpus, b->gpus), memory = compare_u64(a->memory, b->memory),
            cpu = compare_u64(a->cpu_milli, b->cpu_milli);

        switch (order) {
        case BY_MEMORY:
                return (memory ?: cpu ?: gpus) < 0;
        case BY_CPU:
                return (cpu ?: gpus ?: memory) < 0;
        default:
                return (gpus ?: cpu ?: memory) < 0;
        }
}

/* Whether it may not use all nodes. */
static bool has_choice_limits(const struct placing *p, uint32_t shape) {
        return p->needs[shape].filter || p->gang->shapes[shape].restricted;
}

/* Equals in their own order. There are at most 64. */
static void sort_by(const struct placing *p, enum order order, uint32_t ret[static SCHED_SHAPES_MAX]) {
        for (uint32_t i = 0; i < p->gang->n_shapes; i++) {
                uint32_t k = i;
                for (; k > 0; k--) {
                        bool free = order != BY_FREEDOM || !has_choice_limits(p, i),
                             before_free = order != BY_FREEDOM || !has_choice_limits(p, ret[k - 1]);
                        if (free != before_free ? free : !larger(&p->needs[i], &p->needs[ret[k - 1]], order))
                                break;
                        ret[k] = ret[k - 1];
                }
                ret[k] = i;
        }
}

/* Indices of the shapes, largest first, but none before one that it has to be near to. */
static void sort_shapes(const struct placing *p, enum order order, uint32_t ret[static SCHED_SHAPES_MAX]) {
        uint32_t sorted[SCHED_SHAPES_MAX], n = p->gang->n_shapes;
        uint64_t done = 0;

        sort_by(p, order, p->has_near ? sorted : ret);
        for (uint32_t k = 0; k < n && p->has_near; k++)
                for (uint32_t i = 0; i < n; i++)
                        if (!(done >> sorted[i] & 1) && !(p->gang->shapes[sorted[i]].near & ~done)) {
                                ret[k] = sorted[i];
                                done |= UINT64_C(1) << sorted[i];
                                break;
                        }
}

/* ---- search ---- */

/* Chooses min executors of every shape. On SCHED_E_NO_FIT *ret_shape is the one for which there was no room;
 * what was chosen for those before it stays, for the caller to look at and to take back. */
static int place_all(struct placing *p, enum order order, bool together, uint32_t *ret_shape) {
        uint32_t sorted[SCHED_SHAPES_MAX], placed;
        int r = 0;

        sort_shapes(p, order, sorted);
        for (uint32_t i = 0; i < p->gang->n_shapes && r == 0; i++) {
                const struct sched_shape *h = &p->gang->shapes[sorted[i]];
                size_t before = p->n;
                if (h->min == 0)
                        continue;
                placing_begin_shape(p, sorted[i]);
                if (p->gang->topology == SCHED_SPREAD && together)
                        r = place_spread(p, sorted[i], h->min, false, &placed);
                else if (h->per_node > 0 || (together && (h->min > 1 || p->limited)))
                        r = place_together(p, sorted[i], h->min, false, &placed);
                else
                        r = place_singly(p, sorted[i], h->min, together);
                placing_end_shape(p);
                if (r > 0)
                        placing_take_back(p, before);
                *ret_shape = sorted[i];
        }
        return r;
}

/* One more way. */
static int place_again(struct placing *p, enum order order, bool together) {
        uint32_t shape;
        int r;

        placing_restart(p);
        r = place_all(p, order, together, &shape);
        if (r != 0)
                placing_take_back(p, 0);
        return r;
}

int place_somehow(struct placing *p, struct sched_no_fit *ret_why) {
        enum order first = p->has_limits ? BY_FREEDOM : BY_GPUS;
        uint32_t shape = 0;
        int r;

        p->company = p->has_near ? 2 : 0;
        r = place_all(p, first, true, &shape);
        if (r <= 0)
                return r;
        if (ret_why)
                explain_shape(p, shape, ret_why);
        placing_take_back(p, 0);
        while (p->company > 0 && r > 0) {
                p->company--;
                r = place_again(p, first, true);
        }
        if (p->gang->n_shapes == 1 ||
            p->min > ONE_BY_ONE_MAX) /* of one shape, all that fits has been counted */
                return r;
        for (enum order order = first; order < _ORDER_MAX && r > 0; order++)
                for (p->company = p->has_near ? 2 : 0; r > 0; p->company--) {
                        r = place_again(p, order, false);
                        if (p->company == 0)
                                break;
                }
        return r;
}

/* Adds what fits beyond min. */
static int place_more(struct placing *p) {
        uint32_t sorted[SCHED_SHAPES_MAX], placed;
        int r = 0;

        p->company = 0;
        sort_shapes(p, BY_GPUS, sorted);
        for (uint32_t i = 0; i < p->gang->n_shapes && r == 0; i++) {
                const struct sched_shape *h = &p->gang->shapes[sorted[i]];
                if (h->max == h->min)
                        continue;
                placing_begin_shape(p, sorted[i]);
                r = (p->gang->topology == SCHED_SPREAD ? place_spread : place_together)(
                        p, sorted[i], h->max - h->min, true, &placed);
                placing_end_shape(p);
        }
        return r;
}

static int search(struct placing *p, bool **ret_scope, struct sched_no_fit *ret_why) {
        uint8_t topology = p->gang->topology;
        uint32_t shape = 0;
        int r;

        if (topology != SCHED_REQUIRE && topology != SCHED_PACK)
                return place_somehow(p, ret_why);
        r = place_in_topology(p, ret_scope);
        if (r <= 0 || !ret_why)
                return r;
        p->scope = NULL;
        placing_restart(p);
        r = place_all(p, BY_GPUS, true, &shape);
        if (r > 0)
                explain_shape(p, shape, ret_why);
        placing_take_back(p, 0);
        if (r == 0)
                r = explain_topology(p, ret_why);
        return r < 0 ? r : SCHED_E_NO_FIT;
}

/* ---- result ---- */

static int allocate(const struct placing *p, struct sched_placement *out) {
        size_t total = 0, ports = 0, cpus = 0, amounts = 0;

        for (size_t i = 0; i < p->n; i++) {
                total += p->choices[i].k;
                ports += (size_t)p->choices[i].k * p->needs[p->choices[i].shape].ports;
                cpus += p->choices[i].grant.cpus != NULL;
        }
        for (size_t i = 0; i < p->gang->n_shapes; i++)
                amounts += p->gang->shapes[i].n_amounts;
        out->items = calloc(total, sizeof(*out->items));
        out->ports = calloc(ports ?: 1, sizeof(*out->ports));
        out->cpus = cpus > 0 ? calloc(cpus, sizeof(*out->cpus)) : NULL;
        out->amounts = amounts > 0 ? calloc(amounts, sizeof(*out->amounts)) : NULL;
        return !out->items || !out->ports || (cpus > 0 && !out->cpus) || (amounts > 0 && !out->amounts)
                       ? -ENOMEM
                       : 0;
}

/* The next executor of a choice; gpus are those that none before it got. */
static struct sched_hold hold_of(const struct placing *p, const struct choice *c, uint64_t *gpus) {
        const struct need *n = &p->needs[c->shape];
        uint64_t own = c->k == 1 ? *gpus : layout_pick_gpus(&p->s->nodes[c->slot], *gpus, n->gpus);

        *gpus &= ~own;
        return (struct sched_hold){
                .slot = c->slot,
                .cpu_milli = n->cpu_milli,
                .memory = n->memory,
                .gpus = own,
                .n_ports = n->ports,
                .shm = n->shm,
                .owner = p->gang->whole_hosts,
        };
}

static void unassign(struct placing *p, const struct sched_placement *out) {
        for (size_t j = 0; j < out->n; j++)
                node_unassign(p->s, out->items[j].hold.slot, out->items[j].hold.ports,
                              out->items[j].hold.n_ports);
}

/* Turns counts into executors with ports of their own. */
static int settle_placement(struct placing *p, struct sched_placement *ret) {
        _cleanup_(sched_placement_done) struct sched_placement out = {};
        struct sched_cpuset *cpus;
        struct sched_amount *amounts;
        uint16_t *ports;

        if (allocate(p, &out) < 0)
                return -ENOMEM;
        cpus = out.cpus;
        ports = out.ports;
        amounts = out.amounts;
        for (uint32_t shape = 0; shape < p->gang->n_shapes; shape++) {
                const struct sched_shape *h = &p->gang->shapes[shape];
                uint32_t member = 0;
                if (h->n_amounts > 0)
                        memcpy(amounts, h->amounts, h->n_amounts * sizeof(*amounts));
                for (size_t i = 0; i < p->n; i++) {
                        const struct choice *c = &p->choices[i];
                        uint64_t gpus = c->grant.gpus;
                        for (uint32_t k = 0; c->shape == shape && k < c->k; k++) {
                                struct sched_hold hold = hold_of(p, c, &gpus);
                                hold.ports = ports;
                                hold.amounts = h->n_amounts > 0 ? amounts : NULL;
                                hold.n_amounts = (uint32_t)h->n_amounts;
                                if (c->grant.cpus) {
                                        *cpus = *c->grant.cpus;
                                        hold.cpus = cpus++;
                                }
                                if (node_assign(p->s, c->slot, &p->needs[shape], ports) < 0) {
                                        unassign(p, &out);
                                        return -ENOMEM;
                                }
                                out.items[out.n++] = (struct sched_item){ shape, member++, hold };
                                ports += p->needs[shape].ports;
                        }
                }
                amounts += h->n_amounts;
        }
        for (size_t i = 0; i < p->n && p->gang->whole_hosts != 0; i++)
                node_own(p->s, p->choices[i].slot, p->gang->whole_hosts);
        *ret = out;
        out = (struct sched_placement){};
        return 0;
}

/* ---- what is asked for ---- */

static bool shape_valid(const struct sched *s, const struct sched_shape *h) {
        if (h->min > h->max || h->cpu_milli > SCHED_CPU_MAX || h->memory > SCHED_MEMORY_MAX ||
            h->gpus > SCHED_GPUS_MAX || h->ports > SCHED_PORTS_MAX || h->shm > SCHED_MEMORY_MAX ||
            h->n_required + h->n_preferred > SCHED_CONSTRAINTS_MAX || h->n_amounts > SCHED_AMOUNTS_MAX ||
            h->numa > SCHED_NUMA_REQUIRE)
                return false;
        if (h->exclusive_cpus &&
            (h->cpu_milli == 0 || h->cpu_milli % 1000 != 0 || h->cpu_milli / 1000 > SCHED_CPUS_MAX))
                return false;
        for (size_t i = 0; i < h->n_preferred; i++)
                if (h->preferred[i].weight == 0 || h->preferred[i].weight > SCHED_WEIGHT_MAX)
                        return false;
        for (size_t i = 0; i < h->n_amounts; i++) {
                if (h->amounts[i].index >= s->n_consumables)
                        return false;
                for (size_t k = 0; k < i; k++)
                        if (h->amounts[k].index == h->amounts[i].index)
                                return false;
        }
        return true;
}

/* Whether the shapes can be put in an order in which each comes after those it has to be near to. */
static bool near_valid(const struct sched_gang *g) {
        uint64_t all = g->n_shapes == 64 ? UINT64_MAX : (UINT64_C(1) << g->n_shapes) - 1, done = 0, before;

        do {
                before = done;
                for (size_t i = 0; i < g->n_shapes; i++)
                        if (!(g->shapes[i].near & ~done))
                                done |= UINT64_C(1) << i;
        } while (done != before);
        for (size_t i = 0; i < g->n_shapes; i++)
                if (g->shapes[i].apart & ~all)
                        return false;
        return done == all;
}

static int check_gang(const struct sched *s, const struct sched_gang *g, uint64_t *ret_min) {
        uint64_t max = 0, min = 0;

        if (g->n_shapes == 0 || g->n_shapes > SCHED_SHAPES_MAX || g->topology > SCHED_SPREAD)
                return -EINVAL;
        for (size_t i = 0; i < g->n_shapes; i++) {
                if (!shape_valid(s, &g->shapes[i]))
                        return -EINVAL;
                max += g->shapes[i].max;
                min += g->shapes[i].min;
        }
        if (max == 0 || max > SCHED_EXECUTORS_MAX || !near_valid(g))
                return -EINVAL;
        *ret_min = min;
        return 0;
}

int shape_need(struct sched *s, const struct sched_shape *h, uint64_t whole_hosts, struct need *ret) {
        struct need *n = ret;
        int r;

        if (!shape_valid(s, h))
                return -EINVAL;
        *n = (struct need){ .cpu_milli = h->cpu_milli,
                            .gpus = h->gpus,
                            .ports = h->ports,
                            .memory = h->memory,
                            .worst = h->worst,
                            .numa = h->numa,
                            .cpus = (uint16_t)(h->exclusive_cpus ? h->cpu_milli / 1000 : 0),
                            .shm = h->shm,
                            .owner = whole_hosts,
                            .amounts = h->amounts,
                            .n_amounts = h->n_amounts };
        r = filter_get(s, h, &n->filter);
        n->special = n->filter || n->shm > 0 || n->owner != 0 || need_is_exact(n);
        return r;
}

static int need_for(struct placing *p, uint32_t shape) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        struct need *n = &p->needs[shape];
        int r = shape_need(p->s, h, p->gang->whole_hosts, n);

        p->has_limits |= n->filter || h->restricted;
        p->has_near |= h->near != 0;
        p->apart[shape] |= h->apart;
        for (uint64_t b = h->apart; b; b &= b - 1)
                p->apart[__builtin_ctzll(b)] |= UINT64_C(1) << shape;
        return r;
}

/* The hosts that the gang has for itself already. */
static void open_own(const struct placing *p, bool open) {
        for (size_t i = 0; i < p->gang->n_shapes && p->gang->whole_hosts != 0; i++)
                for (size_t k = 0; k < p->gang->shapes[i].n_present; k++)
                        node_open(p->s, p->gang->shapes[i].present[k], p->gang->whole_hosts, open);
}

int sched_place(struct sched *s, const struct sched_gang *g, struct sched_placement *ret,
                struct sched_no_fit *ret_why) {
        struct placing p = { .s = s, .gang = g };
        _cleanup_free_ bool *scope = NULL;
        int r = check_gang(s, g, &p.min);

        if (r < 0)
                return r;
        renew_stamps(s);
        for (uint32_t i = 0; i < g->n_shapes && r == 0; i++)
                r = need_for(&p, i);
        if (r < 0)
                return r;
        open_own(&p, true);
        placing_restart(&p);
        r = search(&p, &scope, ret_why);
        if (r == 0)
                r = place_more(&p);
        if (r == 0 && p.n == 0) { /* nothing was asked for at the least, and nothing fits */
                uint32_t shape = 0;
                while (g->shapes[shape].max == 0)
                        shape++;
                if (ret_why)
                        explain_shape(&p, shape, ret_why);
                r = SCHED_E_NO_FIT;
        }
        if (r == 0)
                r = settle_placement(&p, ret);
        if (r != 0)
                placing_take_back(&p, 0);
        open_own(&p, false);
        for (size_t i = 0; i < p.n; i++)
                free(p.choices[i].grant.cpus);
        free(p.choices);
        return r;
}

int sched_placement_copy(const struct sched_placement *p, struct sched_placement *ret) {
        _cleanup_(sched_placement_done) struct sched_placement c = {};
        size_t ports = 0, cpus = 0, amounts = 0;

        for (size_t i = 0; i < p->n; i++) {
                ports += p->items[i].hold.n_ports;
                cpus += p->items[i].hold.cpus != NULL;
                amounts += p->items[i].hold.n_amounts;
        }
        c.items = calloc(p->n + 1, sizeof(*c.items));
        c.ports = calloc(ports + 1, sizeof(*c.ports));
        c.cpus = calloc(cpus + 1, sizeof(*c.cpus));
        c.amounts = calloc(amounts + 1, sizeof(*c.amounts));
        if (!c.items || !c.ports || !c.cpus || !c.amounts)
                return -ENOMEM;
        ports = cpus = amounts = 0;
        for (; c.n < p->n; c.n++) {
                struct sched_hold *h = &c.items[c.n].hold;
                c.items[c.n] = p->items[c.n];
                if (h->n_ports > 0)
                        h->ports = memcpy(c.ports + ports, h->ports, h->n_ports * sizeof(*c.ports));
                if (h->cpus)
                        h->cpus = memcpy(c.cpus + cpus++, h->cpus, sizeof(*c.cpus));
                if (h->n_amounts > 0)
                        h->amounts =
                                memcpy(c.amounts + amounts, h->amounts, h->n_amounts * sizeof(*c.amounts));
                ports += h->n_ports;
                amounts += h->n_amounts;
        }
        *ret = c;
        c = (struct sched_placement){};
        return 0;
}

void sched_placement_done(struct sched_placement *p) {
        free(p->items);
        free(p->ports);
        free(p->cpus);
        free(p->amounts);
        *p = (struct sched_placement){};
}
