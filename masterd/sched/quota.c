/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and guarantees. A limit is never exceeded. What a pool is guaranteed others may use while it lies
 * idle, with jobs that can be preempted. Invariant: what all pools hold by jobs that cannot, or are still
 * guaranteed beyond it, is not more than the cluster has. */
#include "lib/base/cleanup.h"
#include "masterd/sched/policy-internal.h"

void amount_add(struct policy_amount *a, const struct policy_amount *b, int sign) {
        if (sign > 0)
                *a = (struct policy_amount){ a->cpu_milli + b->cpu_milli, a->memory + b->memory,
                                             a->gpus + b->gpus };
        else /* more than there is can only be an error of the owner, which must not make a share enormous */
                *a = (struct policy_amount){ a->cpu_milli - MIN(a->cpu_milli, b->cpu_milli),
                                             a->memory - MIN(a->memory, b->memory),
                                             a->gpus - MIN(a->gpus, b->gpus) };
}

bool amount_within(const struct policy_amount *a, const struct policy_amount *b,
                   const struct policy_amount *limit) {
        return (limit->cpu_milli == UINT64_MAX || a->cpu_milli + b->cpu_milli <= limit->cpu_milli) &&
               (limit->memory == UINT64_MAX || a->memory + b->memory <= limit->memory) &&
               (limit->gpus == UINT32_MAX || (uint64_t)a->gpus + b->gpus <= limit->gpus);
}

struct policy_amount gang_amount(const struct sched_gang *g, bool most) {
        struct policy_amount a = {};

        for (size_t i = 0; i < g->n_shapes; i++) {
                const struct sched_shape *h = g->shapes + i;
                uint64_t k = most ? h->max : h->min;
                a.cpu_milli += h->cpu_milli * k;
                a.memory += h->memory * k;
                a.gpus += (uint32_t)(h->gpus * k);
        }
        return a;
}

/* What a pool may count on: what it holds for certain, or its guarantee if that is more. */
static struct policy_amount claim_of(const struct pool *pool, const struct policy_amount *firm,
                                     const struct policy_amount *more) {
        const struct policy_amount *g = &pool->conf.guarantee;

        return (struct policy_amount){ MAX(g->cpu_milli, firm->cpu_milli + more->cpu_milli),
                                       MAX(g->memory, firm->memory + more->memory),
                                       MAX(g->gpus, firm->gpus + more->gpus) };
}

/* Whether the pools could still have what they are guaranteed if the entry, which nobody may stop, had that
 * much more (alone: and nobody else held anything). What takes none of a resource does not have to answer for
 * it. */
static bool guarantees_hold(const struct policy *p, const struct entry *e, const struct policy_amount *a,
                            bool alone, bool owed) {
        static const struct policy_amount none;
        const struct pool *own = p->pools + e->job.pool;
        const struct policy_amount *mine = alone ? &e->held : &own->ledger.firm;
        struct policy_amount claims = {};

        if (amount_within(mine, a, &own->conf.guarantee)) /* it uses what is its own */
                return true;
        if (owed)
                return false;
        for (uint32_t i = 0; i < p->n_pools; i++) {
                const struct pool *pool = p->pools + i;
                struct policy_amount c = pool == own
                                                 ? claim_of(pool, mine, a)
                                                 : claim_of(pool, alone ? &none : &pool->ledger.firm, &none);
                amount_add(&claims, &c, 1);
        }
        return (a->cpu_milli == 0 || claims.cpu_milli <= p->total.cpu_milli) &&
               (a->memory == 0 || claims.memory <= p->total.memory) &&
               (a->gpus == 0 || claims.gpus <= p->total.gpus);
}

static bool anybody_guaranteed(const struct policy *p) {
        for (uint32_t i = 0; i < p->n_pools; i++) {
                const struct policy_amount *g = &p->pools[i].conf.guarantee;
                if (g->cpu_milli > 0 || g->memory > 0 || g->gpus > 0)
                        return true;
        }
        return false;
}

enum policy_reason quota_check(const struct policy *p, const struct entry *e, const struct policy_amount *a,
                               bool firm_owed) {
        const struct pool *pool = p->pools + e->job.pool;
        const struct policy_amount *limit = &pool->conf.limit, *user_limit = &pool->conf.user_limit;
        bool guaranteed = anybody_guaranteed(p);

        if (!amount_within(&e->held, a, limit) || !amount_within(&e->held, a, user_limit))
                return POLICY_NEVER;
        if (!e->job.preemptible && guaranteed && !guarantees_hold(p, e, a, true, false))
                return POLICY_NEVER;
        if (!amount_within(&e->account->ledger.held, a, user_limit))
                return POLICY_USER_LIMIT;
        if (!amount_within(&pool->ledger.held, a, limit))
                return POLICY_POOL_LIMIT;
        if (!e->job.preemptible && guaranteed && !guarantees_hold(p, e, a, false, firm_owed))
                return POLICY_GUARANTEED;
        return POLICY_FREE;
}

static uint32_t above(const struct policy_amount *a, const struct policy_amount *b,
                      const struct policy_amount *limit) {
        return (limit->cpu_milli != UINT64_MAX && a->cpu_milli + b->cpu_milli > limit->cpu_milli ? SCHED_CPU
                                                                                                 : 0u) |
               (limit->memory != UINT64_MAX && a->memory + b->memory > limit->memory ? SCHED_MEMORY : 0u) |
               (limit->gpus != UINT32_MAX && (uint64_t)a->gpus + b->gpus > limit->gpus ? SCHED_GPUS : 0u);
}

uint32_t quota_lacking(const struct policy *p, const struct entry *e, const struct policy_amount *a) {
        const struct pool *pool = p->pools + e->job.pool;

        return above(&pool->ledger.held, a, &pool->conf.limit) |
               above(&e->account->ledger.held, a, &pool->conf.user_limit);
}

void quota_shrink(const struct policy *p, const struct entry *e, struct sched_shape *shapes, size_t n) {
        struct sched_gang g = { shapes, n };
        struct policy_amount a = gang_amount(&g, true);

        if (quota_check(p, e, &a, false) == POLICY_FREE)
                return;
        /* Those named last give way first: the most of each that goes, with min of those behind it. */
        for (size_t i = n; i-- > 0;) {
                uint32_t low = shapes[i].min, high = shapes[i].max;
                while (low < high) {
                        uint32_t step = shapes[i].per_node ?: 1, middle = low + (high - low + 1) / 2;
                        middle += (step - (middle - shapes[i].min) % step) % step;
                        if (middle <= low || middle > high)
                                break;
                        shapes[i].max = middle;
                        a = gang_amount(&g, true);
                        if (quota_check(p, e, &a, false) == POLICY_FREE)
                                low = middle;
                        else
                                high = middle - step;
                }
                shapes[i].max = MAX(low, 1u);
                if (low == 0) { /* none of it: max has to be something, so there is nowhere to go */
                        shapes[i].restricted = true;
                        shapes[i].n_allowed = 0;
                        continue;
                }
                a = gang_amount(&g, true);
                if (quota_check(p, e, &a, false) == POLICY_FREE)
                        return;
        }
}
