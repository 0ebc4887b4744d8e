/* SPDX-License-Identifier: Apache-2.0 */
/* Placing now, beside what is reserved. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/plan-internal.h"

void places_give_back(struct sched *s, const struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++)
                sched_release(s, &p->items[i].hold);
}

static bool on_slot_of(const struct sched_placement *p, const struct reservation *r) {
        for (size_t i = 0; i < p->n; i++)
                for (size_t k = 0; k < r->places.n; k++)
                        if (p->items[i].hold.slot == r->places.items[k].hold.slot)
                                return true;
        return false;
}

/* It fits, but not beside the reservations: the first of them that has something where it would go. */
static uint64_t who_is_ahead(struct plan *plan, struct entry *e, const struct sched_placement *there,
                             uint64_t to) {
        uint64_t any = 0;

        for (size_t i = 0; i < plan->n_reservations; i++) {
                const struct reservation *r = plan->reservations[i];
                if (!plan_concerns(plan, r, e, plan->now, to))
                        continue;
                if (on_slot_of(there, r))
                        return r->entry->job.id;
                any = any ?: r->entry->job.id;
        }
        return any;
}

int plan_place(struct plan *plan, struct entry *e, const struct sched_gang *g, struct sched_placement *ret,
               struct sched_no_fit *ret_why, uint64_t *ret_ahead) {
        struct sched *s = plan->live;
        _cleanup_(sched_placement_done) struct sched_placement there = {};
        uint64_t grown = s->grown, to = entry_end(e, plan->now);
        int r = shadow_cast(plan, s, e, plan->now, to);
        bool shadowed = plan->shadow.n > 0;

        if (r < 0)
                return r;
        r = sched_place(s, g, ret, ret_why);
        shadow_lift(plan, s);
        *ret_ahead = 0;
        if (r == SCHED_E_NO_FIT && shadowed) {
                int q = sched_place(s, g, &there, ret_why);
                if (q == 0) {
                        places_give_back(s, &there);
                        *ret_ahead = who_is_ahead(plan, e, &there, to);
                }
                r = q < 0 ? q : r;
        }
        s->grown = grown; /* nothing came back but what was lent */
        return r;
}

static bool within_bounds(const struct sched *s, const struct sched_hold *h) {
        const struct sched_node *n = &s->nodes[h->slot];

        for (uint32_t i = 0; i < h->n_amounts; i++) {
                const struct consumable *c = &s->consumables[h->amounts[i].index];
                if (c->held > c->total)
                        return false;
        }
        return n->held.cpu_milli <= n->capacity.cpu_milli && n->held.memory <= n->capacity.memory &&
               n->held.shm <= n->capacity.shm && n->held.executors <= n->capacity.executors;
}

/* Holds all of it if that is within what there is, or nothing. */
static int take_all(struct sched *s, const struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++) {
                const struct sched_hold *h = &p->items[i].hold;
                int r = h->slot < s->n && s->nodes[h->slot].exists && s->nodes[h->slot].usable
                                ? sched_reserve(s, h)
                                : SCHED_E_NO_FIT;
                if (r == 0 && !within_bounds(s, h)) {
                        sched_release(s, h);
                        r = SCHED_E_NO_FIT;
                }
                if (r == 0)
                        continue;
                while (i-- > 0)
                        sched_release(s, &p->items[i].hold);
                return r;
        }
        return 0;
}

/* Places the gang on exactly these nodes, whichever GPUs and ports it gets there. */
static int place_on_nodes(struct sched *s, const struct sched_gang *g, const struct sched_placement *places,
                          struct sched_placement *ret) {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        _cleanup_free_ uint32_t *slots = calloc(places->n + 1, sizeof(*slots));
        struct sched_gang there = *g;
        size_t n = 0;

        if (!slots)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_shapes; i++) { /* places are by shape */
                size_t first = n;
                shapes[i] = g->shapes[i];
                for (; n < places->n && places->items[n].shape == i; n++)
                        slots[n] = places->items[n].hold.slot;
                if (n == first && shapes[i].min > 0)
                        return SCHED_E_NO_FIT;
                shapes[i].restricted = true;
                shapes[i].allowed = slots + first;
                shapes[i].n_allowed = n - first;
        }
        there.shapes = shapes;
        return sched_place(s, &there, ret, NULL);
}

int plan_place_there(struct plan *plan, struct entry *e, const struct sched_gang *g,
                     const struct sched_placement *places, struct sched_placement *ret) {
        struct sched *s = plan->live;
        uint64_t grown = s->grown;
        struct sched_placement mine;
        int r;

        r = sched_placement_copy(places, &mine);
        if (r < 0)
                return r;
        r = shadow_cast(plan, s, e, plan->now, entry_end(e, plan->now));
        if (r == 0)
                r = take_all(s, &mine);
        if (r == 0)
                *ret = mine;
        else {
                sched_placement_done(&mine);
                if (r > 0)
                        r = place_on_nodes(s, g, places, ret);
        }
        shadow_lift(plan, s);
        s->grown = grown;
        return r;
}
