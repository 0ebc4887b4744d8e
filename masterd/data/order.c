/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of the sources, by whose turn it is; those that were not added yet are behind all. A source that is
 * listed only so far and made so far has a turn
 * too: when it comes, everybody waits, because what is listed next may belong there. */
#include "masterd/data/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/grow.h"
#include "lib/base/packed.h"
#include "masterd/data/permute.h"

static bool any_weight(const struct order *o) {
        for (size_t i = 0; i < o->at.n_sources; i++)
                if (o->at.sources[i].weight > 0)
                        return true;
        return false;
}

int order_reserve(struct order *o, size_t n) {
        return ARRAY_GROW(o->at.sources, n) < 0 || ARRAY_GROW(o->run_hints, n) < 0 ||
                               ARRAY_GROW(o->heap, n) < 0 || ARRAY_GROW(o->heap_slot, n) < 0
                       ? -ENOMEM
                       : 0;
}

void order_extend(struct order *o) {
        for (; o->n_known < o->listing->n_sources; o->n_known++) {
                o->heap[o->n_known] = o->heap_slot[o->n_known] = o->n_known;
                o->at.sources[o->n_known] = (struct order_source){};
                o->run_hints[o->n_known] = 0;
        }
}

int order_init(struct order *o, const struct listing *l, const uint32_t *weights, enum input_order kind,
               uint64_t seed, uint32_t epochs) {
        *o = (struct order){ .listing = l, .weights = weights, .kind = kind, .seed = seed, .epochs = epochs };
        if (order_reserve(o, l->n_sources ? l->n_sources : 1) < 0) {
                order_done(o);
                return -ENOMEM;
        }
        order_extend(o);
        o->at.n_sources = o->n_known;
        for (uint32_t i = 0; i < o->n_known; i++)
                o->at.sources[i].weight = weights ? weights[i] : 0;
        o->weighted = any_weight(o);
        return 0;
}

void order_done(struct order *o) {
        free(o->at.sources);
        free(o->run_hints);
        free(o->heap);
        free(o->heap_slot);
        *o = (struct order){};
}

/* ---- whose turn it is ---- */

static bool exhausted(const struct order *o, uint32_t source) {
        const struct order_source *s = o->at.sources + source;

        return s->made >= o->listing->sources[source].n_tasks || (s->flags & ORDER_REMOVED) ||
               source >= o->at.n_sources;
}

static bool by_batch(const struct order *o) {
        return o->kind == ORDER_LISTED && !o->weighted;
}

static uint64_t next_batch(const struct order *o, uint32_t source) {
        return exhausted(o, source)
                       ? o->listing->sources[source].passed
                       : listing_batch(o->listing, source, o->at.sources[source].made, o->run_hints + source);
}

/* Without weights, sources come to their ends together. */
static uint64_t share_of(const struct order *o, uint32_t source) {
        const struct order_source *s = o->at.sources + source;

        if (!o->weighted)
                return o->listing->sources[source].n_tasks - s->since;
        return s->weight ? s->weight : 1;
}

/* A source that has passed everything (Kafka's) holds nobody back: what it brings later comes behind all that
 * others have and may have. One that is paused does not either. */
enum rank {
        RANK_TURN, /* it has a task, or may have one any time */
        RANK_LATE,
        RANK_RESTS,
        RANK_PAUSED,
        RANK_OVER,
};

static enum rank rank(const struct order *o, uint32_t source) {
        const struct listed_source *s = o->listing->sources + source;

        if (exhausted(o, source) && (s->scanned || source >= o->at.n_sources))
                return RANK_OVER;
        if (o->at.sources[source].flags & ORDER_PAUSED)
                return RANK_PAUSED;
        if (exhausted(o, source))
                return s->passed == UINT64_MAX ? RANK_RESTS : RANK_TURN;
        return s->passed == UINT64_MAX && next_batch(o, source) == UINT64_MAX ? RANK_LATE : RANK_TURN;
}

/* Tasks since the last step, with the next one, in units of what b's are measured by. */
static unsigned __int128 turns_of(const struct order *o, uint32_t source, uint32_t other) {
        const struct order_source *s = o->at.sources + source;

        return (unsigned __int128)(s->made - s->since + 1) * share_of(o, other);
}

/* Whether it is the turn of a rather than of b. */
static bool before(const struct order *o, uint32_t a, uint32_t b) {
        enum rank rank_a = rank(o, a), rank_b = rank(o, b);

        if (rank_a != rank_b)
                return rank_a < rank_b;
        if (rank_a != RANK_TURN)
                return a < b;
        if (by_batch(o)) {
                uint64_t x = next_batch(o, a), y = next_batch(o, b);
                return x != y ? x < y : a < b;
        }
        unsigned __int128 x = turns_of(o, a, b), y = turns_of(o, b, a);
        return x != y ? x < y : a < b;
}

static void put_source(struct order *o, size_t slot, uint32_t source) {
        o->heap[slot] = source;
        o->heap_slot[source] = (uint32_t)slot;
}

static size_t sink(struct order *o, size_t slot) {
        size_t n = o->listing->n_sources;
        uint32_t source = o->heap[slot];

        for (;;) {
                size_t child = 2 * slot + 1;
                if (child >= n)
                        break;
                if (child + 1 < n && before(o, o->heap[child + 1], o->heap[child]))
                        child++;
                if (!before(o, o->heap[child], source))
                        break;
                put_source(o, slot, o->heap[child]);
                slot = child;
        }
        put_source(o, slot, source);
        return slot;
}

static void rise(struct order *o, size_t slot) {
        uint32_t source = o->heap[slot];

        while (slot > 0 && before(o, source, o->heap[(slot - 1) / 2])) {
                put_source(o, slot, o->heap[(slot - 1) / 2]);
                slot = (slot - 1) / 2;
        }
        put_source(o, slot, source);
}

static void rebuild(struct order *o) {
        for (size_t i = o->listing->n_sources / 2; i > 0; i--)
                (void)sink(o, i - 1);
}

void order_listed(struct order *o, uint32_t source) {
        rise(o, sink(o, o->heap_slot[source]));
}

static uint64_t number_of(const struct order *o, uint32_t source, uint64_t i) {
        if (o->kind != ORDER_SHUFFLE)
                return i;
        return permute(permute_hash(permute_hash(o->seed, source), o->at.epoch),
                       o->listing->sources[source].n_tasks, i);
}

/* All that has been listed of this epoch is made. */
static bool epoch_over(const struct order *o) {
        return rank(o, o->heap[0]) == RANK_OVER;
}

/* No epoch has another task. */
static bool nothing_left(const struct order *o) {
        if (o->at.epoch + 1 >= o->epochs || o->listing->n_tasks == 0)
                return true;
        for (uint32_t i = 0; o->n_removed > 0 && i < o->at.n_sources; i++)
                if (!(o->at.sources[i].flags & ORDER_REMOVED) && o->listing->sources[i].n_tasks > 0)
                        return false;
        return o->n_removed > 0;
}

bool order_over(const struct order *o) {
        return o->listing->n_sources == 0 || (epoch_over(o) && nothing_left(o));
}

bool order_paused(const struct order *o) {
        return o->listing->n_sources > 0 && rank(o, o->heap[0]) == RANK_PAUSED;
}

static void next_epoch(struct order *o) {
        o->at.epoch++;
        for (uint32_t i = 0; i < o->at.n_sources; i++) {
                struct order_source *s = o->at.sources + i;
                s->earlier += s->made;
                s->made = s->since = 0;
        }
        rebuild(o);
}

/* Of a permutation all has to be known. */
static bool is_listed(const struct order *o) {
        const struct listing *l = o->listing;

        for (uint32_t i = 0; l->n_scanned < l->n_sources && i < o->at.n_sources; i++)
                if (!l->sources[i].scanned)
                        return false;
        return true;
}

enum order_result order_next(struct order *o, uint32_t *ret_source, uint64_t *ret_number,
                             uint32_t *ret_epoch) {
        const struct listing *l = o->listing;
        uint32_t source;

        if (l->n_sources == 0)
                return ORDER_OVER;
        if (o->kind == ORDER_SHUFFLE && !is_listed(o))
                return ORDER_WAITS;
        if (epoch_over(o)) {
                if (nothing_left(o))
                        return ORDER_OVER;
                next_epoch(o);
        }
        source = o->heap[0];
        if (exhausted(o, source) || (o->at.sources[source].flags & ORDER_PAUSED))
                return ORDER_WAITS;
        *ret_source = source;
        *ret_number = number_of(o, source, o->at.sources[source].made);
        *ret_epoch = o->at.epoch;
        o->at.sources[source].made++;
        (void)sink(o, 0);
        return ORDER_TASK;
}

void order_steer(struct order *o, const struct order_step *step) {
        struct order_source *s = o->at.sources + step->source;

        o->at.n_sources = MAX(o->at.n_sources, step->source + 1);
        for (uint32_t i = 0; i < o->at.n_sources; i++) {
                o->at.sources[i].since = o->at.sources[i].made;
                if (step->weight > 0 && !o->weighted)
                        o->at.sources[i].weight = 1;
        }
        if (step->weight > 0)
                s->weight = step->weight;
        o->n_removed -= !!(s->flags & ORDER_REMOVED);
        s->flags = step->flags;
        o->n_removed += !!(s->flags & ORDER_REMOVED);
        o->weighted = o->weighted || step->weight > 0;
        o->at.steered = true;
        rebuild(o);
}

/* ---- places ---- */

#define PLACE_HEAD 8u
#define PLACE_PLAIN 8u /* of a source */
#define PLACE_STEERED 32u

static size_t place_size(size_t n_sources, bool steered) {
        return PLACE_HEAD + n_sources * (steered ? PLACE_STEERED : PLACE_PLAIN);
}

size_t order_place_size(const struct order *o) {
        return place_size(o->at.n_sources, o->at.steered);
}

size_t order_place_max(size_t n_sources) {
        return place_size(n_sources, true);
}

void order_place_write(const struct order *o, uint8_t *to) {
        packed_put_u32(to, o->at.epoch);
        packed_put_u32(to + 4, o->at.n_sources | (o->at.steered ? ORDER_PLACE_STEERED : 0));
        to += PLACE_HEAD;
        for (size_t i = 0; i < o->at.n_sources; i++) {
                const struct order_source *s = o->at.sources + i;
                packed_put_u64(to, s->made);
                if (o->at.steered) {
                        packed_put_u64(to + 8, s->since);
                        packed_put_u64(to + 16, s->earlier);
                        packed_put_u32(to + 24, s->weight);
                        packed_put_u32(to + 28, s->flags);
                }
                to += o->at.steered ? PLACE_STEERED : PLACE_PLAIN;
        }
}

size_t order_place_length(const struct order *o, const uint8_t *from, size_t size) {
        uint32_t head = size >= PLACE_HEAD ? packed_u32(from + 4) : 0, n = head & ~ORDER_PLACE_STEERED;
        size_t length = place_size(n, head & ORDER_PLACE_STEERED);

        return n > 0 && n <= o->n_known && length <= size ? length : 0;
}

static int read_source(struct order *o, uint32_t i, const uint8_t *from, bool steered) {
        uint64_t n_tasks = o->listing->sources[i].n_tasks, earlier;
        struct order_source *s = o->at.sources + i;

        if (__builtin_mul_overflow(o->at.epoch, n_tasks, &earlier))
                return -EUCLEAN;
        *s = (struct order_source){ .made = packed_u64(from),
                                    .earlier = earlier,
                                    .weight = o->weights ? o->weights[i] : 0 };
        if (steered) {
                s->since = packed_u64(from + 8);
                s->earlier = packed_u64(from + 16);
                s->weight = packed_u32(from + 24);
                s->flags = packed_u32(from + 28);
        }
        o->run_hints[i] = 0;
        o->n_removed += !!(s->flags & ORDER_REMOVED);
        return s->made > n_tasks || s->since > s->made || s->earlier > earlier ||
                               (s->flags & ~(ORDER_PAUSED | ORDER_REMOVED | ORDER_ENDED))
                       ? -EUCLEAN
                       : 0;
}

int order_place_read(struct order *o, const uint8_t *from, size_t size, uint64_t n) {
        size_t length = order_place_length(o, from, size);
        bool steered = length > 0 && (packed_u32(from + 4) & ORDER_PLACE_STEERED);
        uint64_t sum = 0;

        if (length == 0 || length != size)
                return -EUCLEAN;
        o->at.epoch = packed_u32(from);
        o->at.steered = steered;
        o->at.n_sources = packed_u32(from + 4) & ~ORDER_PLACE_STEERED;
        o->n_removed = 0;
        for (uint32_t i = o->at.n_sources; i < o->n_known; i++)
                o->at.sources[i] = (struct order_source){};
        if (o->at.epoch >= o->epochs || (o->at.epoch > 0 && !steered && !is_listed(o))) {
                o->at.epoch = 0;
                return -EUCLEAN;
        }
        from += PLACE_HEAD;
        for (uint32_t i = 0; i < o->at.n_sources; i++) {
                if (read_source(o, i, from, steered) < 0 ||
                    __builtin_add_overflow(sum, order_made(o, i), &sum))
                        return -EUCLEAN;
                from += steered ? PLACE_STEERED : PLACE_PLAIN;
        }
        o->weighted = any_weight(o);
        rebuild(o);
        return sum == n ? 0 : -EUCLEAN;
}

uint64_t order_made(const struct order *o, uint32_t source) {
        return o->at.sources[source].earlier + o->at.sources[source].made;
}

uint64_t order_made_all(const struct order *o) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < o->at.n_sources; i++)
                sum += order_made(o, i);
        return sum;
}
