/* SPDX-License-Identifier: Apache-2.0 */
/* Pools, their users, and what they have used: cluster seconds (the dominant share of the cluster, times
 * seconds), of which half is forgotten every half-life. Invariant: a ledger is exact as of its time; charging
 * it up to another costs O(1), however long ago the last one was. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"
#include "masterd/sched/policy-internal.h"

#define USEC 1e6

void policy_measure(struct policy *p) {
        struct policy_amount t = {};

        for (uint32_t i = 0; i < p->sched->n; i++) {
                const struct sched_node *n = &p->sched->nodes[i];
                if (!n->exists)
                        continue;
                t.cpu_milli += n->capacity.cpu_milli;
                t.memory += n->capacity.memory;
                t.gpus += n->capacity.gpus;
        }
        p->total = t;
}

static double part_of(double held, double total) {
        return total > 0 ? held / total : 0;
}

/* The largest part of anything that is held. */
static double dominant(const struct policy *p, const struct policy_amount *a) {
        double cpu = part_of((double)a->cpu_milli, (double)p->total.cpu_milli),
               memory = part_of((double)a->memory, (double)p->total.memory),
               gpus = part_of((double)a->gpus, (double)p->total.gpus);

        return fmax(cpu, fmax(memory, gpus));
}

/* Usage at a later time: what was there has decayed, and so has what came since. */
static double usage_at(const struct policy *p, const struct ledger *l, uint64_t now) {
        double half = (double)p->conf.half_life_usec, t = (double)time_sub(now, l->at), kept;

        if (p->conf.half_life_usec == 0 || p->conf.half_life_usec == UINT64_MAX) /* nothing is forgotten */
                return l->usage + dominant(p, &l->held) * t / USEC;
        kept = exp2(-t / half);
        return l->usage * kept + dominant(p, &l->held) * half / M_LN2 * (1 - kept) / USEC;
}

void ledger_charge(const struct policy *p, struct ledger *l, uint64_t now) {
        if (now <= l->at)
                return;
        l->usage = usage_at(p, l, now);
        l->at = now;
}

double ledger_rank(const struct policy *p, const struct ledger *l, uint32_t weight, uint64_t now) {
        double ahead = dominant(p, &l->held) * (double)p->conf.ahead_usec / USEC;

        return (usage_at(p, l, now) + ahead) / weight;
}

struct account *account_find(const struct policy *p, uint32_t pool, uint32_t user) {
        struct account *a, key = { .key = { pool, user } };

        HASH_FIND(hh, p->accounts, &key.key, sizeof(key.key), a);
        return a;
}

void account_drop(struct policy *p, struct account *a) {
        p->pools[a->key.pool].accounts--;
        HASH_DEL(p->accounts, a);
        for (uint32_t i = 0; i < a->n_bands; i++)
                free(a->bands[i]);
        free(a->bands);
        free(a);
}

int account_get(struct policy *p, uint32_t pool, uint32_t user, struct account **ret) {
        struct account *a = account_find(p, pool, user);

        if (!a) {
                a = calloc(1, sizeof(*a));
                if (!a)
                        return -ENOMEM;
                a->key.pool = pool;
                a->key.user = user;
                a->ledger.at = p->now;
                HASH_ADD(hh, p->accounts, key, sizeof(a->key), a);
                p->pools[pool].accounts++;
        }
        *ret = a;
        return 0;
}

static void ledger_hold(const struct policy *p, struct ledger *l, const struct policy_amount *a, int sign,
                        bool firm, uint64_t now) {
        ledger_charge(p, l, now);
        amount_add(&l->held, a, sign);
        if (firm)
                amount_add(&l->firm, a, sign);
}

void entry_hold(struct policy *p, struct entry *e, const struct policy_amount *a, int sign, uint64_t now) {
        bool firm = !e->job.preemptible;

        ledger_hold(p, &e->account->ledger, a, sign, firm, now);
        ledger_hold(p, &p->pools[e->job.pool].ledger, a, sign, firm, now);
}

/* ---- pools ---- */

int policy_pool_find(const struct policy *p, const char *name, uint32_t *ret_index) {
        for (uint32_t i = 0; i < p->n_pools; i++)
                if (strcmp(p->pools[i].conf.name, name) == 0) {
                        *ret_index = i;
                        return 0;
                }
        return -ENOENT;
}

int policy_pool_set(struct policy *p, const struct policy_pool *pool, uint32_t *ret_index) {
        struct pool *bigger;
        uint32_t index;

        if (pool->name[0] == 0 || memchr(pool->name, 0, sizeof(pool->name)) == NULL || pool->weight == 0)
                return -EINVAL;
        if (policy_pool_find(p, pool->name, &index) < 0) {
                if (p->n_pools == POLICY_POOLS_MAX)
                        return -E2BIG;
                bigger = reallocarray(p->pools, p->n_pools + 1, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                p->pools = bigger;
                index = p->n_pools++;
                p->pools[index] = (struct pool){ .ledger.at = p->now };
        }
        p->pools[index].conf = *pool;
        if (ret_index)
                *ret_index = index;
        return 0;
}

/* ---- for people, and for the store ---- */

static struct policy_share share_of(struct policy *p, struct ledger *l, uint32_t pool, uint32_t user,
                                    uint64_t now) {
        ledger_charge(p, l, now);
        return (struct policy_share){ .pool = pool,
                                      .user = user,
                                      .usage = l->usage,
                                      .at = l->at,
                                      .held = l->held,
                                      .running = l->running,
                                      .waiting = l->waiting };
}

void policy_shares(struct policy *p, uint64_t now, void (*each)(void *arg, const struct policy_share *s),
                   void *arg) {
        policy_measure(p);
        for (uint32_t i = 0; i < p->n_pools; i++) {
                struct policy_share s = share_of(p, &p->pools[i].ledger, i, UINT32_MAX, now);
                each(arg, &s);
        }
        for (struct account *a = p->accounts; a; a = a->hh.next) {
                struct policy_share s = share_of(p, &a->ledger, a->key.pool, a->key.user, now);
                each(arg, &s);
        }
}

int policy_share_restore(struct policy *p, uint32_t pool, uint32_t user, double usage, uint64_t at) {
        struct ledger *l;
        struct account *a;
        int r;

        if (pool >= p->n_pools || !(usage >= 0) || !isfinite(usage))
                return -EINVAL;
        if (user == UINT32_MAX)
                l = &p->pools[pool].ledger;
        else {
                r = account_get(p, pool, user, &a);
                if (r < 0)
                        return r;
                l = &a->ledger;
        }
        l->usage = usage;
        l->at = at;
        return 0;
}
