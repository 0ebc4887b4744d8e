/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that reads tasks (executor/read), one after another, into somebody's buffers. Reading may block
 * for as long as a disk or a server does; nothing else of the feeder does. All that is shared is under the
 * feeder's one lock, which the thread has whenever it calls back and gives up while it reads. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "executor/feed/tasks.h"
#include "executor/read/reader.h"

struct producer;

/* A task that has been opened: its reader, and what that stands on. */
struct opened {
        struct reader *reader;
        struct task_grant grant; /* its path is its own */
        atomic_bool cancel;
};
struct opened *opened_free(struct opened *o);

/* Called with the lock held. */
struct producer_ops {
        /* The next task, HELD; NULL: none now (producer_wake() when that may have changed). */
        struct task *(*take)(void *userdata);
        /* Where its next bytes go. 1; 0: nowhere now. NULL: nothing is read, what is no range fails. */
        int (*room)(void *userdata, uint8_t **ret, size_t *ret_size);
        /* The task ends there, as far as the reader knows (TASK_TO_END: not yet). */
        void (*end_known)(void *userdata, struct task *t, uint64_t end);
        /* They are there. */
        void (*chunk)(void *userdata, struct task *t, const struct chunk *c);
        /* NULL: everything is read. Else: the task can be delivered as a range of a file; o is the callee's,
         * and the task is nobody's (tasks_idle()). */
        void (*range)(void *userdata, struct task *t, struct opened *o, int fd, uint64_t first,
                      uint64_t last);
        /* Nothing more comes of it (not called behind range): 0, its end, with the room that there was for
         * it; -EAGAIN: nothing now; -ECANCELED: given up; other: failed, error says why. The task is nobody's
         * then (tasks_idle()). */
        void (*over)(void *userdata, struct task *t, int result, const char *error);
};

/* wake_fd: an eventfd that is written when the thread has ended. */
int producer_new(pthread_mutex_t *lock, int wake_fd, const struct input *input, bool framed,
                 const struct producer_ops *ops, void *userdata, struct producer **ret);
/* It is to end, soon; it says when it has (producer_ended()). */
void producer_stop(struct producer *p);
bool producer_ended(const struct producer *p);
/* Waits for its end, briefly if it has been told to. Without the lock. */
struct producer *producer_free(struct producer *p);
/* Both, with the lock held before and after, but not meanwhile. */
struct producer *producer_end(struct producer *p);

/* There may be a task, or room. */
void producer_wake(struct producer *p);
/* The task that it reads. NULL: none; it waits for one. */
struct task *producer_task(const struct producer *p);
/* That task is given up. */
void producer_cancel(struct producer *p);
/* That task is to end at position, as far as it has not been delivered. */
void producer_trim(struct producer *p, uint64_t position);
