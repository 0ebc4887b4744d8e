/* SPDX-License-Identifier: Apache-2.0 */
/* The policy: which jobs there are, and a pass over those that wait. Invariant: nothing is placed that a
 * quota forbids, or that a job before it is owed. */
#include "masterd/sched/policy.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/pass.h"
#include "masterd/sched/plan.h"
#include "masterd/sched/policy-internal.h"

#define SECOND UINT64_C(1000000)

void policy_conf_defaults(struct policy_conf *ret) {
        *ret = (struct policy_conf){
                .half_life_usec = 7 * 24 * 3600 * SECOND,
                .aging_usec = 3600 * SECOND,
                .aging_max = 10,
                .reservations = 64,
                .replan_usec = 5 * SECOND,
                .looks = 300,
                .work = 400000,
                .min_run_usec = 60 * SECOND,
                .ahead_usec = 3600 * SECOND,
                .patience_usec = 600 * SECOND,
        };
}

int policy_new(struct sched *s, const struct policy_conf *conf, const struct policy_ops *ops, void *userdata,
               struct policy **ret) {
        static const struct policy_amount none = { UINT64_MAX, UINT64_MAX, UINT32_MAX };
        struct policy_pool pool = { .name = "default", .weight = 1, .limit = none, .user_limit = none };
        _cleanup_(policy_free_p) struct policy *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        p->sched = s;
        p->conf = *conf;
        p->ops = ops;
        p->userdata = userdata;
        r = policy_pool_set(p, &pool, NULL);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

struct policy *policy_free(struct policy *p) {
        struct account *a, *next_a;
        struct entry *e, *next_e;

        if (!p)
                return NULL;
        HASH_ITER (hh, p->entries, e, next_e) {
                entry_reserve(p, e, NULL);
                HASH_DEL(p->entries, e);
                reservation_free(e->reservation);
                free(e);
        }
        HASH_ITER (hh, p->accounts, a, next_a)
                account_drop(p, a);
        free(p->pools);
        free(p);
        return NULL;
}

void policy_configure(struct policy *p, const struct policy_conf *conf) {
        for (uint32_t i = 0; i < p->n_pools; i++)
                ledger_charge(p, &p->pools[i].ledger, p->now);
        for (struct account *a = p->accounts; a; a = a->hh.next)
                ledger_charge(p, &a->ledger, p->now);
        p->conf = *conf;
        p->changes++;
}

/* ---- jobs ---- */

struct entry *policy_entry(const struct policy *p, uint64_t id) {
        struct entry *e;

        HASH_FIND(hh, p->entries, &id, sizeof(id), e);
        return e;
}

int64_t entry_level(const struct policy *p, const struct entry *e, uint64_t now) {
        uint64_t levels = p->conf.aging_usec == 0 ? 0 : time_sub(now, e->job.submitted) / p->conf.aging_usec;

        return e->job.priority + (int64_t)MIN(levels, (uint64_t)MAX(p->conf.aging_max, 0));
}

uint64_t entry_end(const struct entry *e, uint64_t now) {
        uint64_t end = time_add(e->started ?: now, e->job.duration_usec);

        return e->leaving_by ? MIN(end, e->leaving_by) : end;
}

static void count_waiting(struct policy *p, struct entry *e, int by) {
        e->account->ledger.waiting += (uint32_t)by;
        p->pools[e->job.pool].ledger.waiting += (uint32_t)by;
}

static void count_running(struct policy *p, struct entry *e, int by) {
        e->account->ledger.running += (uint32_t)by;
        p->pools[e->job.pool].ledger.running += (uint32_t)by;
}

static int queue(struct policy *p, struct entry *e) {
        int r;

        if (e->band)
                return 0;
        r = order_insert(e);
        if (r < 0)
                return r;
        e->why = (struct policy_why){ .reason = POLICY_NOT_TRIED, .starts_by = UINT64_MAX };
        e->explained = e->failed = 0;
        e->sought = 0;
        count_waiting(p, e, 1);
        return 0;
}

void entry_reserve(struct policy *p, struct entry *e, struct reservation *r) {
        if (e->reservation && e->reservation->claim)
                p->claims--;
        reservation_free(e->reservation);
        e->reservation = r;
        p->claims += r && r->claim;
}

static void unqueue(struct policy *p, struct entry *e) {
        if (!e->band)
                return;
        entry_reserve(p, e, NULL);
        order_remove(e);
        count_waiting(p, e, -1);
}

/* It has given back all that it held. */
static void gone(struct policy *p, struct entry *e) {
        struct entry *by = e->leaving_for ? policy_entry(p, e->leaving_for) : NULL;

        if (by && by->reservation && by->reservation->claim && by->reservation->leaving > 0)
                by->reservation->leaving--;
        e->leaving_for = e->leaving_by = 0;
}

static bool valid(const struct policy *p, const struct policy_job *job) {
        return job->pool < p->n_pools && job->priority >= -POLICY_PRIORITY_MAX &&
               job->priority <= POLICY_PRIORITY_MAX;
}

int policy_job_add(struct policy *p, const struct policy_job *job) {
        struct entry *e;
        int r;

        if (!valid(p, job))
                return -EINVAL;
        if (policy_entry(p, job->id))
                return -EEXIST;
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        e->job = *job;
        r = account_get(p, job->pool, job->user, &e->account);
        if (r >= 0)
                r = queue(p, e);
        if (r < 0) {
                free(e);
                return r;
        }
        HASH_ADD(hh, p->entries, job.id, sizeof(e->job.id), e);
        return 0;
}

int policy_job_update(struct policy *p, const struct policy_job *job) {
        struct entry *e = policy_entry(p, job->id);
        struct account *a;
        bool waits, runs;
        int r;

        if (!e)
                return -ENOENT;
        if (!valid(p, job))
                return -EINVAL;
        r = account_get(p, job->pool, job->user, &a);
        if (r < 0)
                return r;
        waits = e->band;
        runs = e->held_n > 0;
        unqueue(p, e);
        entry_hold(p, e, &e->held, -1, p->now);
        count_running(p, e, runs ? -1 : 0);
        e->job = *job;
        e->account = a;
        entry_hold(p, e, &e->held, 1, p->now);
        count_running(p, e, runs);
        p->changes++;
        return waits ? queue(p, e) : 0;
}

int policy_job_wants(struct policy *p, uint64_t id) {
        struct entry *e = policy_entry(p, id);

        return e ? queue(p, e) : -ENOENT;
}

void policy_job_satisfied(struct policy *p, uint64_t id) {
        struct entry *e = policy_entry(p, id);

        if (e)
                unqueue(p, e);
}

void policy_job_runs(struct policy *p, uint64_t id, uint64_t started) {
        struct entry *e = policy_entry(p, id);

        if (!e)
                return;
        p->changes += e->started != started;
        e->started = started;
        if (started == 0 && e->held_n == 0) /* it held nothing while it was being stopped */
                gone(p, e);
}

void policy_job_leaving(struct policy *p, uint64_t id, uint64_t gone_by) {
        struct entry *e = policy_entry(p, id), *by;

        if (!e)
                return;
        e->leaving_by = MAX(gone_by, UINT64_C(1));
        p->changes++;
        by = e->leaving_for ? policy_entry(p, e->leaving_for) : NULL;
        if (by && by->reservation && by->reservation->claim && by->reservation->start < gone_by) {
                by->reservation->start = gone_by;
                by->reservation->end = time_add(gone_by, by->job.duration_usec);
        }
}

void policy_job_stays(struct policy *p, uint64_t id) {
        struct entry *e = policy_entry(p, id);

        if (!e || e->leaving_by == 0)
                return;
        gone(p, e);
        p->changes++;
}

void policy_job_remove(struct policy *p, uint64_t id) {
        struct entry *e = policy_entry(p, id);

        if (!e)
                return;
        unqueue(p, e);
        if (e->held_n > 0) { /* the owner ought to have said so */
                entry_hold(p, e, &e->held, -1, p->now);
                count_running(p, e, -1);
        }
        gone(p, e);
        HASH_DEL(p->entries, e);
        free(e);
}

void policy_held(struct policy *p, uint64_t id, const struct policy_amount *a, int sign, uint64_t now) {
        struct entry *e = policy_entry(p, id);

        if (!e || (sign < 0 && e->held_n == 0))
                return;
        p->now = MAX(p->now, now);
        entry_hold(p, e, a, sign, now);
        amount_add(&e->held, a, sign);
        if (sign > 0 && e->held_n++ == 0)
                count_running(p, e, 1);
        else if (sign < 0 && --e->held_n == 0) {
                count_running(p, e, -1);
                gone(p, e);
        }
}

uint64_t policy_passed_over(const struct policy *p) {
        return p->ahead;
}

/* ---- why ---- */

int policy_why(struct policy *p, uint64_t id, struct policy_why *ret) {
        struct entry *e = policy_entry(p, id), *at;
        struct cursor c;
        uint64_t n = 0;
        int r;

        if (!e || !e->band)
                return -ENOENT;
        r = cursor_begin(p, p->now, &c);
        if (r < 0)
                return r;
        while ((at = cursor_next(&c)) && at != e)
                n++;
        cursor_done(&c);
        *ret = e->why;
        ret->position = n;
        return 0;
}

int policy_last_why(struct policy *p, uint64_t id, struct policy_why *ret) {
        struct entry *e = policy_entry(p, id);

        if (!e || !e->band)
                return -ENOENT;
        *ret = e->why;
        ret->position = 0;
        return 0;
}

size_t policy_order(struct policy *p, uint64_t now, uint64_t *ids, size_t n) {
        struct entry *e;
        struct cursor c;
        size_t k = 0;

        if (cursor_begin(p, now, &c) < 0)
                return 0;
        while (k < n && (e = cursor_next(&c)))
                ids[k++] = e->job.id;
        cursor_done(&c);
        return k;
}

static bool same_no_fit(const struct sched_no_fit *a, const struct sched_no_fit *b) {
        return a->shape == b->shape && a->wanted == b->wanted && a->waiting == b->waiting &&
               a->fits == b->fits && a->nodes == b->nodes && a->scarce == b->scarce &&
               a->lacking == b->lacking && a->never == b->never;
}

void entry_waits(struct policy *p, struct entry *e, const struct policy_why *why) {
        const struct policy_why *old = &e->why;
        bool same = old->reason == why->reason && same_no_fit(&old->no_fit, &why->no_fit) &&
                    old->starts_by == why->starts_by && old->ahead == why->ahead &&
                    old->victims == why->victims;

        e->why = *why;
        if (!same && p->ops->waits)
                p->ops->waits(p->userdata, e->job.id, why);
}

void entry_satisfied(struct policy *p, struct entry *e) {
        unqueue(p, e);
}
