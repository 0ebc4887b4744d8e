/* SPDX-License-Identifier: Apache-2.0 */
/* The one global order in which a job's tasks are made: which source's turn it is, and which of its tasks.
 * It follows from the configuration and the listing, and never from when it is asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/data/listing.h"

struct order_place {
        uint32_t epoch;
        uint64_t *made; /* of each source, in this epoch */
};

struct order {
        const struct listing *listing;
        const uint32_t *weights; /* NULL: none */
        enum input_order kind;
        uint64_t seed;
        uint32_t epochs;
        struct order_place at;
        size_t *run_hints;          /* into the batches of each source */
        uint32_t *heap, *heap_slot; /* sources by whose turn it is; where each is in it */
};

enum order_result {
        ORDER_TASK,
        ORDER_WAITS, /* for the listing */
        ORDER_OVER,
};

/* weights: of the listing's sources, or NULL; kept by the caller, as is the listing. */
int order_init(struct order *o, const struct listing *l, const uint32_t *weights, enum input_order kind,
               uint64_t seed, uint32_t epochs);
void order_done(struct order *o);
enum order_result order_next(struct order *o, uint32_t *ret_source, uint64_t *ret_number,
                             uint32_t *ret_epoch);
/* The listing of a source went on. */
void order_listed(struct order *o, uint32_t source);

/* The place as bytes: {u32 epoch, u32 sources, u64 made[sources]}, little-endian. */
size_t order_place_size(const struct order *o);
void order_place_write(const struct order *o, uint8_t *to);
/* Goes there. -EUCLEAN: no place in this order, with n tasks behind it. */
int order_place_read(struct order *o, const uint8_t *from, size_t size, uint64_t n);
/* How many tasks lie behind it, of a source and of all. */
uint64_t order_made(const struct order *o, uint32_t source);
uint64_t order_made_all(const struct order *o);
