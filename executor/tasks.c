/* SPDX-License-Identifier: Apache-2.0 */
/* Bookkeeping of held tasks. Invariants: the stream positions of flow and waiting ascend along the lists; a
 * task is acknowledged no further than it is read, and read no further than it is written. */
#include "executor/tasks.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"

void tasks_init(struct tasks *s, enum ack_mode ack, uint64_t pipe_size) {
        *s = (struct tasks){ .ack = ack, .pipe_size = pipe_size };
}

static void task_free(struct task *t) {
        (void)close_fd(t->fd);
        free(t->path);
        free(t->error);
        free(t);
}
DEFINE_CLEANUP(struct task *, task_free)

void tasks_done(struct tasks *s) {
        struct task *t, *next;

        HASH_ITER (hh, s->by_id, t, next) {
                HASH_DEL(s->by_id, t);
                task_free(t);
        }
}

static struct task **place_list(struct tasks *s, enum task_place place) {
        switch (place) {
        case PLACE_TODO:
                return &s->todo;
        case PLACE_FLOW:
                return &s->flow;
        case PLACE_WAITING:
                return &s->waiting;
        case PLACE_DONE:
                return &s->done;
        default:
                return NULL;
        }
}

static void mark_dirty(struct tasks *s, struct task *t) {
        if (t->dirty)
                return;
        t->dirty = true;
        DL_APPEND2(s->dirty, t, dirty_prev, dirty_next);
}

static void clear_dirty(struct tasks *s, struct task *t) {
        if (!t->dirty)
                return;
        t->dirty = false;
        DL_DELETE2(s->dirty, t, dirty_prev, dirty_next);
}

static void move(struct tasks *s, struct task *t, enum task_place place) {
        struct task **from = place_list(s, t->place), **to = place_list(s, place);

        if (from)
                DL_DELETE(*from, t);
        if (t->place == PLACE_TODO) {
                s->n_todo--;
                s->todo_bytes -= t->size - t->start - t->sent;
        }
        if (t->place == PLACE_FLOW)
                s->n_flow--;
        if (place == PLACE_FLOW)
                s->n_flow++;
        if (place == PLACE_DONE || place == PLACE_FAILED)
                s->n_held--;
        if (place == PLACE_DONE)
                s->n_done++;
        t->place = place;
        if (to)
                DL_APPEND(*to, t);
}

static void forget(struct tasks *s, struct task *t) {
        struct task **list = place_list(s, t->place);

        if (list)
                DL_DELETE(*list, t);
        if (t->place == PLACE_DONE)
                s->n_done--;
        clear_dirty(s, t);
        HASH_DEL(s->by_id, t);
        task_free(t);
}

static void finish(struct tasks *s, struct task *t) {
        t->read = t->acked = t->size;
        t->fd = close_fd(t->fd);
        move(s, t, PLACE_DONE);
        mark_dirty(s, t);
        /* The oldest goes, unless nobody has been told of it yet. */
        if (s->n_done > TASKS_DONE_MAX && !s->done->dirty)
                forget(s, s->done);
}

int tasks_grant(struct tasks *s, const struct task_grant *g) {
        _cleanup_(task_free_p) struct task *t = NULL;
        struct task *old = NULL;

        HASH_FIND(hh, s->by_id, &g->task, sizeof(g->task), old);
        if (old && old->place == PLACE_FAILED)
                forget(s, old); /* a further attempt at it */
        else if (old) {
                mark_dirty(s, old);
                return 0;
        }
        if (s->n_held >= TASKS_HELD_MAX)
                return -ENOBUFS;
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->fd = -EBADF;
        t->path = strdup(g->path);
        if (!t->path)
                return -ENOMEM;
        t->id = g->task;
        t->size = g->size;
        t->granted = t->start = t->read = t->acked = MIN(g->offset, g->size);
        t->mtime_nsec = g->mtime_nsec;
        t->inode = g->inode;
        t->place = PLACE_TODO;
        HASH_ADD(hh, s->by_id, id, sizeof(t->id), t);
        DL_APPEND(s->todo, t);
        s->n_todo++;
        s->n_held++;
        s->todo_bytes += t->size - t->start;
        t = NULL;
        return 1;
}

void tasks_opened(struct tasks *s, uint64_t start) {
        struct task *t = s->todo;

        s->todo_bytes += t->start - start;
        t->start = start;
        t->stream_start = s->written;
        t->opened = true;
}

void tasks_wrote(struct tasks *s, uint64_t n, bool file) {
        s->written += n;
        if (file) {
                s->todo->sent += n;
                s->todo_bytes -= n;
        }
}

void tasks_written(struct tasks *s) {
        struct task *t = s->todo;

        free(t->path);
        t->path = NULL;
        t->stream_end = s->written;
        if (t->stream_end == t->stream_start)
                finish(s, t); /* no byte of it can be lost */
        else
                move(s, t, PLACE_FLOW);
}

void tasks_fail(struct tasks *s, struct task *t, const char *error) {
        free(t->error);
        t->error = strdup(error);
        t->fd = close_fd(t->fd);
        move(s, t, PLACE_FAILED);
        mark_dirty(s, t);
}

/* How much of the file lies before position in the stream. */
static uint64_t file_position(const struct task *t, uint64_t position) {
        if (position <= t->stream_start)
                return t->granted;
        /* Lines before the grant's offset were handed out a second time: they do not count back. */
        position = t->start + MIN(position - t->stream_start, t->sent);
        return MAX(t->granted, position);
}

static bool update(struct tasks *s, struct task *t, uint64_t read, uint64_t acked) {
        if (read == t->read && acked == t->acked)
                return false;
        t->read = read;
        t->acked = MIN(acked, read);
        mark_dirty(s, t);
        return true;
}

static uint64_t acknowledged(const struct tasks *s) {
        switch (s->ack) {
        case ACK_READ:
                return s->consumed;
        case ACK_LAG:
                return s->consumed > s->pipe_size ? s->consumed - s->pipe_size : 0;
        default:
                return 0;
        }
}

bool tasks_consumed(struct tasks *s, uint64_t consumed, tasks_check check) {
        bool moved = consumed != s->consumed;
        uint64_t acked;
        struct task *t;

        s->consumed = consumed;
        acked = acknowledged(s);
        while ((t = s->flow) && t->stream_end <= consumed) {
                const char *error = check ? check(t) : NULL;

                moved = true;
                if (error) {
                        tasks_fail(s, t, error);
                        continue;
                }
                t->fd = close_fd(t->fd);
                move(s, t, PLACE_WAITING);
                (void)update(s, t, t->size, file_position(t, acked));
        }
        while ((t = s->waiting) && t->stream_end <= acked) {
                moved = true;
                finish(s, t);
        }
        if (s->waiting)
                moved |= update(s, s->waiting, s->waiting->size, file_position(s->waiting, acked));
        /* The one that the trainer is in; it may not be wholly written yet. */
        t = s->flow ? s->flow : s->todo;
        if (t && t->opened)
                moved |= update(s, t, file_position(t, consumed), file_position(t, acked));
        return moved;
}

void tasks_finish(struct tasks *s, bool success) {
        struct task *t;

        s->last = true;
        if (!success)
                return;
        while ((t = s->waiting))
                finish(s, t);
        t = s->flow ? s->flow : s->todo;
        if (!t || !t->opened)
                return;
        if (t->read == t->size)
                finish(s, t); /* but for the newline that we would have put behind it */
        else
                (void)update(s, t, t->read, t->read);
}

uint32_t tasks_credits(const struct tasks *s) {
        size_t unread = s->n_todo + s->n_flow;
        uint64_t bytes = s->todo_bytes + (s->written - s->consumed), room = 0;

        if (s->last || s->n_held >= TASKS_HELD_MAX)
                return 0;
        /* Small files come in numbers that fill the window, judged by the size of those at hand; large ones
         * singly, so that the last of them are spread over all executors. */
        if (unread > 0 && bytes < TASKS_WINDOW)
                room = (TASKS_WINDOW - bytes) / MAX(UINT64_C(1), bytes / unread);
        if (unread < TASKS_PREFETCH)
                room = MAX(room, (uint64_t)(TASKS_PREFETCH - unread));
        return (uint32_t)MIN(room, (uint64_t)TASKS_CREDITS_MAX);
}

void tasks_report_all(struct tasks *s) {
        struct task *t, *next;

        HASH_ITER (hh, s->by_id, t, next)
                mark_dirty(s, t);
}

bool tasks_report_one(struct tasks *s) {
        struct task *t = s->todo ? s->todo : s->flow ? s->flow : s->waiting;

        if (!s->dirty && t)
                mark_dirty(s, t);
        return s->dirty;
}

enum task_state tasks_state(const struct task *t) {
        return t->place == PLACE_DONE ? TASK_DONE : t->place == PLACE_FAILED ? TASK_FAILED : TASK_RUNNING;
}

void tasks_reported(struct tasks *s, struct task *t, bool keep) {
        if (t->place == PLACE_FAILED && !keep)
                forget(s, t);
        else
                clear_dirty(s, t);
}
