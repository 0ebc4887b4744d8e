/* SPDX-License-Identifier: Apache-2.0 */
/* Bookkeeping of held tasks. Invariants: a task counts no further than it has been delivered, here or to an
 * earlier attempt (tasks_resume()); the list of todo has the TODO ones, in the order of their grants, those
 * given back first; a task that somebody is busy with is not freed. */
#include "executor/feed/tasks.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"

#define LEFT_UNKNOWN (1u << 20) /* a stream's size is guessed, for the window */

void tasks_init(struct tasks *s, enum ack_mode ack) {
        *s = (struct tasks){ .ack = ack };
}

static void task_free(struct task *t) {
        free((char *)t->grant.path);
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

struct task *tasks_find(struct tasks *s, uint64_t id) {
        struct task *t = NULL;

        HASH_FIND(hh, s->by_id, &id, sizeof(id), t);
        return t && t->place != PLACE_DROPPED ? t : NULL;
}

static bool is_held(enum task_place p) {
        return p == PLACE_TODO || p == PLACE_HELD || p == PLACE_SETTLED;
}

void tasks_report(struct tasks *s, struct task *t, bool urgent) {
        if (t->place == PLACE_DROPPED)
                return;
        s->urgent |= urgent;
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
        s->urgent &= s->dirty != NULL;
}

static void set_left(struct tasks *s, struct task *t, uint64_t left) {
        bool unread = left > 0;

        assert(s->unread_bytes >= t->left && s->n_unread >= t->unread);
        s->unread_bytes += left - t->left;
        s->n_unread += (size_t)unread - (size_t)t->unread;
        t->left = left;
        t->unread = unread;
}

static void forget_task(struct tasks *s, struct task *t);

/* From one place to another, with all that is counted of them. first: ahead of those that wait. */
static void move(struct tasks *s, struct task *t, enum task_place place, bool first) {
        assert(!is_held(t->place) || s->n_held > 0);
        if (t->place == PLACE_TODO) {
                assert(s->n_todo > 0);
                DL_DELETE(s->todo, t);
                s->n_todo--;
        } else if (!is_held(t->place) && t->place != PLACE_DROPPED) {
                assert(s->n_over > 0);
                DL_DELETE(s->over, t);
                s->n_over--;
        }
        s->n_held += (size_t)is_held(place) - (size_t)is_held(t->place);
        t->place = place;
        if (place == PLACE_TODO) {
                if (first)
                        DL_PREPEND(s->todo, t);
                else
                        DL_APPEND(s->todo, t);
                s->n_todo++;
        } else if (!is_held(place) && place != PLACE_DROPPED) {
                DL_APPEND(s->over, t);
                s->n_over++;
        }
        if (!is_held(place))
                set_left(s, t, 0);
        /* The oldest goes, unless nobody has been told of it yet. */
        if (s->n_over > TASKS_OVER_MAX && !s->over->dirty && !s->over->busy)
                forget_task(s, s->over);
}

static void forget_task(struct tasks *s, struct task *t) {
        clear_dirty(s, t);
        if (t->place != PLACE_DROPPED)
                move(s, t, PLACE_DROPPED, false);
        if (t->busy)
                return; /* by whoever is */
        HASH_DEL(s->by_id, t);
        task_free(t);
}

static uint64_t size_left(const struct task *t) {
        uint64_t end = t->grant.end != TASK_TO_END ? t->grant.end : t->grant.size;

        if (end == TASK_TO_END || end == TASK_UNKNOWN)
                return LEFT_UNKNOWN;
        return MAX(UINT64_C(1), end > t->from.position ? end - t->from.position : 0);
}

static void wait_again(struct tasks *s, struct task *t, bool first) {
        t->whole = false;
        move(s, t, PLACE_TODO, first);
        set_left(s, t, size_left(t));
}

/* A further attempt at one that has failed here: behind what its trainer has of it. */
static int grant_again(struct tasks *s, struct task *t, const struct task_grant *grant) {
        struct task_mark mark = { grant->offset, grant->skip };
        char *path = strdup(grant->path);

        if (!path)
                return -ENOMEM;
        free((char *)t->grant.path);
        t->grant = *grant;
        t->grant.path = path;
        free(t->error);
        t->error = NULL;
        if (mark_before(t->acked, mark))
                t->acked = mark;
        if (t->broken || mark_before(t->delivered, t->acked)) {
                t->holder = NULL;
                t->from = t->acked;
        } else
                t->from = t->delivered;
        if (mark_before(t->delivered, t->acked))
                t->delivered = t->acked;
        t->broken = false;
        t->end = grant->end;
        t->told = false;
        clear_dirty(s, t);
        wait_again(s, t, false);
        return 1;
}

int tasks_grant(struct tasks *s, const struct task_grant *grant) {
        _cleanup_(task_free_p) struct task *t = NULL;
        struct task *old = NULL;

        HASH_FIND(hh, s->by_id, &grant->task, sizeof(grant->task), old);
        if (old && old->place == PLACE_FAILED && !old->busy)
                return grant_again(s, old, grant);
        if (old && (old->place == PLACE_DROPPED || old->place == PLACE_RETURNED) && !old->busy)
                forget_task(s, old);
        else if (old) {
                tasks_report(s, old, true);
                return 0;
        }
        if (s->n_held >= TASKS_HELD_MAX)
                return -ENOBUFS;
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->grant = *grant;
        t->grant.path = strdup(grant->path);
        if (!t->grant.path)
                return -ENOMEM;
        t->id = grant->task;
        t->granted = t->from = t->delivered = t->acked = (struct task_mark){ grant->offset, grant->skip };
        t->read = grant->offset;
        t->end = grant->end;
        t->place = PLACE_TODO;
        HASH_ADD(hh, s->by_id, id, sizeof(t->id), t);
        DL_APPEND(s->todo, t);
        s->n_todo++;
        s->n_held++;
        set_left(s, t, size_left(t));
        t = NULL;
        return 1;
}

/* ---- who delivers it ---- */

static bool may_take(const struct task *t, const void *holder) {
        return !t->holder || t->holder == holder;
}

bool tasks_may_take(const struct tasks *s, const void *holder) {
        const struct task *t;

        DL_FOREACH (s->todo, t)
                if (may_take(t, holder))
                        return true;
        return false;
}

uint64_t tasks_free(const struct tasks *s, uint64_t at_most) {
        const struct task *t;
        uint64_t n = 0;

        DL_FOREACH (s->todo, t) {
                if (n == at_most)
                        break;
                n += !t->holder;
        }
        return n;
}

bool tasks_own(const struct tasks *s, const void *holder) {
        const struct task *t;

        DL_FOREACH (s->todo, t)
                if (t->holder == holder)
                        return true;
        return false;
}

struct task *tasks_take(struct tasks *s, void *holder) {
        struct task *t;

        DL_FOREACH (s->todo, t)
                if (may_take(t, holder)) {
                        move(s, t, PLACE_HELD, false);
                        t->holder = holder;
                        return t;
                }
        return NULL;
}

static void go_back_to_acked(struct task *t) {
        t->holder = NULL;
        t->broken = false;
        t->generation++;
        t->delivered = t->from = t->acked;
}

void tasks_give_back(struct tasks *s, void *holder) {
        struct task *t, *next;

        HASH_ITER (hh, s->by_id, t, next) {
                if (t->holder != holder || t->place == PLACE_DONE || t->place == PLACE_SETTLED)
                        continue;
                go_back_to_acked(t);
                if (t->place == PLACE_HELD || t->place == PLACE_TODO) {
                        wait_again(s, t, true);
                        tasks_report(s, t, false);
                }
        }
}

void tasks_put_back(struct tasks *s, struct task *t) {
        if (t->place != PLACE_HELD)
                return;
        if (!mark_before(t->acked, t->delivered))
                t->holder = NULL;
        t->from = t->delivered;
        wait_again(s, t, true);
}

void tasks_again(struct tasks *s, struct task *t) {
        if (t->place != PLACE_HELD)
                return;
        t->from = t->delivered;
        if (mark_before(t->acked, t->delivered)) {
                wait_again(s, t, false);
                return;
        }
        t->holder = NULL;
        move(s, t, PLACE_RETURNED, false);
        tasks_report(s, t, true);
}

/* ---- how far it is ---- */

/* All of it is delivered and counts. */
static void settle_task(struct tasks *s, struct task *t) {
        bool done = s->ack != ACK_EXIT || s->succeeded;

        t->read = t->end = MAX(t->acked.position, t->end == TASK_TO_END ? 0 : t->end);
        if (done)
                t->holder = NULL;
        set_left(s, t, 0);
        move(s, t, done ? PLACE_DONE : PLACE_SETTLED, false);
        tasks_report(s, t, true);
}

static void settle_if_over(struct tasks *s, struct task *t) {
        if (t->place == PLACE_HELD && t->whole && !mark_before(t->acked, t->delivered))
                settle_task(s, t);
}

void tasks_resume(struct tasks *s, struct task *t, struct task_mark mark) {
        if (t->place != PLACE_TODO || mark_before(t->acked, t->delivered))
                return;
        if (mark.position == TASK_TO_END) {
                if (t->end != TASK_TO_END)
                        t->acked.position = MAX(t->acked.position, t->end);
                settle_task(s, t);
                return;
        }
        if (!mark_before(t->acked, mark))
                return;
        t->acked = t->delivered = t->from = mark;
        t->read = mark.position;
        set_left(s, t, size_left(t));
        tasks_report(s, t, false);
}

void tasks_begin(struct task *t, struct task_mark mark) {
        if (mark_before(t->acked, t->delivered) || !mark_before(t->acked, mark))
                return;
        t->acked = t->delivered = mark;
}

void tasks_delivered(struct tasks *s, struct task *t, struct task_mark mark) {
        if (mark_before(t->delivered, mark))
                t->delivered = mark;
}

void tasks_read(struct tasks *s, struct task *t, uint64_t position, uint64_t left) {
        if (!is_held(t->place))
                return;
        set_left(s, t, left);
        if (position <= t->read)
                return;
        s->got += position - t->read;
        t->read = position;
        tasks_report(s, t, false);
}

void tasks_set_end(struct tasks *s, struct task *t, uint64_t end) {
        /* An end that nobody knew is news: with nothing further to read there may be no other report of it.
         */
        if (t->trim_pending || (t->end == TASK_TO_END && end != TASK_TO_END)) {
                tasks_report(s, t, t->trim_pending);
                t->trim_pending = false;
        }
        t->end = end;
}

void tasks_whole(struct tasks *s, struct task *t) {
        if (t->place != PLACE_HELD)
                return;
        t->whole = true;
        if (t->read >= t->delivered.position)
                set_left(s, t, 0);
        tasks_set_end(s, t, MAX(t->delivered.position, t->end == TASK_TO_END ? 0 : t->end));
        settle_if_over(s, t);
}

int tasks_ack(struct tasks *s, struct task *t, struct task_mark mark, uint64_t records) {
        if (!is_held(t->place) && t->place != PLACE_FAILED)
                return 0; /* it is over, whoever said so */
        if (mark.position == TASK_TO_END) {
                if (!t->whole)
                        return -ERANGE;
                mark = t->delivered;
        }
        if (mark_before(t->delivered, mark))
                return -ERANGE;
        t->records += records;
        if (mark_before(t->acked, mark)) {
                t->acked = mark;
                t->read = MAX(t->read, mark.position);
                if (t->place != PLACE_FAILED)
                        tasks_report(s, t, false);
        }
        settle_if_over(s, t);
        return 0;
}

void tasks_count(struct task *t, uint64_t records) {
        t->records = MAX(t->records, records);
}

/* ---- its end ---- */

void tasks_fail(struct tasks *s, struct task *t, const char *error) {
        char *copy;

        if (!is_held(t->place))
                return;
        copy = strdup(error);
        free(t->error);
        t->error = copy;
        t->whole = false;
        if (!mark_before(t->acked, t->delivered))
                t->holder = NULL;
        move(s, t, PLACE_FAILED, false);
        /* A further attempt may come at once, and nobody may be busy with it then: see tasks_idle(). */
        if (t->busy)
                clear_dirty(s, t);
        else
                tasks_report(s, t, true);
}

void tasks_break(struct tasks *s, struct task *t, const char *error) {
        if (!is_held(t->place))
                return;
        t->generation++;
        tasks_fail(s, t, error);
        t->broken = true;
}

void tasks_drop(struct tasks *s, struct task *t) {
        forget_task(s, t);
}

void tasks_idle(struct tasks *s, struct task *t) {
        t->busy = false;
        if (t->place == PLACE_DROPPED)
                forget_task(s, t);
        else if (t->place == PLACE_FAILED && !t->told)
                tasks_report(s, t, true);
}

void tasks_finish(struct tasks *s, bool success) {
        struct task *t, *next;

        s->last = true;
        s->succeeded = success;
        if (!success)
                return;
        HASH_ITER (hh, s->by_id, t, next)
                if (t->place == PLACE_SETTLED)
                        settle_task(s, t);
}

/* ---- credits ---- */

uint32_t tasks_credits(const struct tasks *s, unsigned readers, unsigned unserved) {
        uint64_t room = 0, wanted = (uint64_t)TASKS_PREFETCH * MAX(readers, 1u);
        uint64_t window = MIN((uint64_t)TASKS_WINDOW, s->got);

        if (s->last || s->n_held >= TASKS_HELD_MAX)
                return 0;
        /* Small files come in numbers that fill the window, judged by the size of those at hand; large ones
         * singly, so that the last of them are spread over all executors. A trainer that has not shown that
         * it reads keeps them from no other. */
        if (s->n_unread > 0 && s->unread_bytes < window)
                room = (window - s->unread_bytes) / MAX(UINT64_C(1), s->unread_bytes / s->n_unread);
        if (s->n_unread < wanted)
                room = MAX(room, wanted - s->n_unread);
        room = MAX(room, (uint64_t)unserved); /* whatever the others hold */
        return (uint32_t)MIN(room, (uint64_t)TASKS_CREDITS_MAX);
}

/* ---- reports ---- */

void tasks_report_all(struct tasks *s) {
        struct task *t, *next;

        HASH_ITER (hh, s->by_id, t, next)
                if (!t->told) /* a failure counts each time it is said */
                        tasks_report(s, t, true);
}

void tasks_report_anew(struct tasks *s) {
        struct task *t;

        tasks_report_all(s);
        DL_FOREACH (s->over, t)
                if (t->place == PLACE_RETURNED)
                        tasks_report(s, t, true);
}

struct task_progress tasks_progress(const struct tasks *s, const struct task *t) {
        static const enum task_state states[_PLACE_MAX] = {
                [PLACE_DONE] = TASK_DONE,
                [PLACE_FAILED] = TASK_FAILED,
                [PLACE_RETURNED] = TASK_RETURNED,
        };
        bool counts = s->ack != ACK_EXIT || s->succeeded;
        struct task_mark acked = counts ? t->acked : t->granted;

        return (struct task_progress){
                .task = t->id,
                .read = MAX(t->read, acked.position),
                .acked = acked.position,
                .skip = acked.skip,
                .records = counts ? t->records : 0,
                .end = t->end,
                .state = (uint8_t)states[t->place],
                .error = t->place == PLACE_FAILED ? t->error ? t->error : "out of memory" : "",
        };
}

void tasks_reported(struct tasks *s, struct task *t, bool keep) {
        /* One that failed is kept while its trainer has something of it that may yet count: see
         * tasks_grant(). */
        if (!keep && !t->busy && t->place == PLACE_FAILED && !mark_before(t->acked, t->delivered))
                forget_task(s, t);
        else {
                t->told = t->place == PLACE_RETURNED || (t->place == PLACE_FAILED && !keep);
                clear_dirty(s, t);
        }
}
