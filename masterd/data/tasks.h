/* SPDX-License-Identifier: Apache-2.0 */
/* The task table of one job: what was scanned, who holds what, how far it is. A task is one file. Pure: the
 * caller makes the records, sends the grants, and says what time it is. Order: by source, then as scanned;
 * retried tasks first. State: PENDING → LEASED → DONE | FAILED, back to PENDING when its holder goes or it
 * may be tried again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task_place {
        TASK_PENDING,
        TASK_LEASED,
        TASK_FINISHED,
        TASK_GAVE_UP,
        _TASK_PLACE_MAX
};
const char *task_place_to_string(enum task_place p);

struct task {
        uint64_t id; /* from 1, in scan order */
        uint32_t source;
        enum task_place place;
        char *path;
        uint64_t size, mtime_nsec, inode;
        uint64_t read;     /* furthest the trainer has read */
        uint64_t acked;    /* durable, cumulative: a new holder goes on from here */
        uint32_t attempts; /* failures of its own */
        char *error;
        void *holder;                         /* struct executor, while LEASED */
        struct task *lease_prev, *lease_next; /* list of the holder */
        struct task *next, *prev;             /* pending list */
};

struct task_table {
        struct task **tasks; /* by id - 1 */
        size_t n, allocated;
        struct task *pending; /* head of the queue */
        uint64_t n_place[_TASK_PLACE_MAX];
        uint64_t bytes, read, acked; /* sums over the tasks */
        uint32_t max_attempts;
};

#define TASKS_MAX 1000000u /* files of one job in this table */

void task_table_done(struct task_table *t);

/* Appends a task as PENDING. -E2BIG past TASKS_MAX. */
int task_add(struct task_table *t, uint32_t source, const char *path, uint64_t size, uint64_t mtime_nsec,
             uint64_t inode, struct task **ret);
struct task *task_get(struct task_table *t, uint64_t id); /* NULL: no such */

/* Hands the next pending task to holder, on the list *leases; NULL when none is pending. */
struct task *task_lease(struct task_table *t, void *holder, struct task **leases);
/* A lease that an executor told us about after a restart. */
void task_adopt(struct task_table *t, struct task *task, void *holder, struct task **leases);

/* Progress: offsets never go back. Returns true when the durable part changed. */
bool task_progress_update(struct task_table *t, struct task *task, uint64_t read, uint64_t acked);
void task_finish(struct task_table *t, struct task *task, struct task **leases);
/* Failed by itself: tried again (first in the queue) until max_attempts, then GAVE_UP. Takes a copy of error.
 * Returns true when it is given up by this. One that is FINISHED or given up already stays so. */
bool task_fail(struct task_table *t, struct task *task, struct task **leases, const char *error);
/* Its holder is gone: PENDING again from acked, first in the queue; no attempt is counted. */
void task_return(struct task_table *t, struct task *task, struct task **leases);

/* Sets a loaded task's state (PENDING, FINISHED or GAVE_UP). */
void task_restore(struct task_table *t, struct task *task, enum task_place place, uint64_t acked,
                  uint32_t attempts);
