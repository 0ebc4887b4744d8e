/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that are imagined. Invariants: what is imagined for a job is held for it in the copy until all is
 * through, so that nothing is promised twice; ledgers are as before at the end. */
#include "masterd/sched/demand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/grow.h"
#include "masterd/sched/internal.h"
#include "masterd/sched/plan.h"

#define OVER_MAX 512u /* imagined beyond what there may be, to say whether that is what it lacks */
#define SHAPES_SEEN_MAX 64u

/* So many of each shape. */
struct set {
        uint32_t n[DEMAND_SHAPES_MAX];
};

/* Imagined hosts of a shape. */
struct stock {
        uint32_t *slots;
        size_t n;
        uint32_t used, on; /* the first are for jobs; so many behind them are usable */
};

/* Moved in the ledgers, to be moved back. */
struct promise {
        struct entry *entry;
        struct policy_amount amount;
};

/* A copy of what there is, with further hosts. */
struct world {
        struct sched *sched;
        struct stock stocks[DEMAND_SHAPES_MAX];
        uint64_t work;
};

struct imagining {
        struct policy *policy;
        const struct demand_ask *ask;
        struct world world;  /* of what there may be */
        struct world beyond; /* of more than that; apart, for so many make each look dear */
        uint32_t *coming;    /* by slot of the world: number, from 1, of the one on its way; 0: it is none */
        uint32_t n_coming_slots;
        struct promise *promises;
        size_t n_promises;
        uint64_t hopeless[SHAPES_SEEN_MAX]; /* marks of gangs for which nothing would do */
        uint64_t of[SHAPES_SEEN_MAX];       /* among which shapes, as bits */
        enum demand_verdict why[SHAPES_SEEN_MAX];
        size_t n_hopeless;
        uint64_t last_mark; /* of the last gang for which hosts were found: the next may be alike */
        struct set last;    /* and which */
        uint64_t work_max;
        struct demand *demand;
};

void demand_done(struct demand *d) {
        free(d->jobs);
        free(d->coming);
        free(d->slots);
        *d = (struct demand){};
}

static void imagining_done(struct imagining *im) {
        for (size_t i = im->n_promises; i-- > 0;) {
                const struct promise *q = im->promises + i;
                amount_add(&im->policy->pools[q->entry->job.pool].ledger.held, &q->amount, -1);
                amount_add(&q->entry->account->ledger.held, &q->amount, -1);
        }
        free(im->promises);
        for (size_t i = 0; i < im->ask->n_shapes; i++) {
                free(im->world.stocks[i].slots);
                free(im->beyond.stocks[i].slots);
        }
        free(im->coming);
        sched_free(im->world.sched);
        sched_free(im->beyond.sched);
}

static int add_host(const struct imagining *im, struct world *w, uint32_t shape, bool usable,
                    uint32_t *ret_slot) {
        const struct demand_shape *h = im->ask->shapes + shape;
        int r = sched_node_add(w->sched, &h->capacity, ret_slot);

        r = r < 0 ? r : sched_node_describe(w->sched, *ret_slot, &h->description);
        if (r >= 0)
                sched_node_set_usable(w->sched, *ret_slot, usable);
        return r;
}

/* So many further hosts of the shape may be used, and no more. */
static int set_on(const struct imagining *im, struct world *w, uint32_t shape, uint32_t k) {
        struct stock *t = w->stocks + shape;

        while (t->n < (size_t)t->used + k) {
                int r = ARRAY_DOUBLE(t->slots, t->n);
                r = r < 0 ? r : add_host(im, w, shape, false, t->slots + t->n);
                if (r < 0)
                        return r;
                t->n++;
        }
        for (; t->on < k; t->on++)
                sched_node_set_usable(w->sched, t->slots[t->used + t->on], true);
        for (; t->on > k; t->on--)
                sched_node_set_usable(w->sched, t->slots[t->used + t->on - 1], false);
        return 0;
}

static int set_counts(const struct imagining *im, struct world *w, const uint32_t *counts) {
        int r = 0;

        for (uint32_t i = 0; i < im->ask->n_shapes && r >= 0; i++)
                r = set_on(im, w, i, counts[i]);
        return r;
}

/* ---- what fits ---- */

/* How many executors of the gang find places with these; kept where ret is given. */
static int try_in(const struct imagining *im, struct world *w, const struct sched_gang *g,
                  const uint32_t *counts, struct sched_placement *ret) {
        struct sched_placement p = {};
        int r = set_counts(im, w, counts), n;

        if (r < 0)
                return r;
        w->work += (uint64_t)w->sched->existing * g->n_shapes;
        r = sched_place(w->sched, g, &p, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        w->work += p.n;
        n = (int)p.n;
        if (ret) {
                *ret = p;
                return n;
        }
        for (size_t i = 0; i < p.n; i++)
                sched_release(w->sched, &p.items[i].hold);
        sched_placement_done(&p);
        return n;
}

static int try_counts(struct imagining *im, const struct sched_gang *g, const uint32_t *counts,
                      struct sched_placement *ret) {
        return try_in(im, &im->world, g, counts, ret);
}

/* The least number of one shape, beside the others as they are, with which as many find places: counts[shape]
 * becomes that. */
static int lower(struct imagining *im, const struct sched_gang *g, int wanted, uint32_t *counts,
                 uint32_t shape) {
        uint32_t low = 0, high = counts[shape];

        while (low < high) {
                int r;
                counts[shape] = low + (high - low) / 2;
                r = try_counts(im, g, counts, NULL);
                if (r < 0)
                        return r;
                if (r >= wanted)
                        high = counts[shape];
                else
                        low = counts[shape] + 1;
        }
        counts[shape] = high;
        return 0;
}

static void weigh(const struct imagining *im, const struct set *s, uint64_t *ret_cost, uint64_t *ret_n) {
        *ret_cost = *ret_n = 0;
        for (size_t i = 0; i < im->ask->n_shapes; i++) {
                *ret_cost += im->ask->shapes[i].cost * s->n[i];
                *ret_n += s->n[i];
        }
}

static bool is_better(const struct imagining *im, const struct set *a, const struct set *b) {
        uint64_t cost[2], n[2];

        weigh(im, a, &cost[0], &n[0]);
        weigh(im, b, &cost[1], &n[1]);
        return cost[0] < cost[1] || (cost[0] == cost[1] && n[0] < n[1]);
}

/* The dearest shape that is not among those that were seen. */
static uint32_t next_dearest(const struct imagining *im, uint64_t seen) {
        uint32_t best = UINT32_MAX;

        for (uint32_t i = 0; i < im->ask->n_shapes; i++)
                if (!(seen & UINT64_C(1) << i) &&
                    (best == UINT32_MAX || im->ask->shapes[i].cost >= im->ask->shapes[best].cost))
                        best = i;
        return best;
}

/* From a set that does to a cheap one that does as well. */
static int cheapest(struct imagining *im, const struct sched_gang *g, int wanted, struct set *s) {
        const struct set full = *s;
        uint64_t seen = 0;
        int r = 0;

        for (size_t i = 0; i < im->ask->n_shapes && r >= 0; i++) {
                uint32_t shape = next_dearest(im, seen);
                seen |= UINT64_C(1) << shape;
                r = lower(im, g, wanted, s->n, shape);
        }
        for (uint32_t i = 0; i < im->ask->n_shapes && r >= 0; i++) {
                struct set alone = {};
                alone.n[i] = full.n[i];
                if (full.n[i] == 0 || s->n[i] == full.n[i])
                        continue;
                r = try_counts(im, g, alone.n, NULL);
                if (r >= wanted)
                        r = lower(im, g, wanted, alone.n, i);
                else
                        continue;
                if (r >= 0 && is_better(im, &alone, s))
                        *s = alone;
        }
        return MIN(r, 0);
}

/* ---- a job ---- */

static bool serves(const struct demand_shape *h, const struct entry *e) {
        return !h->serves || h->serves(h->userdata, e->job.pool, e->job.id);
}

static uint64_t served_by(const struct imagining *im, const struct entry *e) {
        uint64_t bits = 0;

        for (size_t i = 0; i < im->ask->n_shapes; i++)
                if (serves(im->ask->shapes + i, e))
                        bits |= UINT64_C(1) << i;
        return bits;
}

/* As many of each shape as there may be and the gang could use. */
static struct set most(const struct imagining *im, const struct entry *e, uint64_t executors, bool over) {
        struct set s = {};

        for (size_t i = 0; i < im->ask->n_shapes; i++) {
                const struct demand_shape *h = im->ask->shapes + i;
                uint32_t free = h->free - MIN(h->free, im->world.stocks[i].used);
                if (serves(h, e))
                        s.n[i] = (uint32_t)MIN(executors, (uint64_t)(over ? OVER_MAX : free));
        }
        return s;
}

/* The job has these places in what is imagined. */
static int promise(struct imagining *im, struct entry *e, const struct sched_gang *g,
                   const struct sched_placement *p) {
        struct policy_amount sum = {};

        if (ARRAY_DOUBLE(im->promises, im->n_promises) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < p->n; i++) {
                const struct sched_shape *h = g->shapes + p->items[i].shape;
                uint32_t slot = p->items[i].hold.slot;
                amount_add(&sum, &(struct policy_amount){ h->cpu_milli, h->memory, h->gpus }, 1);
                if (slot < im->demand->n_slots)
                        im->demand->slots[slot] = true;
                if (slot < im->n_coming_slots && im->coming[slot] > 0 &&
                    im->demand->coming[im->coming[slot] - 1] == 0)
                        im->demand->coming[im->coming[slot] - 1] = e->job.id;
        }
        amount_add(&im->policy->pools[e->job.pool].ledger.held, &sum, 1);
        amount_add(&e->account->ledger.held, &sum, 1);
        im->promises[im->n_promises++] = (struct promise){ e, sum };
        return 0;
}

static int keep_places(struct imagining *im, struct entry *e, const struct sched_gang *g,
                       const struct set *s) {
        struct sched_placement p = {};
        int r = try_counts(im, g, s->n, &p);

        if (r > 0)
                r = promise(im, e, g, &p);
        sched_placement_done(&p);
        for (size_t i = 0; i < im->ask->n_shapes; i++) { /* they stay usable, for others as well */
                im->world.stocks[i].used += im->world.stocks[i].on;
                im->world.stocks[i].on = 0;
        }
        return r;
}

static bool was_hopeless(const struct imagining *im, const struct entry *e, enum demand_verdict *ret) {
        uint64_t of = served_by(im, e);

        for (size_t i = 0; i < im->n_hopeless; i++)
                if (im->hopeless[i] == e->mark && im->of[i] == of) {
                        *ret = im->why[i];
                        return true;
                }
        return false;
}

static void note_hopeless(struct imagining *im, const struct entry *e, enum demand_verdict verdict) {
        if (e->mark == 0 || im->n_hopeless == SHAPES_SEEN_MAX)
                return;
        im->hopeless[im->n_hopeless] = e->mark;
        im->of[im->n_hopeless] = served_by(im, e);
        im->why[im->n_hopeless++] = verdict;
}

/* What did for the last gang, where this one is alike, does for all of it: then *set is that. 0: it does not.
 */
static int try_last(struct imagining *im, const struct entry *e, const struct sched_gang *g,
                    uint64_t executors, struct set *set) {
        struct set s = im->last;
        int r;

        if (e->mark == 0 || e->mark != im->last_mark)
                return 0;
        for (size_t i = 0; i < im->ask->n_shapes; i++)
                s.n[i] = MIN(s.n[i], set->n[i]);
        r = try_counts(im, g, s.n, NULL);
        if (r < 0 || (uint64_t)r < executors)
                return MIN(r, 0);
        *set = s;
        return r;
}

/* Whether it lacks no more than numbers; where that is dear to find out, it is said without looking. */
static int look_beyond(struct imagining *im, const struct entry *e, const struct sched_gang *g,
                       uint64_t executors, enum demand_verdict *ret) {
        struct set s = most(im, e, executors, true);
        int r = 0;

        *ret = DEMAND_FULL;
        if (im->beyond.work >= im->work_max / 2)
                return 0;
        if (!im->beyond.sched)
                r = sched_clone(im->policy->sched, &im->beyond.sched);
        r = r < 0 ? r : try_in(im, &im->beyond, g, s.n, NULL);
        if (r == 0)
                *ret = DEMAND_NO_SHAPE;
        return MIN(r, 0);
}

/* The gang, with no more of it than its limits allow. */
static int look_for_hosts(struct imagining *im, struct entry *e, const struct sched_gang *g,
                          uint64_t executors, struct demand_job *ret) {
        static const struct set none;
        struct set s = most(im, e, executors, false);
        int here, all, r;

        here = try_counts(im, g, none.n, NULL);
        if (here < 0)
                return here;
        ret->verdict = DEMAND_HERE;
        if ((uint64_t)here == executors || (e->mark != 0 && was_hopeless(im, e, &ret->verdict)))
                return here > 0 ? keep_places(im, e, g, &none) : 0;
        all = try_last(im, e, g, executors, &s);
        all = all != 0 ? all : try_counts(im, g, s.n, NULL);
        if (all < 0)
                return all;
        if (all > here) {
                r = cheapest(im, g, all, &s);
                if (r < 0)
                        return r;
                im->last_mark = e->mark;
                im->last = s;
                ret->verdict = DEMAND_NEW;
                memcpy(ret->n, s.n, sizeof(ret->n));
                return keep_places(im, e, g, &s);
        }
        if (here > 0)
                return keep_places(im, e, g, &none);
        r = look_beyond(im, e, g, executors, &ret->verdict);
        if (r < 0)
                return r;
        note_hopeless(im, e, ret->verdict);
        return set_counts(im, &im->world, none.n);
}

static int look_within_limits(struct imagining *im, struct entry *e, const struct sched_gang *g, uint64_t now,
                              struct demand_job *ret) {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct sched_gang within = *g;
        struct policy_amount least = gang_amount(g, false);
        enum policy_reason reason = quota_check(im->policy, e, &least, false);
        uint64_t executors = 0;

        if (reason == POLICY_POOL_LIMIT || reason == POLICY_USER_LIMIT) {
                ret->verdict = DEMAND_LIMIT;
                return 0;
        }
        if (e->why.reason == POLICY_PREEMPTING ||
            (e->reservation && !e->reservation->guess &&
             e->reservation->start <= time_add(now, im->ask->boot_usec))) {
                ret->verdict = DEMAND_SOON;
                return 0;
        }
        memcpy(shapes, g->shapes, g->n_shapes * sizeof(*shapes));
        quota_shrink(im->policy, e, shapes, g->n_shapes);
        within.shapes = shapes;
        for (size_t i = 0; i < g->n_shapes; i++)
                executors += shapes[i].max;
        return look_for_hosts(im, e, &within, executors, ret);
}

static int look_at(struct imagining *im, struct entry *e, uint64_t now) {
        struct policy *p = im->policy;
        struct sched_gang g = {};
        int r = p->ops->gang(p->userdata, e->job.id, &g);

        if (r != 0 || g.n_shapes == 0 || g.n_shapes > SCHED_SHAPES_MAX)
                return r == -ENOMEM ? r : 0;
        if (ARRAY_DOUBLE(im->demand->jobs, im->demand->n) < 0)
                return -ENOMEM;
        im->demand->jobs[im->demand->n] = (struct demand_job){ .id = e->job.id };
        r = look_within_limits(im, e, &g, now, im->demand->jobs + im->demand->n);
        im->demand->n += r >= 0;
        return r == -EINVAL ? 0 : r; /* others may still be right */
}

static int begin_imagining(struct imagining *im) {
        const struct demand_ask *ask = im->ask;
        int r = sched_clone(im->policy->sched, &im->world.sched);

        if (r < 0)
                return r;
        im->demand->n_slots = im->world.sched->n;
        im->demand->slots = calloc(im->world.sched->n + 1, sizeof(bool));
        im->demand->coming = calloc(ask->n_coming + 1, sizeof(*im->demand->coming));
        im->n_coming_slots = im->world.sched->n + (uint32_t)ask->n_coming;
        im->coming = calloc(im->n_coming_slots + 1, sizeof(*im->coming));
        if (!im->demand->slots || !im->demand->coming || !im->coming)
                return -ENOMEM;
        for (size_t i = 0; i < ask->n_back; i++)
                sched_node_set_usable(im->world.sched, ask->back[i], true);
        for (uint32_t i = 0, slot; i < ask->n_coming; i++) {
                if (ask->coming[i] >= ask->n_shapes)
                        return -EINVAL;
                r = add_host(im, &im->world, ask->coming[i], true, &slot);
                if (r < 0)
                        return r;
                im->coming[slot] = i + 1;
        }
        return 0;
}

int policy_demand(struct policy *p, uint64_t now, const struct demand_ask *ask, struct demand *ret) {
        _cleanup_(imagining_done) struct imagining im = {
                .policy = p, .ask = ask, .work_max = ask->work > 0 ? ask->work : DEMAND_WORK, .demand = ret
        };
        struct cursor c = {};
        struct entry *e;
        int r;

        *ret = (struct demand){};
        if (ask->n_shapes > DEMAND_SHAPES_MAX)
                return -EINVAL;
        policy_measure(p);
        r = begin_imagining(&im);
        r = r < 0 ? r : cursor_begin(p, now, &c);
        while (r >= 0 && (e = cursor_next(&c))) {
                ret->cut = im.world.work >= im.work_max;
                if (ret->cut)
                        break;
                r = look_at(&im, e, now);
        }
        cursor_done(&c);
        if (r < 0)
                demand_done(ret);
        return MIN(r, 0);
}
