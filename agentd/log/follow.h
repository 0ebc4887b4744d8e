/* SPDX-License-Identifier: Apache-2.0 */
/* The reading half of tail.h, without threads: one open journal, the executors that are followed, and what
 * has been read of each and not been delivered yet. All functions belong to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/log/tail.h"

struct follow;

struct delivery {
        struct tail_chunk *chunks; /* their data belongs to the delivery */
        size_t n;
        char *state; /* of the state file once this has been taken */
};
void delivery_free(struct delivery *d);

int follow_new(const char *directory, const char *sync_socket, const char *state, struct follow **ret);
void follow_free(struct follow *f);

/* since_real: when, on the wall clock, it had not printed anything yet. */
int follow_add(struct follow *f, const struct executor_id *id, uint64_t since_real);
void follow_ended(struct follow *f, const struct executor_id *id, uint64_t now);

/* Reads on, for a bounded number of entries. Returns whether there is more to read at once. now is
 * later than that of every follow_ended() before. */
bool follow_read(struct follow *f, uint64_t now);
int follow_fd(const struct follow *f); /* to poll for input; -1: none yet */

/* Whether as much is held as may be; nothing more is read then. */
bool follow_full(const struct follow *f);

/* Whether a delivery should be made: something is held for long enough, or too much is, or somebody has
 * ended. */
bool follow_due(const struct follow *f, uint64_t now);

/* When follow_read() or follow_due() want to be called at the latest, besides when the descriptor has news.
 */
uint64_t follow_next(const struct follow *f);

/* Everything held, as one delivery; *ret is NULL when that is nothing. Executors that have ended and are
 * complete are forgotten. */
int follow_deliver(struct follow *f, struct delivery **ret);

/* The delivery has been taken: its state is written and it is released. */
void follow_taken(struct follow *f, struct delivery *d);

/* Pure part of skipping ahead: appends size bytes to what is held of an executor (of which *offset is the
 * position of the first byte), keeping the last TAIL_BYTES. */
struct log_buffer;
int follow_keep(struct log_buffer *b, uint64_t *offset, const char *data, size_t size);
