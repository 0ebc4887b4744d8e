/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which waiting gangs are tried. Pure; time is an argument.
 *
 * Order: higher priority first, then who came first. Every pass tries the entries in this order; one that
 * does not fit holds nothing, and those behind it may start (backfill without reservation). So that a large
 * gang is not passed over for ever: once an entry has waited for its patience, it is owed: nothing behind it
 * starts that uses a resource it lacks, until it starts or leaves. What it lacks is what its last try said
 * (struct sched_no_fit.lacking). So a job that waits for GPUs does not hold up those that need none, as long
 * as CPU and memory suffice for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

int queue_new(struct queue **ret);
struct queue *queue_free(struct queue *q);
static inline void queue_free_p(struct queue **q) {
        queue_free(*q);
}

/* uses: SCHED_... bits of resources that the gang takes. -EEXIST: id waits already; -ENOMEM. */
int queue_add(struct queue *q, uint64_t id, int32_t priority, uint32_t uses, uint64_t since_boot);
/* Returns whether it was there. */
bool queue_remove(struct queue *q, uint64_t id);
size_t queue_length(const struct queue *q);
/* How many would be tried before id; -1: it does not wait. */
int64_t queue_position(const struct queue *q, uint64_t id);

/* Tries one gang. 0: it started, and leaves the queue; positive: it did not fit, *ret_lacking says what it
 * lacks; negative: an error that ends the pass. Must not change the queue. */
typedef int (*queue_try_t)(void *userdata, uint64_t id, uint32_t *ret_lacking);

/* One pass: at most depth tries. Returns how many started, or the error of a try. */
int queue_pass(struct queue *q, uint64_t now_boot, uint64_t patience_usec, unsigned depth, queue_try_t try,
               void *userdata);
