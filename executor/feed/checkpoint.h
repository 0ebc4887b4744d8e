/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints of a trainer (input.ack checkpoint): how far it has come in each task, in the bytes that it
 * keeps beside its own state (struct client_state). One comes with HELLO, from the checkpoint that it goes on
 * from, and holds for tasks that are granted later as well; those of COMMIT count at once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "executor/feed/tasks.h"
#include "lib/primus/client-wire.h"

struct checkpoint_entry;
struct checkpoint {
        struct checkpoint_entry *tasks;
};

void checkpoint_done(struct checkpoint *c);

/* How many bytes the state has whose first size bytes these are. 0: too few to say; -EBADMSG: it is none, or
 * larger than CLIENT_STATE_MAX. */
int64_t checkpoint_size(const void *state, size_t size);

/* Walks a whole state of the job. -EBADMSG: it is none; -EXDEV: of another job; or what handler says. */
typedef int (*checkpoint_handler)(const struct client_ack *entry, void *userdata);
int checkpoint_read(const void *state, size_t size, const uint8_t job_uid[static 16],
                    checkpoint_handler handler, void *userdata);

/* Keeps the entries of HELLO's state instead of those before. Errors as above, -ENOMEM. */
int checkpoint_load(struct checkpoint *c, const void *state, size_t size, const uint8_t job_uid[static 16]);
/* Every task that it says something of: handler gets its id, and ends the walk with a negative errno. */
int checkpoint_each(const struct checkpoint *c, int (*handler)(uint64_t task, void *userdata),
                    void *userdata);
/* What it says of a task. 1: *ret; 0: nothing. */
int checkpoint_find(const struct checkpoint *c, uint64_t task, struct task_mark *ret);
