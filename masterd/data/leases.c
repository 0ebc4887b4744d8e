/* SPDX-License-Identifier: Apache-2.0 */
/* Live tasks: who has which, and what they say of them. Each is in one list and in the ids; each step is
 * O(1), and the sums are right after it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/cleanup.h"
#include "masterd/data/internal.h"
#include "masterd/data/parts.h"
#include "masterd/data/permute.h"

/* ---- tasks in memory ---- */

struct work *work_new(struct data *d, uint64_t id, uint32_t source, uint32_t epoch, uint64_t file,
                      const struct data_file *what, uint64_t start, uint64_t end) {
        size_t length = strlen(what->path);
        struct work *w = calloc(1, sizeof(*w) + length + 1);

        if (!w)
                return NULL;
        memcpy(w->path, what->path, length);
        w->t = (struct task){ .id = id,
                              .source = source,
                              .epoch = epoch,
                              .file = file,
                              .what = *what,
                              .place = TASK_PENDING,
                              .start = start,
                              .end = end,
                              .read = start,
                              .acked = start,
                              .seed = permute_hash(d->config.seed, id) };
        w->t.what.path = w->path;
        w->list = _WORK_LIST_MAX;
        d->work_memory += sizeof(*w) + length + 17;
        return w;
}

void work_free(struct data *d, struct work *w) {
        if (!w)
                return;
        d->work_memory -= sizeof(*w) + strlen(w->path) + 17;
        free(w->t.error);
        free(w);
}

static struct ids *ids_of(struct data *d, uint64_t id) {
        return id & TASK_SPLIT_OFF ? &d->split_ids : &d->ids;
}

static uint64_t left(const struct task *t) {
        return t->end == TASK_TO_END ? 0 : t->end - t->acked;
}

/* What a task adds to the sums over live ones; sign 1 or -1. */
/* Up to position, of what the task is thought to have: what comes out of a compressed file is more than that,
 * and counts once its end is known. */
static uint64_t counted(const struct task *t, uint64_t position) {
        uint64_t n = position - t->start;

        return t->end == TASK_TO_END && t->what.size != TASK_UNKNOWN
                       ? MIN(n, task_length(&t->what, t->start, t->end))
                       : n;
}

void work_count(struct data *d, const struct task *t, uint64_t sign) {
        COUNT(d, t->source, live, sign);
        COUNT(d, t->source, live_bytes, sign * task_length(&t->what, t->start, t->end));
        COUNT(d, t->source, live_read, sign * counted(t, t->read));
        COUNT(d, t->source, live_acked, sign * counted(t, t->acked));
        COUNT(d, t->source, live_records, sign * t->records);
        if (t->id & TASK_SPLIT_OFF)
                d->n_split_live += sign;
        if (t->place == TASK_LEASED)
                COUNT(d, t->source, leased, sign);
        else if (t->place == TASK_GAVE_UP) {
                COUNT(d, t->source, gave_up, sign);
                COUNT(d, t->source, failed_bytes, sign * left(t));
        }
}

static void set_place(struct data *d, struct task *t, enum task_place place) {
        work_count(d, t, (uint64_t)-1);
        t->place = place;
        work_count(d, t, 1);
}

int work_add(struct data *d, struct work *w) {
        int r = ids_add(ids_of(d, w->t.id), w->t.id & ~TASK_SPLIT_OFF, w);

        if (r >= 0)
                work_count(d, &w->t, 1);
        return r;
}

static bool is_pending(enum work_list list) {
        return list == LIST_QUEUE || list == LIST_FRESH;
}

void work_put(struct data *d, struct work *w, enum work_list list) {
        struct task *t = &w->t;

        if (list == LIST_QUEUE)
                list = steer_queue(d, t);
        w->list = list;
        DL_APPEND(d->lists[list], t);
        d->n_pending += is_pending(list);
}

static void put_first(struct data *d, struct work *w) {
        struct task *t = &w->t;

        w->list = steer_queue(d, t);
        DL_PREPEND(d->lists[w->list], t);
        d->n_pending += is_pending(w->list);
}

static void take_work(struct data *d, struct work *w) {
        struct task *t = &w->t;

        assert(w->list < _WORK_LIST_MAX && (!is_pending(w->list) || d->n_pending > 0));
        DL_DELETE(d->lists[w->list], t);
        d->n_pending -= is_pending(w->list);
        w->list = _WORK_LIST_MAX;
}

void work_move(struct data *d, struct work *w, enum work_list list) {
        take_work(d, w);
        work_put(d, w, list);
}

void work_move_first(struct data *d, struct work *w) {
        take_work(d, w);
        put_first(d, w);
}

void work_forget(struct data *d, struct work *w) {
        assert(w->block && !w->has_row && !w->dirty && w->t.place == TASK_PENDING);
        work_count(d, &w->t, (uint64_t)-1);
        (void)ids_remove(&d->ids, w->t.id);
        take_work(d, w);
        work_free(d, w);
}

void work_put_fresh(struct data *d, struct work *w) {
        uint64_t number = w->t.id - 1;
        bool row = !w->block; /* which is not on disk yet */

        if (!row && number < d->n_durable) {
                work_put(d, w, LIST_QUEUE);
                return;
        }
        w->due = row || number >= d->n_flushed ? d->mark + 1 : d->mark;
        work_put(d, w, LIST_FRESH);
}

/* Pending, when what has changed about it is durable. */
static void put_when_flushed(struct data *d, struct work *w) {
        w->due = d->mark + 1;
        work_put(d, w, LIST_FRESH);
        d->urgent = true;
}

void work_changed(struct data *d, struct work *w) {
        d->state_dirty = true;
        if (w->block)
                block_gone(d, w->block, w->t.id);
        w->block = NULL;
        if (w->dirty)
                return;
        w->dirty = true;
        DL_APPEND2(d->dirty, w, dirty_prev, dirty_next);
}

int work_order(struct task *a, struct task *b) {
        /* Those split off have the highest bit; turned over, they are the lowest. */
        uint64_t x = a->id ^ TASK_SPLIT_OFF, y = b->id ^ TASK_SPLIT_OFF;

        return (x > y) - (x < y);
}

void data_grant(const struct task *t, struct task_grant *ret) {
        *ret = (struct task_grant){ .task = t->id,
                                    .start = t->start,
                                    .end = t->end,
                                    .offset = t->acked,
                                    .skip = t->skip,
                                    .size = t->what.size,
                                    .mtime_nsec = t->what.mtime_nsec,
                                    .inode = t->what.inode,
                                    .seed = t->seed,
                                    .source = t->source,
                                    .failures = t->failures,
                                    .path = t->what.path };
}

/* ---- leases ---- */

void data_durable(struct data *d, uint64_t mark) {
        struct task *t;

        if (mark == d->mark)
                d->n_durable = d->n_flushed;
        while ((t = d->lists[LIST_FRESH]) && work_of(t)->due <= mark) {
                struct work *w = work_of(t);
                take_work(d, w);
                if (t->id & TASK_SPLIT_OFF)
                        put_first(d, w);
                else
                        work_put(d, w, LIST_QUEUE);
        }
}

static void lease(struct data *d, struct work *w, void *holder, struct task **leases, uint64_t now_usec) {
        struct task *t = &w->t;

        if (!(t->id & TASK_SPLIT_OFF))
                d->n_touched = MAX(d->n_touched, t->id);
        set_place(d, t, TASK_LEASED);
        t->holder = holder;
        t->granted_usec = now_usec;
        t->told = 0;
        t->read_before = t->read;
        w->asked = false;
        work_move(d, w, LIST_LEASED);
        DL_APPEND2(*leases, t, lease_prev, lease_next);
}

static void unlease(struct task *t, struct task **leases) {
        DL_DELETE2(*leases, t, lease_prev, lease_next);
        t->lease_prev = t->lease_next = NULL;
        t->holder = NULL;
}

struct task *data_lease(struct data *d, void *holder, struct task **leases, uint64_t now_usec) {
        struct task *t;

        if (d->restoring)
                return NULL;
        while ((t = d->lists[LIST_DEFERRED]) && work_of(t)->due <= now_usec)
                work_move(d, work_of(t), LIST_QUEUE);
        t = d->lists[LIST_QUEUE];
        if (t)
                lease(d, work_of(t), holder, leases, now_usec);
        return t;
}

uint64_t data_next_due(const struct data *d) {
        return d->lists[LIST_DEFERRED] ? work_of(d->lists[LIST_DEFERRED])->due : UINT64_MAX;
}

struct task *data_task(struct data *d, uint64_t id) {
        struct work *w = ids_find(ids_of(d, id), id & ~TASK_SPLIT_OFF);

        return w && w->list != LIST_RESTORED ? &w->t : NULL;
}

bool data_was_made(const struct data *d, uint64_t id) {
        if (id & TASK_SPLIT_OFF)
                return (id & ~TASK_SPLIT_OFF) - 1 < d->n_split_off;
        return id - 1 < blocks_made(d);
}

struct task *data_next_task(const struct data *d, uint64_t after) {
        struct work *w;

        do {
                w = after & TASK_SPLIT_OFF ? NULL : ids_next(&d->ids, after + 1);
                if (!w)
                        w = ids_next(&d->split_ids,
                                     after & TASK_SPLIT_OFF ? (after & ~TASK_SPLIT_OFF) + 1 : 0);
                after = w ? w->t.id : 0;
        } while (w && w->list == LIST_RESTORED);
        return w ? &w->t : NULL;
}

void data_adopt(struct data *d, struct task *t, void *holder, struct task **leases, uint64_t now_usec) {
        if (t->place == TASK_PENDING)
                lease(d, work_of(t), holder, leases, now_usec);
}

/* Back from its holder, with what was acknowledged. */
static void give_back(struct data *d, struct work *w, struct task **leases) {
        struct task *t = &w->t;

        work_count(d, t, (uint64_t)-1);
        t->place = TASK_PENDING;
        t->read = t->acked;
        work_count(d, t, 1);
        unlease(t, leases);
        take_work(d, w);
        if (t->records_before != t->records) {
                t->records_before = t->records;
                work_changed(d, w);
        }
}

void data_return(struct data *d, struct task *t, struct task **leases) {
        if (t->place != TASK_LEASED)
                return;
        give_back(d, work_of(t), leases);
        put_first(d, work_of(t));
}

void data_return_all(struct data *d, struct task **leases) {
        while (*leases)
                data_return(d, (*leases)->lease_prev, leases); /* the last one */
}

void data_defer(struct data *d, struct task *t, struct task **leases, uint64_t until_usec) {
        struct work *w = work_of(t), *last;
        struct task *behind;

        if (t->place != TASK_LEASED)
                return;
        give_back(d, w, leases);
        w->due = until_usec;
        /* Mostly the last one: what is deferred for equally long comes in its order. */
        behind = d->lists[LIST_DEFERRED] ? d->lists[LIST_DEFERRED]->prev : NULL;
        while (behind && (last = work_of(behind))->due > until_usec)
                behind = behind == d->lists[LIST_DEFERRED] ? NULL : behind->prev;
        w->list = LIST_DEFERRED;
        if (behind)
                DL_APPEND_ELEM(d->lists[LIST_DEFERRED], behind, t);
        else
                DL_PREPEND(d->lists[LIST_DEFERRED], t);
}

/* ---- reports ---- */

/* It is over: its bit in its block, or the end of its row, says so. */
static void bury(struct data *d, struct work *w) {
        struct task *t = &w->t;
        uint64_t had = task_length(&t->what, t->start, t->end);

        work_count(d, t, (uint64_t)-1);
        COUNT(d, t->source, over_acked, t->acked - t->start);
        COUNT(d, t->source, over_records, t->records);
        COUNT(d, t->source, learnt, t->acked - t->start - had);
        d->state_dirty = true;
        (void)ids_remove(ids_of(d, t->id), t->id & ~TASK_SPLIT_OFF);
        take_work(d, w);
        if (w->dirty)
                DL_DELETE2(d->dirty, w, dirty_prev, dirty_next);
        w->dirty = false;
        if (w->block)
                block_gone(d, w->block, t->id);
        if (w->has_row)
                work_put(d, w, LIST_DEAD);
        else
                work_free(d, w);
}

static void set_error(struct task *t, const char *error) {
        free(t->error);
        t->error = error ? strndup(error, TASK_TEXT_MAX) : NULL; /* without memory, without a reason */
}

/* Takes over what p says of positions. Whether its row changes. */
static bool advance_task(struct data *d, struct task *t, const struct task_progress *p) {
        uint64_t acked = MIN(p->acked, t->end), read = MIN(p->read, t->end);
        uint64_t records = t->records_before;
        bool changed = false;

        if (__builtin_add_overflow(records, p->records, &records))
                records = UINT64_MAX;
        work_count(d, t, (uint64_t)-1);
        if (acked > t->acked || (acked == t->acked && p->skip > t->skip)) {
                t->acked = acked;
                t->skip = p->skip;
                changed = true;
        }
        t->read = MAX(MAX(t->read, read), t->acked);
        if (records > t->records) {
                t->records = records;
                changed = true;
        }
        work_count(d, t, 1);
        return changed;
}

/* What lies behind end becomes a task of its own. rest: it, made ahead. */
static void cut(struct data *d, struct work *w, struct work *rest, uint64_t end) {
        struct task *t = &w->t;

        rest->t.start = rest->t.acked = rest->t.read = end;
        rest->t.end = t->end;
        if (end == t->acked) { /* nothing is left of it */
                rest->t.skip = t->skip;
                t->skip = 0;
        }
        work_count(d, &rest->t, 1);
        work_count(d, t, (uint64_t)-1);
        t->end = end;
        t->read = MIN(t->read, end);
        work_count(d, t, 1);
        COUNT(d, t->source, split_off, 1);
        w->asked = false;
        work_changed(d, w);
        work_changed(d, rest);
        put_when_flushed(d, rest);
}

/* The holder has come to the end of what nobody knew the length of: a compressed file, what a command prints.
 */
static void learn_end(struct data *d, struct task *t, const struct task_progress *p) {
        if (t->end != TASK_TO_END || p->end == TASK_TO_END || p->state != TASK_RUNNING)
                return;
        work_count(d, t, (uint64_t)-1);
        COUNT(d, t->source, learnt, -task_length(&t->what, t->start, t->end));
        t->end = MAX(p->end, t->acked);
        COUNT(d, t->source, learnt, task_length(&t->what, t->start, t->end));
        work_count(d, t, 1);
        d->state_dirty = true;
        work_changed(d, work_of(t));
}

static int fail_work(struct data *d, struct work *w, struct task **leases, const char *error,
                     enum data_event *ret_event) {
        struct task *t = &w->t;

        set_error(t, error);
        t->failures++;
        give_back(d, w, leases);
        if (t->failures >= d->config.max_attempts) {
                set_place(d, t, TASK_GAVE_UP);
                work_put(d, w, LIST_GAVE_UP);
                *ret_event = DATA_EVENT_GAVE_UP;
        } else {
                put_first(d, w);
                *ret_event = DATA_EVENT_FAILED;
        }
        work_changed(d, w);
        return 0;
}

/* The remainder that p leaves, ready to be cut off; *ret NULL: none. -E2BIG: there are too many. */
static int remainder_of(struct data *d, const struct task *t, const struct task_progress *p,
                        uint64_t *ret_end, struct work **ret) {
        uint64_t end = MAX(p->end, MAX(t->acked, MIN(p->acked, t->end)));
        struct work *rest;
        int r;

        if (t->end == TASK_TO_END || end >= t->end) {
                *ret = NULL;
                return 0;
        }
        if (d->n_split_live >= SPLIT_OFF_MAX)
                return -E2BIG;
        rest = work_new(d, TASK_SPLIT_OFF | (d->n_split_off + 1), t->source, t->epoch, t->file, &t->what, end,
                        t->end);
        if (!rest)
                return -ENOMEM;
        r = ids_add(&d->split_ids, d->n_split_off + 1, rest);
        if (r < 0) {
                work_free(d, rest);
                return r;
        }
        d->n_split_off++;
        *ret_end = end;
        *ret = rest;
        return 0;
}

static void returned(struct data *d, struct task *t, struct task **leases, uint64_t now_usec) {
        bool idle = t->read == t->read_before;

        if (!is_stream(t)) {
                data_return(d, t, leases);
                return;
        }
        if (idle && steer_queue(d, t) != LIST_UNWANTED) {
                data_defer(d, t, leases, now_usec + DATA_IDLE_USEC);
                return;
        }
        give_back(d, work_of(t), leases);
        work_put(d, work_of(t), LIST_QUEUE);
}

int data_report(struct data *d, struct task *t, struct task **leases, const struct task_progress *p,
                uint64_t now_usec, enum data_event *ret_event) {
        struct work *w = work_of(t), *rest = NULL;
        uint64_t end = 0;
        int r;

        *ret_event = DATA_EVENT_NONE;
        if (t->place != TASK_LEASED)
                return 0;
        r = remainder_of(d, t, p, &end, &rest);
        if (r == -E2BIG)
                return fail_work(d, w, leases, "it was cut into too many pieces", ret_event);
        if (r < 0)
                return r;
        learn_end(d, t, p);
        if (advance_task(d, t, p) && p->state != TASK_DONE)
                work_changed(d, w);
        if (rest) {
                cut(d, w, rest, end);
                *ret_event = DATA_EVENT_SPLIT;
        }
        switch (p->state) {
        case TASK_DONE:
                COUNT(d, t->source, done, 1);
                unlease(t, leases);
                bury(d, w);
                return 1;
        case TASK_FAILED:
                return fail_work(d, w, leases, p->error, ret_event);
        case TASK_RETURNED:
                returned(d, t, leases, now_usec);
                return 0;
        default:
                return 0;
        }
}

int data_retry(struct data *d, struct task *t) {
        struct work *w = work_of(t);

        if (t->place != TASK_GAVE_UP)
                return -EBUSY;
        set_place(d, t, TASK_PENDING);
        t->failures = 0;
        take_work(d, w);
        work_changed(d, w);
        put_when_flushed(d, w);
        return 0;
}

void data_skip(struct data *d, struct task *t, struct task **leases) {
        if (t->place == TASK_LEASED)
                unlease(t, leases);
        COUNT(d, t->source, skipped, 1);
        bury(d, work_of(t));
}

struct task *data_slowest(struct data *d, uint64_t now_usec, uint64_t min_bytes, uint64_t *ret_end) {
        struct task *t, *slowest = NULL;
        double longest = -1;

        DL_FOREACH (d->lists[LIST_LEASED], t) {
                uint64_t unread = t->end - t->read;
                double usec = (double)(now_usec > t->granted_usec ? now_usec - t->granted_usec : 1);
                double needed;
                if (t->end == TASK_TO_END || t->what.split == 0 || work_of(t)->asked || unread < min_bytes ||
                    unread < 2)
                        continue;
                /* One that has not begun counts as if it had read a byte by now. */
                needed = (double)unread * usec / (double)MAX(t->read - t->read_before, UINT64_C(1));
                if (needed > longest) {
                        longest = needed;
                        slowest = t;
                }
        }
        if (slowest) {
                *ret_end = slowest->read + (slowest->end - slowest->read) / 2;
                work_of(slowest)->asked = true;
        }
        return slowest;
}
