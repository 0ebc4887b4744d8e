/* SPDX-License-Identifier: Apache-2.0 */
/* Who is next. A band (user in a pool, priority) is a tree by time of submission; a pass joins the first ones
 * of all bands in two heaps, users inside their pool and pools, so that it never sorts all that wait.
 * Invariant: in a band the first one has the highest priority also with aging, for it waits longest. */
#include <assert.h>
#include <errno.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/policy-internal.h"

/* ---- the tree of a band: a treap, whose chances are a hash of the id ---- */

static uint64_t chance(const struct entry *e) {
        uint64_t z = e->job.id + UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static bool before(const struct entry *a, const struct entry *b) {
        return a->job.submitted != b->job.submitted ? a->job.submitted < b->job.submitted
                                                    : a->job.id < b->job.id;
}

/* Puts child where e hangs. */
static void replace_child(struct band *b, struct entry *e, struct entry *child) {
        if (!e->parent)
                b->root = child;
        else if (e->parent->left == e)
                e->parent->left = child;
        else
                e->parent->right = child;
        if (child)
                child->parent = e->parent;
}

/* Turns e over its parent. */
static void rotate_up(struct band *b, struct entry *e) {
        struct entry *up = e->parent;

        replace_child(b, up, e);
        if (up->left == e) {
                up->left = e->right;
                if (e->right)
                        e->right->parent = up;
                e->right = up;
        } else {
                up->right = e->left;
                if (e->left)
                        e->left->parent = up;
                e->left = up;
        }
        up->parent = e;
}

static struct entry *leftmost(struct entry *e) {
        while (e && e->left)
                e = e->left;
        return e;
}

static struct entry *next_of(struct entry *e) {
        if (e->right)
                return leftmost(e->right);
        while (e->parent && e->parent->right == e)
                e = e->parent;
        return e->parent;
}

static void tree_insert(struct band *b, struct entry *e) {
        struct entry **at = &b->root, *parent = NULL;

        while (*at) {
                parent = *at;
                at = before(e, parent) ? &parent->left : &parent->right;
        }
        *at = e;
        e->parent = parent;
        e->left = e->right = NULL;
        while (e->parent && chance(e) < chance(e->parent))
                rotate_up(b, e);
}

static void tree_remove(struct band *b, struct entry *e) {
        while (e->left && e->right)
                rotate_up(b, chance(e->left) < chance(e->right) ? e->left : e->right);
        replace_child(b, e, e->left ?: e->right);
        e->left = e->right = e->parent = NULL;
}

/* ---- bands ---- */

static int band_get(struct account *a, int32_t priority, struct band **ret) {
        uint32_t low = 0, high = a->n_bands;
        struct band **bigger, *b;

        while (low < high) {
                uint32_t middle = (low + high) / 2;
                if (a->bands[middle]->priority > priority)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low < a->n_bands && a->bands[low]->priority == priority) {
                *ret = a->bands[low];
                return 0;
        }
        b = calloc(1, sizeof(*b));
        bigger = b ? reallocarray(a->bands, a->n_bands + 1, sizeof(struct band *)) : NULL;
        if (!bigger) {
                free(b);
                return -ENOMEM;
        }
        a->bands = bigger;
        for (uint32_t i = a->n_bands++; i > low; i--)
                a->bands[i] = a->bands[i - 1];
        b->priority = priority;
        a->bands[low] = b;
        a->first = 0;
        *ret = b;
        return 0;
}

int order_insert(struct entry *e) {
        struct band *b = NULL;
        int r;

        assert(!e->band);
        r = band_get(e->account, e->job.priority, &b);
        if (r < 0)
                return r;
        tree_insert(b, e);
        e->band = b;
        return 0;
}

void order_remove(struct entry *e) {
        if (!e->band)
                return;
        if (e->band->cursor == e)
                e->band->cursor = next_of(e);
        tree_remove(e->band, e);
        e->band = NULL;
}

/* ---- passes ---- */

/* The first one of a user, or of a pool with all of its users. The user of the least rank is next. */
struct stream {
        int64_t level;
        double rank;
        uint64_t since, tie;
        struct account *account; /* of a user */
        struct stream *users;    /* of a pool: a heap */
        uint32_t n_users;
};

static bool sooner(const struct stream *a, const struct stream *b) {
        if (a->level != b->level)
                return a->level > b->level;
        if (a->rank != b->rank)
                return a->rank < b->rank;
        return a->since != b->since ? a->since < b->since : a->tie < b->tie;
}

static void sift_down(struct stream *heap, uint32_t n, uint32_t i) {
        struct stream moved = heap[i];

        for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
                child += child + 1 < n && sooner(heap + child + 1, heap + child);
                if (!sooner(heap + child, &moved))
                        break;
                heap[i] = heap[child];
        }
        heap[i] = moved;
}

static void make_heap(struct stream *heap, uint32_t n) {
        for (uint32_t i = n / 2; i-- > 0;)
                sift_down(heap, n, i);
}

/* The band of the account whose first one is next; NULL: all are through. Bands are sorted by priority, so it
 * is among those that aging can lift that far. */
static struct band *account_band(const struct policy *p, struct account *a, uint64_t now) {
        struct band *best = NULL;
        int64_t level = 0;

        while (a->first < a->n_bands && !a->bands[a->first]->cursor)
                a->first++;
        for (uint32_t i = a->first; i < a->n_bands; i++) {
                struct band *b = a->bands[i];
                int64_t l;
                if (best && (int64_t)b->priority + p->conf.aging_max < level)
                        break;
                if (!b->cursor)
                        continue;
                l = entry_level(p, b->cursor, now);
                if (!best || l > level || (l == level && before(b->cursor, best->cursor))) {
                        best = b;
                        level = l;
                }
        }
        return best;
}

/* What the stream of a user is now. false: nobody is left. */
static bool user_stream(const struct cursor *c, struct stream *s) {
        struct account *a = s->account;
        struct band *b = account_band(c->policy, a, c->now);

        if (!b)
                return false;
        s->level = entry_level(c->policy, b->cursor, c->now);
        s->rank = ledger_rank(c->policy, &a->ledger, 1, c->now);
        s->since = b->cursor->job.submitted;
        s->tie = a->key.user;
        return true;
}

static void pool_stream(const struct cursor *c, struct stream *s) {
        uint32_t index = s->users->account->key.pool;
        const struct pool *pool = c->policy->pools + index;

        s->level = s->users->level;
        s->rank = ledger_rank(c->policy, &pool->ledger, pool->conf.weight, c->now);
        s->since = s->users->since;
        s->tie = index;
}

int cursor_begin(struct policy *p, uint64_t now, struct cursor *ret) {
        struct cursor c = { .policy = p, .now = now };
        struct stream *next;

        c.pools = calloc(p->n_pools, sizeof(*c.pools));
        c.users = calloc(HASH_COUNT(p->accounts) + 1, sizeof(*c.users));
        if (!c.pools || !c.users) {
                cursor_done(&c);
                return -ENOMEM;
        }
        next = c.users;
        for (uint32_t i = 0; i < p->n_pools; i++) { /* room for its users: by how many there are */
                c.pools[i].users = next;
                next += p->pools[i].accounts;
        }
        for (struct account *a = p->accounts; a; a = a->hh.next) {
                struct stream *pool = c.pools + a->key.pool, *s = pool->users + pool->n_users;
                for (uint32_t i = 0; i < a->n_bands; i++)
                        a->bands[i]->cursor = leftmost(a->bands[i]->root);
                a->first = 0;
                *s = (struct stream){ .account = a };
                pool->n_users += user_stream(&c, s);
        }
        for (uint32_t i = 0; i < p->n_pools; i++) {
                struct stream *pool = c.pools + c.n_pools;
                if (c.pools[i].n_users == 0)
                        continue;
                *pool = c.pools[i];
                make_heap(pool->users, pool->n_users);
                pool_stream(&c, pool);
                c.n_pools++;
        }
        make_heap(c.pools, c.n_pools);
        *ret = c;
        return 0;
}

/* Brings the heaps in order after the first one was taken, and may have got something. */
static void settle_last(struct cursor *c) {
        struct stream *pool = c->pools;

        if (!user_stream(c, pool->users))
                pool->users[0] = pool->users[--pool->n_users];
        if (pool->n_users > 0) {
                sift_down(pool->users, pool->n_users, 0);
                pool_stream(c, pool);
        } else
                *pool = c->pools[--c->n_pools];
        if (c->n_pools > 0)
                sift_down(c->pools, c->n_pools, 0);
}

struct entry *cursor_next(struct cursor *c) {
        struct band *b;
        struct entry *e;

        if (c->taken)
                settle_last(c);
        c->taken = false;
        if (c->n_pools == 0)
                return NULL;
        b = account_band(c->policy, c->pools->users->account, c->now);
        if (!b) { /* those that were left have gone meanwhile */
                c->taken = true;
                return cursor_next(c);
        }
        e = b->cursor;
        b->cursor = next_of(e);
        c->taken = true;
        return e;
}

void cursor_done(struct cursor *c) {
        free(c->pools);
        free(c->users);
        *c = (struct cursor){};
}
