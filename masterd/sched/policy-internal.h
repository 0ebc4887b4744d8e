/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the policy share. Invariants: an entry is in a band exactly while it wants something;
 * what a pool and an account hold is the sum over their entries. */
#pragma once

#include <uthash.h>

#include "masterd/sched/policy.h"

struct entry;
struct reservation;

/* What somebody has used, and holds now. */
struct ledger {
        double usage; /* decayed, as of .at */
        uint64_t at;
        struct policy_amount held;
        struct policy_amount firm; /* held by jobs that cannot be preempted */
        uint32_t running, waiting;
};

/* Those of an account that wait with the same priority, by arrival. */
struct band {
        int32_t priority;
        struct entry *root;
        struct entry *cursor; /* the next one of the pass */
};

/* A user in a pool. Kept once it is known: its usage counts. */
struct account {
        struct {
                uint32_t pool, user;
        } key;
        struct ledger ledger;
        struct band **bands; /* by priority, highest first */
        uint32_t n_bands;
        uint32_t first;   /* the first band that is not through, in a pass */
        uint32_t owed;    /* SCHED_... bits of a limit that are kept for one of its jobs */
        uint64_t owed_at; /* as of the pass of then */
        UT_hash_handle hh;
};

struct pool {
        struct policy_pool conf;
        struct ledger ledger;
        uint32_t accounts; /* how many */
};

/* A job. */
struct entry {
        struct policy_job job;
        struct account *account;
        struct policy_amount held;
        uint64_t held_n;      /* executors */
        uint64_t started;     /* 0: it does not run */
        uint64_t leaving_by;  /* 0: it is not being stopped */
        uint64_t leaving_for; /* the job that gets its place; 0: none */
        uint64_t mark;        /* of what it asked for last */
        uint64_t looked_at;   /* the state of the nodes, plus 1, when it was looked up whether it fits on them
                                 empty */
        bool impossible;      /* it does not */
        uint64_t explained;   /* the same, plus 1, when why.no_fit was found out; 0: it was not */
        uint64_t explained_at;
        uint64_t failed; /* sched->grown, plus 1, when it did not fit, reservations or not: nor does it before
                            something is given back */
        uint64_t sought; /* the same, plus 1, when no time was found for it */
        uint64_t sought_at;
        uint64_t vain_at; /* when nobody was found who could go for it; 0: never */
        bool out;         /* taken for gone, while victims are looked for */
        struct reservation *reservation;
        struct policy_why why;
        struct band *band; /* NULL: it does not wait */
        struct entry *left, *right, *parent;
        UT_hash_handle hh;
};

struct policy {
        struct sched *sched;
        struct policy_conf conf;
        const struct policy_ops *ops;
        void *userdata;
        struct pool *pools;
        uint32_t n_pools;
        struct account *accounts;
        struct entry *entries;
        struct policy_amount total; /* of the cluster, as of the last pass */
        uint64_t changes;           /* of what a plan is derived from, beside what is held */
        uint64_t ahead;             /* jobs of this pass that were tried so far and do not fit */
        uint32_t claims;            /* reservations for which others are being stopped */
        uint64_t now;               /* of the last pass or charge */
        uint64_t work;              /* hosts looked at in this call */
        uint32_t cuts; /* calls in a row that did not come to the end of the queue, because of what was given
                          back */
        uint64_t cut_grown; /* sched->grown after the last call */
};

/* So much was done that the rest is for the next call. When many in a row had to begin anew, each does more.
 */
static inline bool policy_tired(const struct policy *p) {
        return p->work >> (p->cuts / 32 < 32 ? p->cuts / 32 : 32) > p->conf.work;
}

struct entry *policy_entry(const struct policy *p, uint64_t id);
/* The priority with what waiting has added. */
int64_t entry_level(const struct policy *p, const struct entry *e, uint64_t now);
/* When its run ends at the latest, if it runs or is started now; UINT64_MAX: nobody knows. */
uint64_t entry_end(const struct entry *e, uint64_t now);

static inline uint64_t time_add(uint64_t a, uint64_t b) {
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
static inline uint64_t time_sub(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

/* fairshare.c: who has used how much. */
/* Makes the account if need be. */
int account_get(struct policy *p, uint32_t pool, uint32_t user, struct account **ret);
/* NULL: there is none. */
struct account *account_find(const struct policy *p, uint32_t pool, uint32_t user);
/* Forgets it; no entry may be of it any more. */
void account_drop(struct policy *p, struct account *a);
/* Usage up to now; all that held says from now on is charged later. O(1). */
void ledger_charge(const struct policy *p, struct ledger *l, uint64_t now);
/* What the ledger counts as in the order; the smaller, the sooner. */
double ledger_rank(const struct policy *p, const struct ledger *l, uint32_t weight, uint64_t now);
/* Moves an amount of the entry into (or out of) the ledgers of its pool and account. */
void entry_hold(struct policy *p, struct entry *e, const struct policy_amount *a, int sign, uint64_t now);
/* What the cluster has. */
void policy_measure(struct policy *p);

/* quota.c: limits and guarantees. */
#define POLICY_FREE ((enum policy_reason) - 1)
/* What the least of the gang takes, or the most. */
struct policy_amount gang_amount(const struct sched_gang *g, bool most);
/* POLICY_FREE, or why the entry may not have that much more now. firm_owed: what is not guaranteed to anybody
 * is kept for somebody before it. */
enum policy_reason quota_check(const struct policy *p, const struct entry *e, const struct policy_amount *a,
                               bool firm_owed);
/* The SCHED_... bits of what is short: by which it would be above a limit. */
uint32_t quota_lacking(const struct policy *p, const struct entry *e, const struct policy_amount *a);
/* Lowers max of shapes (copies of the gang's) until the whole is within the quota; their min is. */
void quota_shrink(const struct policy *p, const struct entry *e, struct sched_shape *shapes, size_t n);
/* a + b <= limit, in everything. */
bool amount_within(const struct policy_amount *a, const struct policy_amount *b,
                   const struct policy_amount *limit);
void amount_add(struct policy_amount *a, const struct policy_amount *b, int sign);

/* order.c: who is next. */
int order_insert(struct entry *e);
void order_remove(struct entry *e);
struct cursor {
        struct policy *policy;
        uint64_t now;
        struct stream *pools; /* heap */
        struct stream *users; /* heap of every pool, one behind the other */
        uint32_t n_pools;
        bool taken; /* the first one of the heaps was given out */
};
int cursor_begin(struct policy *p, uint64_t now, struct cursor *ret);
/* NULL: that was all. Entries may leave their bands meanwhile. Usage and what is held may change: it counts
 * for the next one of that user and pool. */
struct entry *cursor_next(struct cursor *c);
void cursor_done(struct cursor *c);

/* pass.c */
/* Whether nothing but amounts is asked for. */
bool shape_plain(const struct sched_gang *g, const struct sched_shape *h);
bool shape_takes_as_much(const struct sched_shape *h, const struct sched_shape *as);
/* The gang without what need not be; shapes has room for its shapes. Returns how many executors that are. */
uint64_t gang_least(const struct sched_gang *g, struct sched_shape *shapes, struct sched_gang *ret);
