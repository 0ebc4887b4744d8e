/* SPDX-License-Identifier: Apache-2.0 */
/* The task table of one job. Invariant: a task is in exactly one place, and n_place[] counts them. */
#include "masterd/data/tasks.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"

static const char *const place_names[_TASK_PLACE_MAX] = { "PENDING", "LEASED", "DONE", "FAILED" };

const char *task_place_to_string(enum task_place p) {
        return p < _TASK_PLACE_MAX ? place_names[p] : NULL;
}

void task_table_done(struct task_table *t) {
        for (size_t i = 0; i < t->n; i++) {
                free(t->tasks[i]->path);
                free(t->tasks[i]->error);
                free(t->tasks[i]);
        }
        free(t->tasks);
        *t = (struct task_table){};
}

static void enter(struct task_table *t, struct task *task, enum task_place place) {
        t->n_place[task->place]--;
        task->place = place;
        t->n_place[place]++;
}

static void leave_pending(struct task_table *t, struct task *task) {
        DL_DELETE(t->pending, task);
        task->next = task->prev = NULL;
}

static void leave_holder(struct task *task, struct task **leases) {
        if (leases && task->holder)
                DL_DELETE2(*leases, task, lease_prev, lease_next);
        task->holder = NULL;
        task->lease_prev = task->lease_next = NULL;
}

int task_add(struct task_table *t, uint32_t source, const char *path, uint64_t size, uint64_t mtime_nsec,
             uint64_t inode, struct task **ret) {
        struct task *task;

        if (t->n >= TASKS_MAX)
                return -E2BIG;
        if (t->n == t->allocated) {
                size_t want = t->allocated ? t->allocated * 2 : 64;
                struct task **bigger = reallocarray(t->tasks, want, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                t->tasks = bigger;
                t->allocated = want;
        }
        task = calloc(1, sizeof(*task));
        if (!task)
                return -ENOMEM;
        task->path = strdup(path);
        if (!task->path) {
                free(task);
                return -ENOMEM;
        }
        task->id = t->n + 1;
        task->source = source;
        task->size = size;
        task->mtime_nsec = mtime_nsec;
        task->inode = inode;
        t->tasks[t->n++] = task;
        t->bytes += size;
        t->n_place[TASK_PENDING]++;
        DL_APPEND(t->pending, task);
        *ret = task;
        return 0;
}

struct task *task_get(struct task_table *t, uint64_t id) {
        return id >= 1 && id <= t->n ? t->tasks[id - 1] : NULL;
}

void task_adopt(struct task_table *t, struct task *task, void *holder, struct task **leases) {
        if (task->place != TASK_PENDING)
                return;
        leave_pending(t, task);
        enter(t, task, TASK_LEASED);
        task->holder = holder;
        DL_APPEND2(*leases, task, lease_prev, lease_next);
}

struct task *task_lease(struct task_table *t, void *holder, struct task **leases) {
        struct task *task = t->pending;

        if (task)
                task_adopt(t, task, holder, leases);
        return task;
}

bool task_progress_update(struct task_table *t, struct task *task, uint64_t read, uint64_t acked) {
        bool changed = false;

        read = MIN(read, task->size);
        acked = MIN(acked, task->size);
        if (read > task->read) {
                t->read += read - task->read;
                task->read = read;
        }
        if (acked > task->acked) {
                t->acked += acked - task->acked;
                task->acked = acked;
                changed = true;
        }
        return changed;
}

void task_finish(struct task_table *t, struct task *task, struct task **leases) {
        if (task->place == TASK_FINISHED)
                return;
        if (task->place == TASK_PENDING)
                leave_pending(t, task);
        leave_holder(task, leases);
        task_progress_update(t, task, task->size, task->size);
        enter(t, task, TASK_FINISHED);
}

/* What was read but not acknowledged will be read again. */
static void rewind_read(struct task_table *t, struct task *task) {
        t->read -= task->read - MIN(task->acked, task->read);
        task->read = MIN(task->acked, task->read);
}

void task_return(struct task_table *t, struct task *task, struct task **leases) {
        if (task->place != TASK_LEASED)
                return;
        leave_holder(task, leases);
        rewind_read(t, task);
        enter(t, task, TASK_PENDING);
        DL_PREPEND(t->pending, task);
}

bool task_fail(struct task_table *t, struct task *task, struct task **leases, const char *error) {
        char *copy;

        if (task->place == TASK_FINISHED || task->place == TASK_GAVE_UP)
                return false; /* a late report */
        copy = strdup(error ? error : "");
        if (copy) {
                free(task->error);
                task->error = copy;
        }
        task->attempts++;
        if (task->attempts < t->max_attempts) {
                task_return(t, task, leases);
                return false;
        }
        if (task->place == TASK_PENDING)
                leave_pending(t, task);
        leave_holder(task, leases);
        enter(t, task, TASK_GAVE_UP);
        return true;
}

void task_restore(struct task_table *t, struct task *task, enum task_place place, uint64_t acked,
                  uint32_t attempts) {
        task->attempts = attempts;
        task_progress_update(t, task, acked, acked);
        if (place == TASK_FINISHED || place == TASK_GAVE_UP) {
                leave_pending(t, task);
                enter(t, task, place);
        }
}
