/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of the sources, by whose turn it is. A source that is listed only so far and made so far has a turn
 * too: when it comes, everybody waits, because what is listed next may belong there. */
#include "masterd/data/order.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/data/permute.h"

int order_init(struct order *o, const struct listing *l, const uint32_t *weights, enum input_order kind,
               uint64_t seed, uint32_t epochs) {
        size_t n = l->n_sources ? l->n_sources : 1;

        *o = (struct order){ .listing = l, .weights = weights, .kind = kind, .seed = seed, .epochs = epochs };
        o->at.made = calloc(n, sizeof(*o->at.made));
        o->run_hints = calloc(n, sizeof(*o->run_hints));
        o->heap = calloc(n, sizeof(*o->heap));
        o->heap_slot = calloc(n, sizeof(*o->heap_slot));
        if (!o->at.made || !o->run_hints || !o->heap || !o->heap_slot) {
                order_done(o);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < l->n_sources; i++)
                o->heap[i] = o->heap_slot[i] = i;
        return 0;
}

void order_done(struct order *o) {
        free(o->at.made);
        free(o->run_hints);
        free(o->heap);
        free(o->heap_slot);
        *o = (struct order){};
}

/* ---- whose turn it is ---- */

static bool exhausted(const struct order *o, uint32_t source) {
        return o->at.made[source] >= o->listing->sources[source].n_tasks;
}

static bool by_batch(const struct order *o) {
        return o->kind == ORDER_LISTED && !o->weights;
}

static uint64_t next_batch(const struct order *o, uint32_t source) {
        return exhausted(o, source)
                       ? o->listing->sources[source].passed
                       : listing_batch(o->listing, source, o->at.made[source], o->run_hints + source);
}

static uint64_t share_of(const struct order *o, uint32_t source) {
        if (!o->weights)
                return o->listing->sources[source].n_tasks;
        return o->weights[source] ? o->weights[source] : 1;
}

/* A source that has passed everything (Kafka's) holds nobody back: what it brings later comes behind all that
 * others have and may have. */
enum rank {
        RANK_TURN, /* it has a task, or may have one any time */
        RANK_LATE,
        RANK_RESTS,
        RANK_OVER,
};

static enum rank rank(const struct order *o, uint32_t source) {
        const struct listed_source *s = o->listing->sources + source;

        if (exhausted(o, source))
                return s->scanned ? RANK_OVER : s->passed == UINT64_MAX ? RANK_RESTS : RANK_TURN;
        return s->passed == UINT64_MAX && next_batch(o, source) == UINT64_MAX ? RANK_LATE : RANK_TURN;
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
        unsigned __int128 x = (unsigned __int128)(o->at.made[a] + 1) * share_of(o, b);
        unsigned __int128 y = (unsigned __int128)(o->at.made[b] + 1) * share_of(o, a);
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

enum order_result order_next(struct order *o, uint32_t *ret_source, uint64_t *ret_number,
                             uint32_t *ret_epoch) {
        const struct listing *l = o->listing;
        uint32_t source;

        if (l->n_sources == 0)
                return ORDER_OVER;
        if (o->kind == ORDER_SHUFFLE && l->n_scanned < l->n_sources)
                return ORDER_WAITS;
        source = o->heap[0];
        if (exhausted(o, source)) {
                if (!l->sources[source].scanned)
                        return ORDER_WAITS;
                if (l->n_tasks == 0 || o->at.epoch + 1 >= o->epochs)
                        return ORDER_OVER;
                o->at.epoch++;
                memset(o->at.made, 0, l->n_sources * sizeof(*o->at.made));
                rebuild(o);
                source = o->heap[0];
        }
        *ret_source = source;
        *ret_number = number_of(o, source, o->at.made[source]);
        *ret_epoch = o->at.epoch;
        o->at.made[source]++;
        (void)sink(o, 0);
        return ORDER_TASK;
}

/* ---- places ---- */

size_t order_place_size(const struct order *o) {
        return 8 + o->listing->n_sources * 8;
}

static void write_u32(uint8_t *to, uint32_t value) {
        value = htole32(value);
        memcpy(to, &value, sizeof(value));
}

static void write_u64(uint8_t *to, uint64_t value) {
        value = htole64(value);
        memcpy(to, &value, sizeof(value));
}

static uint32_t read_u32(const uint8_t *from) {
        uint32_t value;

        memcpy(&value, from, sizeof(value));
        return le32toh(value);
}

static uint64_t read_u64(const uint8_t *from) {
        uint64_t value;

        memcpy(&value, from, sizeof(value));
        return le64toh(value);
}

void order_place_write(const struct order *o, uint8_t *to) {
        write_u32(to, o->at.epoch);
        write_u32(to + 4, (uint32_t)o->listing->n_sources);
        for (size_t i = 0; i < o->listing->n_sources; i++)
                write_u64(to + 8 + 8 * i, o->at.made[i]);
}

int order_place_read(struct order *o, const uint8_t *from, size_t size, uint64_t n) {
        const struct listing *l = o->listing;
        uint64_t sum = 0, earlier;
        uint32_t epoch;

        if (size != order_place_size(o) || read_u32(from + 4) != l->n_sources)
                return -EUCLEAN;
        epoch = read_u32(from);
        if (epoch >= o->epochs || (epoch > 0 && l->n_scanned < l->n_sources))
                return -EUCLEAN;
        for (size_t i = 0; i < l->n_sources; i++) {
                uint64_t made = read_u64(from + 8 + 8 * i);
                if (made > l->sources[i].n_tasks)
                        return -EUCLEAN;
                sum += made;
        }
        if (__builtin_mul_overflow(epoch, l->n_tasks, &earlier) || n < earlier || n - earlier != sum)
                return -EUCLEAN;
        o->at.epoch = epoch;
        for (size_t i = 0; i < l->n_sources; i++) {
                o->at.made[i] = read_u64(from + 8 + 8 * i);
                o->run_hints[i] = 0;
        }
        rebuild(o);
        return 0;
}

uint64_t order_made(const struct order *o, uint32_t source) {
        return o->at.epoch * o->listing->sources[source].n_tasks + o->at.made[source];
}

uint64_t order_made_all(const struct order *o) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < o->listing->n_sources; i++)
                sum += order_made(o, i);
        return sum;
}
