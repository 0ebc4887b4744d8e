/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of gangs. Invariant: sched_place() either holds everything of the placement that it returns, or
 * leaves every count and bit as it found them. Choices are first made as counts per node; GPUs and ports are
 * picked at the end, when nothing can fail any more but memory. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

#define ONE_BY_ONE_MAX                                                                                       \
        512u /* executors; larger gangs are not tried one by one, which takes a look at all nodes for each   \
              */

/* k executors of a shape on a node. */
struct choice {
        uint32_t shape, slot, k;
};

struct placing {
        struct sched *s;
        const struct sched_gang *gang;
        struct need needs[SCHED_SHAPES_MAX];
        struct choice *choices;
        size_t n, allocated;
        uint32_t gang_mark, shape_mark;
};

/* A stamp that no slot carries yet. */
static uint32_t new_stamp(struct sched *s) {
        return ++s->stamp;
}

/* Before stamps run out, which one placement never does by itself. */
static void renew_stamps(struct sched *s) {
        if (s->stamp < UINT32_MAX / 2)
                return;
        memset(s->gang_stamp, 0, s->allocated * sizeof(*s->gang_stamp));
        memset(s->shape_stamp, 0, s->allocated * sizeof(*s->shape_stamp));
        memset(s->allow_stamp, 0, s->allocated * sizeof(*s->allow_stamp));
        s->stamp = 0;
}

static uint32_t count_there(const struct placing *p, uint32_t slot) {
        return p->s->shape_stamp[slot] == p->shape_mark ? p->s->shape_count[slot] : 0;
}

/* Counts k more executors of the current shape on a node, which is the gang's from now on. */
static void mark(struct placing *p, uint32_t slot, uint32_t k) {
        uint32_t there = count_there(p, slot);

        p->s->shape_stamp[slot] = p->shape_mark;
        p->s->shape_count[slot] = there + k;
        p->s->gang_stamp[slot] = p->gang_mark;
}

static int choose(struct placing *p, uint32_t shape, uint32_t slot, uint32_t k) {
        if (p->n == p->allocated) {
                size_t m = p->allocated ? p->allocated * 2 : 16;
                struct choice *c = realloc(p->choices, m * sizeof(*c));
                if (!c)
                        return -ENOMEM;
                p->choices = c;
                p->allocated = m;
        }
        p->choices[p->n++] = (struct choice){ shape, slot, k };
        node_take(p->s, slot, &p->needs[shape], k);
        mark(p, slot, k);
        return 0;
}

/* Gives back the choices behind the first n. */
static void take_back(struct placing *p, size_t n) {
        while (p->n > n) {
                const struct choice *c = &p->choices[--p->n];
                node_return(p->s, c->slot, &p->needs[c->shape], c->k);
        }
}

/* Makes the marks those of a shape: where executors of it are, and what it may not use. Undone by
 * nodes_show(). */
static void begin_shape(struct placing *p, uint32_t shape) {
        const struct sched_shape *h = &p->gang->shapes[shape];

        p->shape_mark = new_stamp(p->s);
        for (size_t i = 0; i < h->n_present; i++)
                if (h->present[i] < p->s->n)
                        mark(p, h->present[i], 1);
        for (size_t i = 0; i < p->n; i++)
                if (p->choices[i].shape == shape)
                        mark(p, p->choices[i].slot, p->choices[i].k);
        for (size_t i = 0; i < h->n_excluded; i++)
                node_hide(p->s, h->excluded[i]);
}

/* How many more of the shape the limits per node allow on a node. */
static uint32_t allowance(const struct placing *p, const struct sched_shape *h, uint32_t slot) {
        uint32_t there = count_there(p, slot), limit = h->per_node > 0 ? h->per_node : h->max_per_node;

        if (limit == 0)
                return UINT32_MAX;
        return limit > there ? limit - there : 0;
}

static bool comes_before(const struct candidate *a, const struct candidate *b) {
        return a->key != b->key ? a->key < b->key : a->slot < b->slot;
}

static void sift_down(struct candidate *c, uint32_t n, uint32_t i) {
        for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
                struct candidate t;
                if (child + 1 < n && comes_before(&c[child + 1], &c[child]))
                        child++;
                if (!comes_before(&c[child], &c[i]))
                        return;
                t = c[i];
                c[i] = c[child];
                c[child] = t;
        }
}

/* Nodes of the gang first, then those with room for more, then those on which less is left. */
static uint64_t candidate_key(const struct placing *p, const struct need *n, uint32_t slot, uint32_t count,
                              uint32_t wanted) {
        uint64_t left = fit_left(p->s, n, slot, count), elsewhere = p->s->gang_stamp[slot] != p->gang_mark;

        return elsewhere << 63 | (uint64_t)(wanted - count) << 43 | (left >> 32) << 36 |
               MIN(left & UINT32_MAX, (UINT64_C(1) << 36) - 1);
}

/* Where the shape may go, and how many: s->candidates, the best of them first. Returns how many nodes;
 * *ret_room: executors on them together, each node counted for no more than are wanted. */
static uint32_t find_candidates(struct placing *p, uint32_t shape, uint32_t wanted, uint64_t *ret_room) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        const struct need *need = &p->needs[shape];
        struct sched *s = p->s;
        uint32_t n = 0, seen = h->restricted ? new_stamp(s) : 0;
        size_t universe = h->restricted ? h->n_allowed : s->n;
        uint64_t room = 0;

        for (size_t i = 0; i < universe; i++) {
                uint32_t slot = h->restricted ? h->allowed[i] : (uint32_t)i, k;
                if (slot >= s->n || s->executors[slot] <= 0)
                        continue;
                if (h->restricted) {
                        if (s->allow_stamp[slot] == seen)
                                continue;
                        s->allow_stamp[slot] = seen;
                }
                k = MIN(wanted, allowance(p, h, slot));
                k = k > 0 ? fit_count(s, need, slot, k) : 0;
                if (k == 0 || (h->per_node > 0 && count_there(p, slot) == 0 && k < h->per_node))
                        continue;
                s->candidates[n] = (struct candidate){ candidate_key(p, need, slot, k, wanted), slot, k };
                if (n > 0 && comes_before(&s->candidates[n], &s->candidates[0])) {
                        struct candidate t = s->candidates[0];
                        s->candidates[0] = s->candidates[n];
                        s->candidates[n] = t;
                }
                n++;
                room += k;
        }
        *ret_room = room;
        return n;
}

/* Of the candidates that can take all of rest, the one of the gang, or else with the least left over. */
static const struct candidate *tightest(const struct placing *p, uint32_t shape, uint32_t n, uint32_t rest) {
        const struct candidate *best = NULL;
        struct candidate a = {}, b;

        for (uint32_t i = 0; i < n; i++) {
                const struct candidate *c = &p->s->candidates[i];
                if (c->count < rest)
                        continue;
                b = (struct candidate){ candidate_key(p, &p->needs[shape], c->slot, rest, rest), c->slot,
                                        rest };
                if (!best || comes_before(&b, &a)) {
                        best = c;
                        a = b;
                }
        }
        return best;
}

/* Chooses places for wanted executors of a shape, as few nodes as possible; or, when partial, for as many as
 * fit. *ret_placed of them. SCHED_E_NO_FIT: there is no room for all (then nothing was chosen, except of
 * shapes with per_node). */
static int place_together(struct placing *p, uint32_t shape, uint32_t wanted, bool partial,
                          uint32_t *ret_placed) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        struct candidate *c = p->s->candidates;
        uint32_t rest = wanted;
        uint64_t room;
        uint32_t n = find_candidates(p, shape, wanted, &room);
        int r;

        *ret_placed = 0;
        if (room < wanted && !partial)
                return SCHED_E_NO_FIT;
        if (n > 0 && c[0].count >= wanted && h->per_node == 0) { /* no need to sort them */
                *ret_placed = wanted;
                return choose(p, shape, c[0].slot, wanted);
        }
        for (uint32_t i = n / 2; i-- > 0;)
                sift_down(c, n, i);
        while (rest > 0 && n > 0) {
                struct candidate top = c[0];
                if (top.count >= rest && h->per_node == 0)
                        top = *tightest(p, shape, n, rest);
                uint32_t k = MIN(top.count, rest);
                /* A node that is new to a shape with per_node takes all of them or none. */
                if (h->per_node == 0 || k == h->per_node || count_there(p, top.slot) > 0) {
                        r = choose(p, shape, top.slot, k);
                        if (r < 0)
                                return r;
                        rest -= k;
                        *ret_placed += k;
                }
                c[0] = c[--n];
                sift_down(c, n, 0);
        }
        return rest == 0 || partial ? 0 : SCHED_E_NO_FIT;
}

/* One executor of a shape without per_node: on a node of the gang if together (then the shape is not
 * restricted), or where it fits best. */
static int place_one(struct placing *p, uint32_t shape, bool together) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        const struct need *need = &p->needs[shape];
        uint32_t slot = SLOT_NONE;

        if (together) {
                uint64_t least = UINT64_MAX;
                slot = fit_best_of(p->s, need, h->present, h->n_present);
                for (size_t i = 0; i < p->n; i++) {
                        uint32_t other = p->choices[i].slot;
                        uint64_t left;
                        if (fit_count(p->s, need, other, 1) == 0)
                                continue;
                        left = fit_left(p->s, need, other, 1);
                        if (left < least) {
                                least = left;
                                slot = other;
                        }
                }
        }
        if (slot == SLOT_NONE)
                slot = h->restricted ? fit_best_of(p->s, need, h->allowed, h->n_allowed)
                                     : fit_best(p->s, need);
        return slot == SLOT_NONE ? SCHED_E_NO_FIT : choose(p, shape, slot, 1);
}

/* Hides a node where the shape has reached its limit. */
static void hide_if_full(struct placing *p, const struct sched_shape *h, uint32_t slot) {
        if (slot < p->s->n && allowance(p, h, slot) == 0)
                node_hide(p->s, slot);
}

static int place_singly(struct placing *p, uint32_t shape, uint32_t wanted, bool together) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        int r = 0;

        for (size_t i = 0; i < h->n_present; i++)
                hide_if_full(p, h, h->present[i]);
        for (uint32_t k = 0; k < wanted && r == 0; k++) {
                r = place_one(p, shape, together);
                if (r == 0)
                        hide_if_full(p, h, p->choices[p->n - 1].slot);
        }
        return r;
}

/* How shapes are sorted, largest first. */
enum order {
        BY_GPUS,
        BY_MEMORY,
        BY_CPU,
        _ORDER_MAX
};

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

/* Indices of the shapes, largest first; equals in their own order. There are at most 64. */
static void sort_shapes(const struct placing *p, enum order order, uint32_t ret[static SCHED_SHAPES_MAX]) {
        for (uint32_t i = 0; i < p->gang->n_shapes; i++) {
                uint32_t k = i;
                for (; k > 0 && larger(&p->needs[i], &p->needs[ret[k - 1]], order); k--)
                        ret[k] = ret[k - 1];
                ret[k] = i;
        }
}

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
                begin_shape(p, sorted[i]);
                if (h->per_node > 0 || (together && (h->min > 1 || h->restricted)))
                        r = place_together(p, sorted[i], h->min, false, &placed);
                else
                        r = place_singly(p, sorted[i], h->min, together);
                nodes_show(p->s);
                if (r > 0)
                        take_back(p, before);
                *ret_shape = sorted[i];
        }
        return r;
}

/* Adds what fits beyond min. */
static int extend(struct placing *p) {
        uint32_t sorted[SCHED_SHAPES_MAX], placed;
        int r = 0;

        sort_shapes(p, BY_GPUS, sorted);
        for (uint32_t i = 0; i < p->gang->n_shapes && r == 0; i++) {
                const struct sched_shape *h = &p->gang->shapes[sorted[i]];
                if (h->max == h->min)
                        continue;
                begin_shape(p, sorted[i]);
                r = place_together(p, sorted[i], h->max - h->min, true, &placed);
                nodes_show(p->s);
        }
        return r;
}

/* Why there is no room for a shape beside what is chosen now. */
static void explain(struct placing *p, uint32_t shape, struct sched_no_fit *ret) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        const struct need *need = &p->needs[shape];
        struct sched_no_fit why = { .shape = shape, .wanted = h->min };
        uint32_t nodes_lacking[6] = {}, seen;
        uint64_t room, empty = 0;
        struct sched *s = p->s;

        begin_shape(p, shape);
        (void)find_candidates(p, shape, h->min, &room);
        why.fits = (uint32_t)MIN(room, h->min);
        seen = new_stamp(s);
        for (size_t i = 0; i < (h->restricted ? h->n_allowed : s->n); i++) {
                uint32_t slot = h->restricted ? h->allowed[i] : (uint32_t)i, bits, k;
                const struct sched_node *n = slot < s->n ? &s->nodes[slot] : NULL;
                if (!n || !n->exists || !n->usable || n->hidden || s->allow_stamp[slot] == seen)
                        continue;
                s->allow_stamp[slot] = seen;
                why.nodes++;
                bits = allowance(p, h, slot) == 0 ? SCHED_NODES : fit_lacking(s, need, slot);
                why.lacking |= bits;
                for (unsigned b = 0; b < ELEMENTSOF(nodes_lacking); b++)
                        nodes_lacking[b] += bits >> b & 1;
                k = h->per_node > 0 ? h->per_node : h->max_per_node > 0 ? h->max_per_node : UINT32_MAX;
                k = fit_capacity(&n->capacity, need, MIN(k, h->min));
                empty += h->per_node > 0 && k < h->per_node ? 0 : k;
        }
        nodes_show(s);
        why.scarce = SCHED_NODES;
        for (unsigned b = 0, most = 0; b < ELEMENTSOF(nodes_lacking); b++)
                if (nodes_lacking[b] > most) {
                        most = nodes_lacking[b];
                        why.scarce = 1u << b;
                }
        why.never = why.nodes > 0 && empty < h->min;
        why.lacking = why.never ? 0 : why.lacking ?: SCHED_NODES;
        *ret = why;
}

/* Turns counts into executors with GPUs and ports of their own. */
static int settle(struct placing *p, struct sched_placement *ret) {
        _cleanup_(sched_placement_done) struct sched_placement out = {};
        size_t total = 0, ports = 0;

        for (size_t i = 0; i < p->n; i++) {
                total += p->choices[i].k;
                ports += (size_t)p->choices[i].k * p->needs[p->choices[i].shape].ports;
        }
        out.items = calloc(total, sizeof(*out.items));
        out.ports = calloc(ports ?: 1, sizeof(*out.ports));
        if (!out.items || !out.ports)
                return -ENOMEM;
        ports = 0;
        for (uint32_t shape = 0; shape < p->gang->n_shapes; shape++) {
                const struct need *n = &p->needs[shape];
                uint32_t member = 0;
                for (size_t i = 0; i < p->n; i++) {
                        const struct choice *c = &p->choices[i];
                        for (uint32_t k = 0; c->shape == shape && k < c->k; k++) {
                                struct sched_item *item = &out.items[out.n];
                                *item = (struct sched_item){
                                        .shape = shape,
                                        .member = member++,
                                        .hold = { c->slot, n->cpu_milli, n->memory, 0, out.ports + ports,
                                                  n->ports },
                                };
                                if (node_assign(p->s, c->slot, n, &item->hold.gpus, out.ports + ports) < 0) {
                                        for (size_t j = 0; j < out.n; j++)
                                                node_unassign(p->s, out.items[j].hold.slot,
                                                              out.items[j].hold.gpus, out.items[j].hold.ports,
                                                              out.items[j].hold.n_ports);
                                        return -ENOMEM;
                                }
                                out.n++;
                                ports += n->ports;
                        }
                }
        }
        *ret = out;
        out = (struct sched_placement){};
        return 0;
}

static int check(const struct sched_gang *g, uint64_t *ret_min) {
        uint64_t max = 0, min = 0;

        if (g->n_shapes == 0 || g->n_shapes > SCHED_SHAPES_MAX)
                return -EINVAL;
        for (size_t i = 0; i < g->n_shapes; i++) {
                const struct sched_shape *h = &g->shapes[i];
                if (h->max == 0 || h->min > h->max || h->cpu_milli > SCHED_CPU_MAX ||
                    h->memory > SCHED_MEMORY_MAX || h->gpus > SCHED_GPUS_MAX || h->ports > SCHED_PORTS_MAX)
                        return -EINVAL;
                max += h->max;
                min += h->min;
        }
        *ret_min = min;
        return max > SCHED_EXECUTORS_MAX ? -EINVAL : 0;
}

/* Chooses for every shape, in whichever way works. */
static int search(struct placing *p, uint64_t min, struct sched_no_fit *ret_why) {
        uint32_t shape = 0;
        int r = place_all(p, BY_GPUS, true, &shape);

        if (r <= 0)
                return r;
        if (ret_why)
                explain(p, shape, ret_why);
        take_back(p, 0);
        if (p->gang->n_shapes == 1 || min > ONE_BY_ONE_MAX) /* of one shape, all that fits has been counted */
                return r;
        for (enum order order = 0; order < _ORDER_MAX && r > 0; order++) {
                p->gang_mark = new_stamp(p->s);
                r = place_all(p, order, false, &shape);
                if (r != 0)
                        take_back(p, 0);
        }
        return r;
}

int sched_place(struct sched *s, const struct sched_gang *g, struct sched_placement *ret,
                struct sched_no_fit *ret_why) {
        struct placing p = { .s = s, .gang = g };
        uint64_t min;
        int r = check(g, &min);

        if (r < 0)
                return r;
        renew_stamps(s);
        p.gang_mark = new_stamp(s);
        for (uint32_t i = 0; i < g->n_shapes; i++) {
                const struct sched_shape *h = &g->shapes[i];
                p.needs[i] = (struct need){ h->cpu_milli, h->gpus, h->ports, h->memory };
                for (size_t k = 0; k < h->n_present; k++)
                        if (h->present[k] < s->n)
                                s->gang_stamp[h->present[k]] = p.gang_mark;
        }
        r = search(&p, min, ret_why);
        if (r == 0)
                r = extend(&p);
        if (r == 0 && p.n == 0) { /* nothing was asked for at the least, and nothing fits */
                if (ret_why)
                        explain(&p, 0, ret_why);
                r = SCHED_E_NO_FIT;
        }
        if (r == 0)
                r = settle(&p, ret);
        if (r != 0)
                take_back(&p, 0);
        free(p.choices);
        return r;
}

void sched_placement_done(struct sched_placement *p) {
        free(p->items);
        free(p->ports);
        *p = (struct sched_placement){};
}

uint32_t sched_gang_uses(const struct sched_gang *g) {
        uint32_t bits = SCHED_EXECUTORS;

        for (size_t i = 0; i < g->n_shapes; i++) {
                const struct sched_shape *h = &g->shapes[i];
                bits |= (h->cpu_milli > 0 ? SCHED_CPU : 0u) | (h->memory > 0 ? SCHED_MEMORY : 0u) |
                        (h->gpus > 0 ? SCHED_GPUS : 0u) | (h->ports > 0 ? SCHED_PORTS : 0u);
        }
        return bits;
}

char *sched_no_fit_text(const struct sched_no_fit *why, char *buf, size_t size) {
        static const char *const names[] = {
                "CPU", "memory", "GPUs", "ports", "executors per node", "nodes"
        };
        unsigned bit = why->scarce ? (unsigned)__builtin_ctz(why->scarce) : 5;
        const char *name = bit < ELEMENTSOF(names) ? names[bit] : "nodes";

        if (why->nodes == 0)
                snprintf(buf, size, "no usable node is there for it");
        else if (why->never)
                snprintf(buf, size,
                         "%u wanted, more than the %u usable nodes hold even when empty, short of %s",
                         why->wanted, why->nodes, name);
        else
                snprintf(buf, size, "%u of %u fit now on %u usable nodes, short of %s", why->fits,
                         why->wanted, why->nodes, name);
        return buf;
}
