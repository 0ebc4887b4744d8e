/* SPDX-License-Identifier: Apache-2.0 */
/* The one global order in which a job's tasks are made: which source's turn it is, and which of its tasks.
 * It follows from the configuration, the listing and the steps with which people steered it, each at its
 * place; and never from when it is asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/data/listing.h"

/* What people may do to a source, beside adding it. */
enum {
        ORDER_PAUSED = 1u,  /* it has no turn until it is resumed */
        ORDER_REMOVED = 2u, /* it never has one again */
        ORDER_ENDED = 4u,   /* it brings no more, and its streams end; the order is the same */
};

/* One source, from here on. */
struct order_step {
        uint32_t source; /* one more than there were: it is added */
        uint32_t weight; /* 0: as it is. The first weight among sources without one gives the others 1 */
        uint32_t flags;
};

struct order_source {
        uint64_t made;    /* tasks, in this epoch */
        uint64_t since;   /* of these, so many before the last step: turns by weight are counted from there */
        uint64_t earlier; /* in the epochs before */
        uint32_t weight;  /* 0 with all others: none has one; 0 among others counts as 1 */
        uint32_t flags;
};

struct order_place {
        uint32_t epoch;
        uint32_t n_sources; /* that were there by then, the first ones of the listing */
        bool steered;       /* there was a step */
        struct order_source *sources;
};

struct order {
        const struct listing *listing;
        const uint32_t *weights; /* as configured; NULL: none */
        enum input_order kind;
        uint64_t seed;
        uint32_t epochs;
        struct order_place at;
        uint32_t n_known;           /* sources there is room for: the listing's */
        bool weighted;              /* any source has a weight */
        uint32_t n_removed;         /* sources */
        size_t *run_hints;          /* into the batches of each source */
        uint32_t *heap, *heap_slot; /* sources by whose turn it is; where each is in it */
};

enum order_result {
        ORDER_TASK,
        ORDER_WAITS, /* for the listing, or for who paused what is left */
        ORDER_OVER,
};

/* weights: of the listing's sources, or NULL; kept by the caller, as is the listing. */
int order_init(struct order *o, const struct listing *l, const uint32_t *weights, enum input_order kind,
               uint64_t seed, uint32_t epochs);
void order_done(struct order *o);
/* Before the listing gets more sources, so many: -ENOMEM. And once it has: they are there, and no part of the
 * order until a step adds them, one after the other. */
int order_reserve(struct order *o, size_t n_sources);
void order_extend(struct order *o);
enum order_result order_next(struct order *o, uint32_t *ret_source, uint64_t *ret_number,
                             uint32_t *ret_epoch);
/* The listing of a source went on. */
void order_listed(struct order *o, uint32_t source);

/* The order is another one from here on. O(sources). The step is valid. */
void order_steer(struct order *o, const struct order_step *step);
/* Whether the order has come to its end; and whether all that is left is of paused sources. O(1). */
bool order_over(const struct order *o);
bool order_paused(const struct order *o);

/* The place as bytes, little-endian: {u32 epoch, u32 sources, u64 made[sources]}; once it was steered,
 * sources with the highest bit, and of each {u64 made, since, earlier, u32 weight, flags}. */
#define ORDER_PLACE_STEERED (1u << 31)
size_t order_place_size(const struct order *o);
size_t order_place_max(size_t n_sources); /* of any place with so many */
void order_place_write(const struct order *o, uint8_t *to);
/* Length of the place that begins there; 0: there is none. */
size_t order_place_length(const struct order *o, const uint8_t *from, size_t size);
/* Goes there. -EUCLEAN: no place in this order, with n tasks behind it; it may be anywhere then. */
int order_place_read(struct order *o, const uint8_t *from, size_t size, uint64_t n);
/* How many tasks lie behind it, of a source and of all. */
uint64_t order_made(const struct order *o, uint32_t source);
uint64_t order_made_all(const struct order *o);
