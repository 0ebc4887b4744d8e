/* SPDX-License-Identifier: Apache-2.0 */
/* How far each task has been delivered to this trainer and does not count for certain yet: what a checkpoint
 * is made of, and what primus_ack() acknowledges. Pure: time is an argument.
 *
 * A task that was delivered wholly stays in here beyond the commit that covers it, for HELD_KEEP_USEC: until
 * then its end may be known to the executor alone, and if host and master were lost together, a checkpoint
 * that had forgotten the task would let it be delivered again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/primus/client-wire.h"

#define HELD_KEEP_USEC (UINT64_C(60) * 1000000)
#define HELD_STATE_TASKS_MAX ((CLIENT_STATE_MAX - sizeof(struct client_state)) / sizeof(struct client_ack))

struct held_task {
        struct client_ack at;    /* position TASK_TO_END: wholly */
        uint64_t commit;         /* number of the first commit that covers it; 0: none */
        uint64_t committed_usec; /* when that was answered; 0: not yet */
};

struct held_list {
        struct held_task *tasks;
        size_t n, allocated;
};

struct held {
        struct held_list whole;   /* in the order in which they ended */
        struct held_list partial; /* left in the middle (streams take turns), not the one being delivered */
};

void held_done(struct held *h);
void held_clear(struct held *h);

/* The task at->task is left: wholly when at->position is TASK_TO_END. -ENOMEM. */
int held_leave(struct held *h, const struct client_ack *at);
/* It goes on at *at (or begins): its entry is taken out. *at gets the records counted so far if it goes on
 * from where it was left. */
void held_resume(struct held *h, struct client_ack *at);

/* The state of everything held and of *now (NULL: no task is being delivered). Allocated. -ENOMEM; -E2BIG:
 * more than CLIENT_STATE_MAX. */
int held_state(const struct held *h, const uint8_t job_uid[static 16], const struct client_ack *now,
               void **ret, size_t *ret_size);
/* Whether these bytes are a state: 0; -EBADMSG. */
int state_check(const void *state, size_t size);
/* Takes over what a former trainer's checkpoint says, as if committed at now_usec. State must be checked. */
int held_load(struct held *h, const void *state, size_t size, uint64_t now_usec);

/* A state is being committed under a number (from 1, rising); the executor has answered that number. */
void held_commit(struct held *h, const void *state, size_t size, uint64_t number);
void held_committed(struct held *h, uint64_t number, uint64_t now_usec);
/* Drops what was committed long enough ago. */
void held_expire(struct held *h, uint64_t now_usec);
