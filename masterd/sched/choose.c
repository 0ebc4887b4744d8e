/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a placement: which nodes a shape may use, and taking places on them. Invariant: what is chosen
 * is counted on its node, with GPUs and CPUs of its own, until it is taken back. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/placing.h"

uint32_t placing_stamp(struct sched *s) {
        return ++s->stamp;
}

uint32_t placing_count_there(const struct placing *p, uint32_t slot) {
        return p->s->shape_stamp[slot] == p->shape_mark ? p->s->shape_count[slot] : 0;
}

/* Counts k more executors of the current shape on a node, which is the gang's from now on. */
static void mark(struct placing *p, uint32_t slot, uint32_t k) {
        uint32_t there = placing_count_there(p, slot);

        p->s->shape_stamp[slot] = p->shape_mark;
        p->s->shape_count[slot] = there + k;
        p->s->gang_stamp[slot] = p->gang_mark;
}

static int choose_equal(struct placing *p, uint32_t shape, uint32_t slot, uint32_t k) {
        struct grant grant;
        int r;

        if (p->n == p->allocated) {
                size_t m = p->allocated ? p->allocated * 2 : 16;
                struct choice *c = realloc(p->choices, m * sizeof(*c));
                if (!c)
                        return -ENOMEM;
                p->choices = c;
                p->allocated = m;
        }
        r = node_take(p->s, slot, &p->needs[shape], k, &grant);
        if (r < 0)
                return r;
        p->choices[p->n++] = (struct choice){ shape, slot, k, grant };
        mark(p, slot, k);
        return 0;
}

int placing_choose(struct placing *p, uint32_t shape, uint32_t slot, uint32_t k) {
        int r = 0;

        if (!need_is_exact(&p->needs[shape]))
                return choose_equal(p, shape, slot, k);
        for (; k > 0 && r == 0; k--)
                r = choose_equal(p, shape, slot, 1);
        return r;
}

void placing_take_back(struct placing *p, size_t n) {
        while (p->n > n) {
                struct choice *c = &p->choices[--p->n];
                node_return(p->s, c->slot, &p->needs[c->shape], c->k, &c->grant);
        }
}

/* ---- which nodes ---- */

static bool in_scope(const struct placing *p, uint32_t slot) {
        return !p->scope || p->scope[p->s->level_of[p->scope_level][slot]];
}

static void add_slot(struct placing *p, uint32_t slot, uint32_t seen) {
        if (slot >= p->s->n || p->s->allow_stamp[slot] == seen || !in_scope(p, slot))
                return;
        p->s->allow_stamp[slot] = seen;
        p->s->universe[p->n_universe++] = slot;
}

/* Leaves in the universe (or begins it with) the nodes where an executor of another shape is. */
static void keep_near(struct placing *p, uint32_t other, bool first) {
        const struct sched_shape *o = &p->gang->shapes[other];
        uint32_t seen = placing_stamp(p->s), n = 0;

        if (first) {
                for (size_t i = 0; i < o->n_present; i++)
                        add_slot(p, o->present[i], seen);
                for (size_t i = 0; i < p->n; i++)
                        if (p->choices[i].shape == other)
                                add_slot(p, p->choices[i].slot, seen);
                return;
        }
        for (size_t i = 0; i < o->n_present; i++)
                if (o->present[i] < p->s->n)
                        p->s->allow_stamp[o->present[i]] = seen;
        for (size_t i = 0; i < p->n; i++)
                if (p->choices[i].shape == other)
                        p->s->allow_stamp[p->choices[i].slot] = seen;
        for (size_t i = 0; i < p->n_universe; i++)
                if (p->s->allow_stamp[p->s->universe[i]] == seen)
                        p->s->universe[n++] = p->s->universe[i];
        p->n_universe = n;
}

static void find_universe(struct placing *p, const struct sched_shape *h) {
        bool first = true;

        p->limited = h->restricted || h->near || p->scope;
        p->n_universe = 0;
        if (h->restricted) {
                uint32_t seen = placing_stamp(p->s);
                for (size_t i = 0; i < h->n_allowed; i++)
                        add_slot(p, h->allowed[i], seen);
                first = false;
        }
        for (uint64_t b = h->near; b; b &= b - 1, first = false)
                keep_near(p, (uint32_t)__builtin_ctzll(b), first);
        if (p->limited && first) {
                uint32_t seen = placing_stamp(p->s);
                for (uint32_t i = 0; i < p->s->n; i++)
                        add_slot(p, i, seen);
        }
}

static void hide_those_of(struct placing *p, uint32_t other) {
        const struct sched_shape *o = &p->gang->shapes[other];

        for (size_t i = 0; i < o->n_present; i++)
                node_hide(p->s, o->present[i]);
        for (size_t i = 0; i < p->n; i++)
                if (p->choices[i].shape == other)
                        node_hide(p->s, p->choices[i].slot);
}

void placing_begin_shape(struct placing *p, uint32_t shape) {
        const struct sched_shape *h = &p->gang->shapes[shape];

        p->shape_mark = placing_stamp(p->s);
        for (size_t i = 0; i < h->n_present; i++)
                if (h->present[i] < p->s->n)
                        mark(p, h->present[i], 1);
        for (size_t i = 0; i < p->n; i++)
                if (p->choices[i].shape == shape)
                        mark(p, p->choices[i].slot, p->choices[i].k);
        for (size_t i = 0; i < h->n_excluded; i++)
                node_hide(p->s, h->excluded[i]);
        for (uint64_t b = p->apart[shape] & ~(UINT64_C(1) << shape); b; b &= b - 1)
                hide_those_of(p, (uint32_t)__builtin_ctzll(b));
        find_universe(p, h);
}

void placing_end_shape(struct placing *p) {
        nodes_show(p->s);
}

uint32_t placing_allowance(const struct placing *p, uint32_t shape, uint32_t slot) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        uint32_t there = placing_count_there(p, slot),
                 limit = h->per_node > 0 ? h->per_node : h->max_per_node;

        if (p->apart[shape] & UINT64_C(1) << (shape & 63))
                limit = 1;
        if (limit == 0)
                return UINT32_MAX;
        return limit > there ? limit - there : 0;
}

/* ---- candidates ---- */

bool candidate_comes_before(const struct candidate *a, const struct candidate *b) {
        return a->key != b->key ? a->key < b->key : a->slot < b->slot;
}

void candidates_sift(struct candidate *c, uint32_t n, uint32_t i) {
        for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
                struct candidate t;
                if (child + 1 < n && candidate_comes_before(&c[child + 1], &c[child]))
                        child++;
                if (!candidate_comes_before(&c[child], &c[i]))
                        return;
                t = c[i];
                c[i] = c[child];
                c[child] = t;
        }
}

void candidates_heap(struct candidate *c, uint32_t n) {
        for (uint32_t i = n / 2; i-- > 0;)
                candidates_sift(c, n, i);
}

/* Preferred nodes first, then nodes of the gang, then those with room for more, then those on which less is
 * left (more, with worst; then room for more is no advantage). */
static uint64_t candidate_key(const struct placing *p, const struct need *n, uint32_t slot, uint32_t count,
                              uint32_t wanted) {
        uint64_t left = fit_left(p->s, n, slot, count), elsewhere = p->s->gang_stamp[slot] != p->gang_mark,
                 rank = n->filter ? n->filter->rank[slot] : 0, missing = n->worst ? 0 : wanted - count;

        return rank << 56 | elsewhere << 55 | missing << 35 | left;
}

/* What one of the shape takes together with those that have to be near to it. */
static struct need with_company(const struct placing *p, uint32_t shape) {
        struct need n = p->needs[shape];
        uint32_t min = MAX(p->gang->shapes[shape].min, 1u);

        for (uint32_t i = 0; i < p->gang->n_shapes && p->company > 0; i++) {
                const struct sched_shape *h = &p->gang->shapes[i];
                const struct need *o = &p->needs[i];
                uint64_t k = p->company == 1 ? 1 : (h->min + min - 1) / min;
                if (!(h->near >> shape & 1) || h->min == 0)
                        continue;
                n.cpu_milli = (uint32_t)MIN(n.cpu_milli + o->cpu_milli * k, SCHED_CPU_MAX);
                n.memory = MIN(n.memory + o->memory * k, SCHED_MEMORY_MAX);
                n.gpus = (uint32_t)MIN(n.gpus + o->gpus * k, SCHED_GPUS_MAX + 1);
                n.ports = (uint32_t)MIN(n.ports + o->ports * k, (uint64_t)UINT16_MAX);
                n.shm = MIN(n.shm + o->shm * k, SCHED_MEMORY_MAX);
                n.special |= o->special;
        }
        return n;
}

static bool company_matches(const struct placing *p, uint32_t shape, uint32_t slot) {
        for (uint32_t i = 0; i < p->gang->n_shapes; i++)
                if ((p->gang->shapes[i].near >> shape & 1) && !fit_matches(&p->needs[i], slot))
                        return false;
        return true;
}

static bool has_company(const struct placing *p, uint32_t shape) {
        for (uint32_t i = 0; i < p->gang->n_shapes && p->company > 0; i++)
                if ((p->gang->shapes[i].near >> shape & 1) && p->gang->shapes[i].min > 0)
                        return true;
        return false;
}

uint32_t placing_find_candidates(struct placing *p, uint32_t shape, uint32_t wanted, uint64_t *ret_room) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        bool company = has_company(p, shape);
        struct need joint = company ? with_company(p, shape) : (struct need){};
        const struct need *need = &p->needs[shape], *counted = company ? &joint : need;
        size_t universe = p->limited ? p->n_universe : p->s->n;
        struct sched *s = p->s;
        uint64_t room = 0;
        uint32_t n = 0;

        for (size_t i = 0; i < universe; i++) {
                uint32_t slot = p->limited ? s->universe[i] : (uint32_t)i, k;
                if (s->executors[slot] <= 0 || (company && !company_matches(p, shape, slot)))
                        continue;
                k = MIN(wanted, placing_allowance(p, shape, slot));
                k = k > 0 ? fit_count(s, counted, slot, k) : 0;
                if (k == 0 || (h->per_node > 0 && placing_count_there(p, slot) == 0 && k < h->per_node))
                        continue;
                s->candidates[n] = (struct candidate){ candidate_key(p, need, slot, k, wanted), slot, k };
                if (n > 0 && candidate_comes_before(&s->candidates[n], &s->candidates[0])) {
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
                if (!best || candidate_comes_before(&b, &a)) {
                        best = c;
                        a = b;
                }
        }
        return best;
}

/* ---- taking places ---- */

int place_together(struct placing *p, uint32_t shape, uint32_t wanted, bool partial, uint32_t *ret_placed) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        struct candidate *c = p->s->candidates;
        uint32_t rest = consumables_room(p->s, &p->needs[shape], wanted, false, NULL), n;
        uint64_t room;
        int r;

        *ret_placed = 0;
        if (rest < wanted && !partial)
                return SCHED_E_NO_FIT;
        wanted = rest;
        if (wanted == 0)
                return 0;
        n = placing_find_candidates(p, shape, wanted, &room);
        if (room < wanted && !partial)
                return SCHED_E_NO_FIT;
        if (n > 0 && c[0].count >= wanted && h->per_node == 0) { /* no need to sort them */
                *ret_placed = wanted;
                return placing_choose(p, shape, c[0].slot, wanted);
        }
        candidates_heap(c, n);
        while (rest > 0 && n > 0) {
                struct candidate top = c[0];
                uint32_t k;
                if (top.count >= rest && h->per_node == 0)
                        top = *tightest(p, shape, n, rest);
                k = MIN(top.count, rest);
                /* A node that is new to a shape with per_node takes all of them or none. */
                if (h->per_node == 0 || k == h->per_node || placing_count_there(p, top.slot) > 0) {
                        r = placing_choose(p, shape, top.slot, k);
                        if (r < 0)
                                return r;
                        rest -= k;
                        *ret_placed += k;
                }
                c[0] = c[--n];
                candidates_sift(c, n, 0);
        }
        return rest == 0 || partial ? 0 : SCHED_E_NO_FIT;
}

/* The best of the gang's own nodes. The shape may use any node. */
static uint32_t best_of_own(const struct placing *p, uint32_t shape) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        const struct need *need = &p->needs[shape];
        uint32_t slot = fit_best_of(p->s, need, h->present, h->n_present);
        uint64_t least = UINT64_MAX;

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
        return slot;
}

/* One executor of a shape without per_node. */
static int place_one(struct placing *p, uint32_t shape, bool together) {
        const struct need *need = &p->needs[shape];
        uint32_t slot = SLOT_NONE;
        uint64_t room;

        if (consumables_room(p->s, need, 1, false, NULL) == 0)
                return SCHED_E_NO_FIT;
        if (has_company(p, shape)) {
                if (placing_find_candidates(p, shape, 1, &room) > 0)
                        slot = p->s->candidates[0].slot;
        } else {
                if (together && !p->limited && !need->worst &&
                    (!need->filter || need->filter->n_preferred == 0))
                        slot = best_of_own(p, shape);
                if (slot == SLOT_NONE)
                        slot = p->limited ? fit_best_of(p->s, need, p->s->universe, p->n_universe)
                                          : fit_best(p->s, need);
        }
        return slot == SLOT_NONE ? SCHED_E_NO_FIT : placing_choose(p, shape, slot, 1);
}

/* Hides a node where the shape has reached its limit. */
static void hide_if_full(struct placing *p, uint32_t shape, uint32_t slot) {
        if (slot < p->s->n && placing_allowance(p, shape, slot) == 0)
                node_hide(p->s, slot);
}

int place_singly(struct placing *p, uint32_t shape, uint32_t wanted, bool together) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        int r = 0;

        for (size_t i = 0; i < h->n_present; i++)
                hide_if_full(p, shape, h->present[i]);
        for (uint32_t k = 0; k < wanted && r == 0; k++) {
                r = place_one(p, shape, together);
                if (r == 0)
                        hide_if_full(p, shape, p->choices[p->n - 1].slot);
        }
        return r;
}
