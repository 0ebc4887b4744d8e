/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs that want to be far apart: each executor goes to a domain of the level that has fewest of the gang,
 * and there onto the best node. Invariant: so no domain has two more than another that had room. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/placing.h"

/* The candidates of a domain. */
struct bucket {
        struct candidate *heap;
        uint32_t n, have; /* executors of the gang in the domain */
};

struct buckets {
        struct bucket *buckets; /* by domain */
        struct candidate *candidates;
        struct candidate *heap; /* of domains: count is unused, slot is the domain */
        uint32_t n, n_heap;
};

static void buckets_done(struct buckets *b) {
        free(b->buckets);
        free(b->candidates);
        free(b->heap);
}

static uint32_t domain_of(const struct placing *p, uint32_t slot) {
        if (p->gang->level == SCHED_LEVEL_NODE)
                return slot;
        return p->gang->level < p->s->n_levels ? p->s->level_of[p->gang->level][slot] : 0;
}

/* How many of the gang are where. */
static void count_gang(const struct placing *p, struct buckets *b) {
        for (uint32_t i = 0; i < p->gang->n_shapes; i++) {
                const struct sched_shape *h = &p->gang->shapes[i];
                for (size_t k = 0; k < h->n_present; k++)
                        if (h->present[k] < p->s->n)
                                b->buckets[domain_of(p, h->present[k])].have++;
        }
        for (size_t i = 0; i < p->n; i++)
                b->buckets[domain_of(p, p->choices[i].slot)].have += p->choices[i].k;
}

static uint64_t bucket_key(const struct bucket *k) {
        return (uint64_t)k->have << 32 | (UINT32_MAX - k->n);
}

static int sort_out(const struct placing *p, uint32_t n, struct buckets *b) {
        const struct candidate *c = p->s->candidates;
        uint32_t begin = 0;

        b->n = p->gang->level == SCHED_LEVEL_NODE ? p->s->n : domains_count(p->s->domains) + 1;
        b->buckets = calloc(MAX(b->n, 1u), sizeof(*b->buckets));
        b->heap = calloc(MAX(b->n, 1u), sizeof(*b->heap));
        b->candidates = calloc(MAX(n, 1u), sizeof(*b->candidates));
        if (!b->buckets || !b->heap || !b->candidates)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                b->buckets[domain_of(p, c[i].slot)].n++;
        for (uint32_t d = 0; d < b->n; d++) {
                b->buckets[d].heap = b->candidates + begin;
                begin += b->buckets[d].n;
                b->buckets[d].n = 0;
        }
        for (uint32_t i = 0; i < n; i++) {
                struct bucket *k = &b->buckets[domain_of(p, c[i].slot)];
                k->heap[k->n++] = c[i];
        }
        count_gang(p, b);
        for (uint32_t d = 0; d < b->n; d++) {
                struct bucket *k = &b->buckets[d];
                candidates_heap(k->heap, k->n);
                if (k->n > 0)
                        b->heap[b->n_heap++] = (struct candidate){ bucket_key(k), d, 0 };
        }
        candidates_heap(b->heap, b->n_heap);
        return 0;
}

static void drop_top(struct candidate *heap, uint32_t *n) {
        heap[0] = heap[--*n];
        candidates_sift(heap, *n, 0);
}

int place_spread(struct placing *p, uint32_t shape, uint32_t wanted, bool partial, uint32_t *ret_placed) {
        const struct sched_shape *h = &p->gang->shapes[shape];
        _cleanup_(buckets_done) struct buckets b = {};
        uint32_t rest = consumables_room(p->s, &p->needs[shape], wanted, false, NULL), n;
        uint64_t room;
        int r;

        *ret_placed = 0;
        if (rest < wanted && !partial)
                return SCHED_E_NO_FIT;
        n = placing_find_candidates(p, shape, wanted, &room);
        if (room < wanted && !partial)
                return SCHED_E_NO_FIT;
        r = sort_out(p, n, &b);
        while (r == 0 && rest > 0 && b.n_heap > 0) {
                struct bucket *d = &b.buckets[b.heap[0].slot];
                struct candidate *top = &d->heap[0];
                uint32_t k = h->per_node > 0 ? MIN(top->count, rest) : 1;
                /* A node that is new to a shape with per_node takes all of them or none. */
                if (h->per_node > 0 && k < h->per_node && placing_count_there(p, top->slot) == 0)
                        k = 0;
                if (k > 0)
                        r = placing_choose(p, shape, top->slot, k);
                if (r < 0)
                        return r;
                rest -= k;
                *ret_placed += k;
                d->have += k;
                top->count -= k == 0 ? top->count : k;
                if (top->count == 0)
                        drop_top(d->heap, &d->n);
                b.heap[0].key = bucket_key(d);
                if (d->n == 0)
                        drop_top(b.heap, &b.n_heap);
                else
                        candidates_sift(b.heap, b.n_heap, 0);
        }
        return r < 0 ? r : rest == 0 || partial ? 0 : SCHED_E_NO_FIT;
}
