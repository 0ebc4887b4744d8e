/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to go so that a job fits. Invariant: those chosen are enough, and without any one of them the job
 * would not fit; among few candidates no other choice costs less. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/pass.h"

#define EXACT_MAX 12u    /* candidates among which all choices are looked through */
#define EXACT_FITS 3000u /* tries of such a search, at most */
#define SEARCHES_MAX 64u /* jobs for which victims are looked for in a pass */
#define AGAIN_USEC UINT64_C(1000000)
#define VAIN_USEC UINT64_C(10000000) /* in calls that have much to do */

struct candidate_job {
        struct entry *entry;
        uint64_t cost;  /* at least 1, so that of two choices the one of fewer jobs is better */
        double density; /* cost by what it holds */
        bool best;      /* goes in the best choice so far */
};

struct choosing {
        struct pass *pass;
        struct entry *entry;
        const struct sched_gang *gang;
        struct candidate_job *list;
        size_t n;
        uint64_t best_cost;
        unsigned fits;
};

/* ---- who may be stopped ---- */

static bool stoppable(struct pass *pass, const struct entry *v) {
        uint64_t from = time_add(v->started, pass->policy->conf.min_run_usec);

        if (v->leaving_by || v->started == 0)
                return false;
        if (from > pass->now) {
                pass->next = MIN(pass->next, from);
                return false;
        }
        return true;
}

static bool less_important(const struct pass *pass, const struct entry *v, const struct entry *e) {
        const struct policy *p = pass->policy;

        /* Of the priorities as they were given, too: waiting helps in the queue, but stops nobody's run. */
        return v->job.priority < e->job.priority &&
               entry_level(p, v, pass->now) < entry_level(p, e, pass->now);
}

/* Whether a pool that holds that much more is within what it is guaranteed. Where it is guaranteed GPUs
 * alone, it may have the CPUs that go with them. */
static bool within_guarantee(const struct pool *pool, const struct policy_amount *more) {
        const struct policy_amount *g = &pool->conf.guarantee, *held = &pool->ledger.held;

        return (g->cpu_milli > 0 || g->memory > 0 || g->gpus > 0) &&
               (g->cpu_milli == 0 || held->cpu_milli + more->cpu_milli <= g->cpu_milli) &&
               (g->memory == 0 || held->memory + more->memory <= g->memory) &&
               (g->gpus == 0 || held->gpus + more->gpus <= g->gpus);
}

/* Of its own pool the less important ones may be stopped; of other pools those of them that hold more than
 * they are guaranteed, for what is within its own guarantee whatever their priority is. So nobody is stopped
 * for the one whom he is stopped for. */
static bool may_be_stopped_for(const struct choosing *c, const struct entry *v, bool reclaims) {
        static const struct policy_amount none;
        const struct policy *p = c->pass->policy;
        const struct pool *mine = p->pools + c->entry->job.pool, *its = p->pools + v->job.pool;
        bool less = mine->conf.preempts && less_important(c->pass, v, c->entry);

        return its == mine ? less : (less || reclaims) && !within_guarantee(its, &none);
}

static double size_of(const struct policy *p, const struct policy_amount *a) {
        double cpu = p->total.cpu_milli ? (double)a->cpu_milli / (double)p->total.cpu_milli : 0,
               memory = p->total.memory ? (double)a->memory / (double)p->total.memory : 0,
               gpus = p->total.gpus ? (double)a->gpus / (double)p->total.gpus : 0;

        return MAX(cpu, MAX(memory, gpus));
}

static bool may_preempt(const struct pass *pass, const struct entry *e, const struct sched_gang *least) {
        const struct pool *pool = pass->policy->pools + e->job.pool;
        struct policy_amount a = gang_amount(least, false);

        return pool->conf.preempts || within_guarantee(pool, &a);
}

static int collect_victims(struct choosing *c) {
        struct pass *pass = c->pass;
        const struct policy *p = pass->policy;
        struct policy_amount least = gang_amount(c->gang, false);
        bool reclaims = within_guarantee(p->pools + c->entry->job.pool, &least);
        size_t allocated = 0;

        if (!may_preempt(pass, c->entry, c->gang))
                return 0;
        pass->policy->work += HASH_COUNT(p->entries) / 2;
        for (struct entry *v = p->entries; v; v = v->hh.next) {
                struct candidate_job *bigger;
                double size;
                if (v == c->entry || v->held_n == 0 || !v->job.preemptible ||
                    !may_be_stopped_for(c, v, reclaims) || !stoppable(pass, v))
                        continue;
                if (c->n == allocated) {
                        allocated = allocated ? allocated * 2 : 16;
                        bigger = reallocarray(c->list, allocated, sizeof(*bigger));
                        if (!bigger)
                                return -ENOMEM;
                        c->list = bigger;
                }
                size = size_of(p, &v->held);
                c->list[c->n] = (struct candidate_job){ .entry = v };
                c->list[c->n].cost = time_add(p->ops->cost(p->userdata, v->job.id, pass->now), 1);
                c->list[c->n].cost = MIN(c->list[c->n].cost, UINT64_MAX >> 20); /* sums stay in range */
                c->list[c->n].density =
                        size > 0 ? (double)c->list[c->n].cost / size : (double)c->list[c->n].cost;
                c->n++;
        }
        return 0;
}

/* ---- the choice ---- */

static int set_out(struct choosing *c, size_t i, bool out) {
        return plan_out(c->pass->plan, c->list[i].entry, out);
}

/* 0: it fits as things stand. */
static int fits(struct choosing *c) {
        c->fits++;
        return plan_fits(c->pass->plan, c->entry, c->gang, NULL);
}

static void keep_best(struct choosing *c, uint64_t cost) {
        c->best_cost = cost;
        for (size_t i = 0; i < c->n; i++)
                c->list[i].best = c->list[i].entry->out;
}

/* Lets those from begin to end go on if the job fits all the same; else as many of them as can. */
static int spare(struct choosing *c, size_t begin, size_t end) {
        int r = 0;

        for (size_t i = begin; i < end && r >= 0; i++)
                r = set_out(c, i, false);
        if (r >= 0)
                r = fits(c);
        if (r <= 0)
                return r;
        for (size_t i = begin; i < end && r >= 0; i++)
                r = set_out(c, i, true);
        if (r < 0 || end - begin == 1)
                return MIN(r, 0);
        r = spare(c, begin, begin + (end - begin) / 2);
        return r < 0 ? r : spare(c, begin + (end - begin) / 2, end);
}

static int by_cost(const void *a, const void *b) {
        const struct candidate_job *x = a, *y = b;

        if (x->cost != y->cost)
                return x->cost < y->cost ? 1 : -1;
        if (x->entry->started != y->entry->started)
                return x->entry->started > y->entry->started ? 1 : -1;
        return x->entry->job.id > y->entry->job.id ? 1 : -1;
}

static int by_density(const void *a, const void *b) {
        const struct candidate_job *x = a, *y = b;

        return x->density != y->density ? (x->density < y->density ? 1 : -1) : by_cost(a, b);
}

/* All are out; spares in the order of the list, the first ones first. */
static int choose_greedily(struct choosing *c) {
        uint64_t cost = 0;
        int r = spare(c, 0, c->n);

        for (size_t i = 0; i < c->n && r >= 0;
             i++) /* where it fits is no simple matter: see that each is needed */
                if (c->list[i].entry->out)
                        r = spare(c, i, i + 1);
        for (size_t i = 0; i < c->n; i++)
                cost += c->list[i].entry->out ? c->list[i].cost : 0;
        if (r >= 0 && cost < c->best_cost)
                keep_best(c, cost);
        for (size_t i = 0; i < c->n && r >= 0; i++)
                r = set_out(c, i, true);
        return r;
}

/* The rest from i on are out. */
static int choose_exactly(struct choosing *c, size_t i, uint64_t cost) {
        int r;

        if (cost >= c->best_cost || c->fits > EXACT_FITS || policy_tired(c->pass->policy))
                return 0;
        if (i == c->n) {
                keep_best(c, cost);
                return 0;
        }
        r = set_out(c, i, false);
        if (r >= 0)
                r = fits(c);
        if (r == 0)
                r = choose_exactly(c, i + 1, cost);
        if (r >= 0)
                r = set_out(c, i, true);
        return r < 0 ? r : choose_exactly(c, i + 1, cost + c->list[i].cost);
}

/* Marks those that are to go. SCHED_E_NO_FIT: not even all are enough. */
static int placing_choose(struct choosing *c) {
        int r = 0;

        for (size_t i = 0; i < c->n && r >= 0; i++)
                r = set_out(c, i, true);
        if (r >= 0)
                r = fits(c);
        if (r != 0)
                return r;
        c->best_cost = UINT64_MAX;
        qsort(c->list, c->n, sizeof(*c->list), by_density);
        r = choose_greedily(c);
        qsort(c->list, c->n, sizeof(*c->list), by_cost);
        if (r >= 0 && !policy_tired(c->pass->policy)) /* else the first choice will do */
                r = choose_greedily(c);
        c->fits = 0;
        return r >= 0 && c->n <= EXACT_MAX ? choose_exactly(c, 0, 0) : r;
}

/* ---- carrying it out ---- */

static bool hopeless(const struct pass *pass, const struct entry *e, const struct sched_gang *g) {
        for (size_t i = 0; i < pass->n_hopeless; i++) {
                const struct hopeless *h = pass->hopeless + i;
                if (h->pool != e->job.pool || h->priority < e->job.priority)
                        continue;
                for (size_t k = 0; k < g->n_shapes; k++)
                        if (shape_takes_as_much(g->shapes + k, &h->shape))
                                return true;
        }
        return false;
}

static void give_up(struct pass *pass, const struct entry *e, const struct sched_gang *g) {
        if (g->n_shapes == 1 && shape_plain(g, g->shapes) && pass->n_hopeless < MISSES_MAX)
                pass->hopeless[pass->n_hopeless++] =
                        (struct hopeless){ g->shapes[0], e->job.pool, e->job.priority };
}

/* Counts those who are being stopped anyway as gone (or not). *ret_by: when they are. */
static int count_out(struct pass *pass, bool out, uint64_t *ret_by) {
        int r = 0;

        *ret_by = 0;
        for (struct entry *v = pass->policy->entries; v && r >= 0; v = v->hh.next)
                if (v->leaving_by && v->held_n > 0) {
                        *ret_by = MAX(*ret_by, v->leaving_by);
                        r = plan_out(pass->plan, v, out);
                }
        return r;
}

static int stop_victims(struct choosing *c, struct reservation *claim) {
        struct policy *p = c->pass->policy;
        int r = 0;

        for (size_t i = 0; i < c->n && r >= 0; i++) {
                struct entry *v = c->list[i].entry;
                if (!c->list[i].best)
                        continue;
                p->ops->preempt(p->userdata, v->job.id, c->entry->job.id);
                if (v->leaving_by == 0)
                        v->leaving_by = MAX(c->pass->now, UINT64_C(1));
                if (v->held_n > 0) {
                        v->leaving_for = c->entry->job.id;
                        claim->leaving++;
                }
                claim->victims++;
                claim->start = MAX(claim->start, v->leaving_by);
                r = plan_leaves(c->pass->plan, v);
        }
        return r;
}

/* Nobody is asked, so nobody says when they are gone. */
static int count_victims(const struct choosing *c, struct reservation *claim) {
        claim->start = UINT64_MAX;
        for (size_t i = 0; i < c->n; i++)
                claim->victims += c->list[i].best;
        return 0;
}

static int search(struct choosing *c, struct reservation **ret) {
        struct reservation *claim = NULL;
        struct pass *pass = c->pass;
        uint64_t by;
        int r = count_out(pass, true, &by), q = 0;

        if (r >= 0)
                r = fits(c); /* it is only to wait for those who go anyway */
        if (r > 0) {
                r = placing_choose(c);
                if (r > 0)
                        give_up(pass, c->entry, c->gang);
                for (size_t i = 0; i < c->n && q >= 0; i++)
                        q = set_out(c, i, r == 0 && c->list[i].best);
                r = q < 0 ? q : r;
                claim = r == 0 ? calloc(1, sizeof(*claim)) : NULL;
                if (r == 0)
                        r = claim ? plan_fits(pass->plan, c->entry, c->gang, &claim->places) : -ENOMEM;
        }
        for (size_t i = 0; i < c->n && q >= 0; i++)
                q = set_out(c, i, false);
        if (q >= 0)
                q = count_out(pass, false, &by);
        if (claim && r == 0 && q >= 0) {
                claim->entry = c->entry;
                claim->claim = true;
                claim->start = by;
                q = pass->trial ? count_victims(c, claim) : stop_victims(c, claim);
                claim->end = time_add(claim->start, c->entry->job.duration_usec);
                *ret = claim;
                return q;
        }
        reservation_free(claim);
        return q < 0 ? q : MIN(r, 0);
}

/* Whether to look for victims another time: enough was done in this call, or much was, and there were none
 * for it a moment ago. */
static bool later(struct pass *pass, const struct entry *e, const struct sched_gang *least) {
        const struct policy *p = pass->policy;
        bool vain = e->vain_at != 0 && pass->now - e->vain_at < VAIN_USEC && p->work > p->conf.work / 4;

        if (!vain && !policy_tired(p) && pass->searched < SEARCHES_MAX)
                return false;
        if (may_preempt(pass, e, least))
                pass->next = MIN(pass->next, vain              ? time_add(e->vain_at, VAIN_USEC)
                                             : policy_tired(p) ? pass->now
                                                               : time_add(pass->now, AGAIN_USEC));
        return true;
}

int preempt_for(struct pass *pass, struct entry *e, const struct sched_gang *g, struct reservation **ret) {
        struct choosing c = { .pass = pass, .entry = e, .gang = g };
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct sched_gang least;
        int r = 0;

        if (gang_least(g, shapes, &least) == 0) /* none of it has to be */
                return 0;
        c.gang = &least;
        if (hopeless(pass, e, g) || later(pass, e, &least))
                return 0;
        r = collect_victims(&c);
        if (r == 0 && c.n > 0 && !pass->plan)
                r = plan_new(pass->policy, pass->now, &pass->plan);
        if (r == 0 && c.n > 0) {
                pass->searched++;
                r = search(&c, ret);
        }
        e->vain_at = r == 0 && !*ret ? pass->now : 0;
        free(c.list);
        return r;
}
