/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery through shared memory: each process of the trainer that is connected has a lane, a ring and a
 * thread that reads tasks straight into its slots. A slot that has been released counts under input.ack
 * release, at the trainer's exit 0 under exit; else it only makes room. Invariant: what the trainer wrote
 * decides when a slot is free and nothing else; what lay in it is known from the ring's own copy
 * (lib/primus/ring.h). */
#include <string.h>
#include <utlist.h>

#include "executor/feed/feed-internal.h"
#include "lib/primus/ring.h"

#define LOOK_APART (100 * USEC_PER_MSEC)
#define WAITS_APART USEC_PER_SEC

struct lane {
        struct feed *feed;
        struct client *client;
        struct ring_producer *ring;
        struct producer *producer;
        int released;         /* the ring's eventfd */
        uint64_t waits_since; /* the trainer is waiting for a slot; 0: no */
        uint64_t waited_usec; /* as said last */
        /* Since its first slot the trainer either waits or is busy: busy is what is left of the time. */
        uint64_t busy_since, waited_before; /* 0: it has had nothing yet */
        uint64_t busy_usec;                 /* in all, once closed */
        bool closed;                        /* no slot will follow */
        bool hostile;                       /* the trainer wrote nonsense */
        bool any;                           /* the task being read has slots in the ring */
        bool inside;                        /* the latest slot ends inside a record */
        /* Released, and yet to count: the trainer may have said before that it cannot use what lay there, and
         * that has to be read first. Slots of one task behind each other are one here. */
        struct ring_slot *freed;
        size_t n_freed, freed_allocated;
        size_t n_due; /* of them, released before the packets were read that have been read since */
        /* A task that was broken off, and whose end has yet to be said: 0: none. */
        uint64_t broken, broken_generation;
        uint32_t broken_source;
};

static uint64_t slot_generation(const struct ring_slot *s) {
        return s->reserved[0];
}

static struct task_mark slot_mark(const struct ring_slot *s) {
        if (!(s->flags & RING_COUNTED) || s->end > s->position)
                return (struct task_mark){ s->end, 0 };
        return (struct task_mark){ s->position, s->skip + s->records };
}

/* ---- waiting and being busy ---- */

/* What the trainer counts itself, which it does once a wait is over, and the one that is not. */
static uint64_t lane_waited(struct lane *l, uint64_t now) {
        uint64_t said = ring_consumer_waited_nsec(l->ring) / 1000;

        if (!ring_consumer_waits(l->ring) || l->closed)
                l->waits_since = 0;
        else if (l->waits_since == 0)
                l->waits_since = now;
        if (l->waits_since > 0)
                said += now - l->waits_since;
        l->waited_usec = MAX(l->waited_usec, said);
        return l->waited_usec;
}

/* Its own time with data: neither before the first, nor behind the last, nor while it waits. */
static uint64_t lane_busy(struct lane *l, uint64_t now) {
        if (l->busy_since == 0 || l->closed)
                return l->busy_usec;
        return usec_sub(usec_sub(now, l->busy_since), lane_waited(l, now) - l->waited_before);
}

/* ---- what the trainer has released ---- */

static void settle_slot(struct lane *l, const struct ring_slot *s) {
        struct tasks *tasks = &l->feed->tasks;
        struct task *t = tasks_find(tasks, s->task);

        if (!t || t->generation != slot_generation(s) || ack_by_client(l->feed->ack))
                return;
        (void)tasks_ack(tasks, t, slot_mark(s), s->records);
}

static void settle_freed(struct lane *l, size_t n) {
        for (size_t i = 0; i < n; i++)
                settle_slot(l, l->freed + i);
        l->n_freed -= n;
        if (l->n_freed > 0)
                memmove(l->freed, l->freed + n, l->n_freed * sizeof(*l->freed));
        l->n_due = 0;
}

static bool counts(const struct ring_slot *s) {
        return s->size > 0 && !(s->flags & (RING_MORE | RING_HEADER));
}

static void put_freed(struct lane *l, const struct ring_slot *s) {
        struct ring_slot *last = l->n_freed > l->n_due ? l->freed + l->n_freed - 1 : NULL;

        if (!counts(s))
                return;
        if (last && last->task == s->task && slot_generation(last) == slot_generation(s)) {
                uint64_t records = last->records + s->records;

                /* A mark of counted records says its own number; the sum is for the counters alone. */
                if (!(s->flags & RING_COUNTED)) {
                        *last = *s;
                        last->records = records;
                        return;
                }
        }
        if (l->n_freed == l->freed_allocated) {
                size_t n = MAX(2 * l->freed_allocated, (size_t)64);
                struct ring_slot *more = reallocarray(l->freed, n, sizeof(*more));

                if (!more) { /* without memory: what was said meanwhile comes too late */
                        settle_freed(l, l->n_freed);
                        settle_slot(l, s);
                        return;
                }
                l->freed = more;
                l->freed_allocated = n;
        }
        l->freed[l->n_freed++] = *s;
}

/* Returns whether anything was released. */
static bool look_at_ring(struct lane *l) {
        struct ring_slot s;
        bool any = false;
        int r;

        while ((r = ring_producer_released(l->ring, &s)) > 0) {
                put_freed(l, &s);
                any = true;
        }
        l->hostile |= r < 0;
        l->feed->reads += any;
        return any;
}

/* ---- the producer's side ---- */

/* 1; 0: full, and the eventfd will say when that changes. */
static int reserve(struct lane *l, uint8_t **ret) {
        for (;;) {
                int r;

                (void)look_at_ring(l);
                r = l->hostile ? -EPROTO : ring_producer_reserve(l->ring, ret);
                if (r > 0)
                        return r;
                if (r < 0 || !ring_producer_arm(l->ring)) {
                        l->hostile |= r < 0;
                        return 0;
                }
        }
}

static void commit_end(struct lane *l, uint64_t task, uint64_t generation, uint32_t source, uint64_t at,
                       uint32_t flags) {
        const struct ring_slot s = { .task = task,
                                     .position = at,
                                     .end = at,
                                     .flags = flags,
                                     .source = source,
                                     .reserved = { generation } };

        ring_producer_commit(l->ring, &s);
        l->any = l->inside = false;
}

/* The trainer has to be told that a task is broken off before anything else follows. */
static bool tell_broken(struct lane *l) {
        uint8_t *buf;

        if (l->broken == 0)
                return true;
        if (reserve(l, &buf) <= 0)
                return false;
        commit_end(l, l->broken, l->broken_generation, l->broken_source, 0, RING_TASK_BROKEN);
        l->broken = 0;
        return true;
}

static struct task *on_take(void *userdata) {
        struct lane *l = userdata;
        struct task *t;

        if (l->closed || l->hostile || l->feed->paused || l->client->gone || !tell_broken(l))
                return NULL;
        t = tasks_take(&l->feed->tasks, l);
        if (t)
                l->any = l->inside = false;
        return t;
}

static int on_room(void *userdata, uint8_t **ret, size_t *ret_size) {
        struct lane *l = userdata;

        *ret_size = (size_t)l->feed->input->slot_size;
        return l->feed->paused ? 0 : reserve(l, ret);
}

static void on_end_known(void *userdata, struct task *t, uint64_t end) {
        struct lane *l = userdata;

        tasks_set_end(&l->feed->tasks, t, end);
}

static uint32_t slot_flags(uint32_t chunk) {
        return (chunk & CHUNK_FIRST ? RING_FIRST : 0) | (chunk & CHUNK_MORE ? RING_MORE : 0) |
               (chunk & CHUNK_COUNTED ? RING_COUNTED : 0) | (chunk & CHUNK_HEADER ? RING_HEADER : 0);
}

static void on_chunk(void *userdata, struct task *t, const struct chunk *c) {
        struct lane *l = userdata;
        struct tasks *tasks = &l->feed->tasks;
        const struct ring_slot s = { .task = t->id,
                                     .position = c->position,
                                     .end = c->end,
                                     .skip = c->skip,
                                     .records = c->records,
                                     .size = (uint32_t)c->size,
                                     .flags = slot_flags(c->flags),
                                     .source = t->grant.source,
                                     .reserved = { t->generation } };

        tasks_begin(t, (struct task_mark){ c->position, c->flags & CHUNK_COUNTED ? c->skip : 0 });
        ring_producer_commit(l->ring, &s);
        if (l->busy_since == 0) {
                l->busy_since = now_boot();
                l->waited_before = lane_waited(l, l->busy_since);
        }
        l->any = true;
        l->inside = c->flags & CHUNK_MORE;
        l->feed->counters.bytes += c->size;
        l->feed->counters.records += c->records;
        if (c->flags & (CHUNK_MORE | CHUNK_HEADER))
                return;
        tasks_delivered(tasks, t, slot_mark(&s));
        /* What is in the ring is in the trainer's memory. */
        tasks_read(tasks, t, t->delivered.position,
                   t->end != TASK_TO_END && t->end > t->delivered.position ? t->end - t->delivered.position
                                                                           : 1);
}

/* The slot that the producer had room in is still there for a word about the end. */
static void on_over(void *userdata, struct task *t, int result, const char *error) {
        struct lane *l = userdata;
        struct tasks *tasks = &l->feed->tasks;
        uint64_t one = 1;

        if (result == 0) {
                if (l->any)
                        commit_end(l, t->id, t->generation, t->grant.source, t->delivered.position,
                                   RING_TASK_END);
                tasks_whole(tasks, t);
        } else if (result == -EAGAIN)
                tasks_again(tasks, t);
        else {
                if (l->inside || (result == -ECANCELED && l->any && t->place != PLACE_HELD)) {
                        l->broken = t->id;
                        l->broken_generation = t->generation;
                        l->broken_source = t->grant.source;
                        (void)tell_broken(l);
                }
                if (result != -ECANCELED)
                        tasks_fail(tasks, t, error);
                else
                        tasks_put_back(tasks, t);
        }
        tasks_idle(tasks, t);
        (void)!write(l->feed->wake_fd, &one, sizeof(one));
}

static const struct producer_ops producer_ops = {
        .take = on_take,
        .room = on_room,
        .end_known = on_end_known,
        .chunk = on_chunk,
        .over = on_over,
};

/* ---- the loop's side ---- */

int lane_fd(const struct lane *l) {
        return l->released;
}

void lane_look(struct feed *f, struct client *c) {
        uint64_t count;

        /* What it says is seen to here; left as it is, it would be said again at once. */
        (void)!read(c->lane->released, &count, sizeof(count));
        if (look_at_ring(c->lane))
                producer_wake(c->lane->producer);
}

void lane_collect(struct feed *f, struct client *c) {
        lane_look(f, c);
        c->lane->n_due = c->lane->n_freed;
}

void lane_settle(struct client *c) {
        settle_freed(c->lane, c->lane->n_due);
}

static struct lane *lane_free(struct lane *l) {
        if (!l)
                return NULL;
        free(l->freed);
        (void)ring_producer_free(l->ring);
        free(l);
        return NULL;
}

static int ring_client_new(struct feed *f, struct client *c) {
        struct lane *l = calloc(1, sizeof(*l));
        int fds[4], r;

        if (!l)
                return -ENOMEM;
        l->feed = f;
        l->client = c;
        r = ring_producer_new(f->input->slots, (uint32_t)f->input->slot_size, &l->ring);
        if (r >= 0)
                r = producer_new(&f->lock, f->wake_fd, f->input, true, &producer_ops, l, &l->producer);
        if (r < 0) {
                (void)lane_free(l);
                return r;
        }
        ring_producer_fds(l->ring, fds);
        l->released = fds[3];
        c->lane = l;
        f->readers++;
        return 0;
}

static void ring_client_gone(struct feed *f, struct client *c) {
        if (!c->lane)
                return;
        f->readers--;
        producer_stop(c->lane->producer);
}

bool lane_over(struct feed *f, struct client *c) {
        struct lane *l = c->lane;

        if (!l)
                return true;
        if (!producer_ended(l->producer))
                return false;
        (void)look_at_ring(l); /* what it released last; all that it said has been read */
        settle_freed(l, l->n_freed);
        f->gone_producer_usec += lane_busy(l, now_boot());
        f->gone_consumer_usec += MAX(l->waited_usec, ring_consumer_waited_nsec(l->ring) / 1000);
        (void)producer_free(l->producer); /* it needs no lock any more */
        tasks_give_back(&f->tasks, l);
        c->lane = lane_free(l);
        return true;
}

void lane_fail(struct feed *f, struct client *c, struct task *t, const char *why) {
        struct lane *l = c->lane;

        if (t->holder != l)
                return;
        tasks_break(&f->tasks, t, why);
        if (producer_task(l->producer) == t)
                producer_cancel(l->producer);
}

static void ring_look(struct feed *f) {
        struct client *c;

        DL_FOREACH (f->clients, c)
                if (c->lane && !c->gone)
                        lane_look(f, c);
}

static struct end_wait ring_end_wait(struct feed *f, uint64_t now) {
        struct end_wait w = {};
        struct client *c;

        DL_FOREACH (f->clients, c) {
                const struct lane *l = c->lane;

                w.leaving |= l && c->gone;
                w.reading |= l && !l->closed &&
                             (producer_task(l->producer) || ring_producer_unreleased(l->ring) > 0);
        }
        w.still_since = clients_still_since(f, now);
        return w;
}

static uint64_t ring_step(struct feed *f, uint64_t now) {
        uint64_t next = USEC_INFINITY;
        struct end_wait w;
        struct client *c;

        ring_look(f);
        w = ring_end_wait(f, now);
        DL_FOREACH (f->clients, c) {
                struct lane *l = c->lane;
                bool idle;

                if (!l || c->gone)
                        continue;
                idle = !producer_task(l->producer);
                if (idle && (l->broken > 0 || tasks_may_take(&f->tasks, l)))
                        producer_wake(l->producer);
                /* Not before it waits: until then it can take what another one leaves behind. */
                if (idle && !l->closed && l->broken == 0 && f->tasks.last && !tasks_may_take(&f->tasks, l) &&
                    ring_producer_unreleased(l->ring) == 0 && clients_end_due(f, w, now, &next)) {
                        l->busy_usec = lane_busy(l, now);
                        l->closed = true;
                        ring_producer_close(l->ring);
                }
                /* A full ring says when it is not; else what was released is looked for now and then. */
                if (ring_producer_unreleased(l->ring) > 0) {
                        if (idle && ring_producer_arm(l->ring))
                                lane_look(f, c);
                        next = MIN(next, now + LOOK_APART);
                }
                if (ring_producer_unreleased(l->ring) == 0 &&
                    !l->closed) /* it waits, or will: how long is to be known */
                        next = MIN(next, now + WAITS_APART);
                if (l->n_freed > 0)
                        next = now; /* it counts once what the trainer has said has been read */
        }
        return next;
}

/* One whose ring is empty waits, or will in a moment. What its thread reads is for it, and so is what only it
 * may go on with. */
static struct hunger ring_hunger(struct feed *f) {
        uint32_t hungry = 0, idle = 0;
        struct hunger h;
        struct client *c;

        DL_FOREACH (f->clients, c) {
                struct lane *l = c->lane;

                if (!l || c->gone || l->closed || l->hostile || ring_producer_unreleased(l->ring) > 0)
                        continue;
                hungry++;
                idle += !producer_task(l->producer) && !tasks_own(&f->tasks, l);
        }
        h = hunger_of(idle, idle > 0 ? tasks_free(&f->tasks, idle) : 0);
        return (struct hunger){ hungry, h.unserved };
}

static void ring_wake(struct feed *f) {
        struct client *c;

        DL_FOREACH (f->clients, c)
                if (c->lane && !c->gone)
                        producer_wake(c->lane->producer);
}

static void ring_finish(struct feed *f, bool success) {
        struct client *c;

        DL_FOREACH (f->clients, c)
                if (c->lane) {
                        (void)look_at_ring(c->lane);
                        producer_stop(c->lane->producer);
                }
}

static struct lane *lane_of(struct feed *f, const struct task *t) {
        struct client *c;

        DL_FOREACH (f->clients, c)
                if (c->lane && producer_task(c->lane->producer) == t)
                        return c->lane;
        return NULL;
}

static void ring_cancel(struct feed *f, struct task *t) {
        struct lane *l = lane_of(f, t);

        if (l)
                producer_cancel(l->producer);
}

static void ring_trim(struct feed *f, struct task *t, uint64_t position) {
        struct lane *l = lane_of(f, t);

        if (l) {
                t->trim_pending = true;
                producer_trim(l->producer, position);
        } else
                tasks_report(&f->tasks, t, true);
}

static void ring_waits(struct feed *f, uint64_t now, uint64_t *ret_consumer, uint64_t *ret_producer) {
        struct client *c;

        *ret_consumer = f->gone_consumer_usec;
        *ret_producer = f->gone_producer_usec;
        DL_FOREACH (f->clients, c)
                if (c->lane) {
                        *ret_consumer += lane_waited(c->lane, now);
                        *ret_producer += lane_busy(c->lane, now);
                }
}

bool lane_hostile(const struct lane *l) {
        return l->hostile;
}

void lane_fds(const struct lane *l, int ret[static 4]) {
        ring_producer_fds(l->ring, ret);
}

const struct delivery_ops delivery_ring = {
        .step = ring_step,
        .resume = ring_wake,
        .look = ring_look,
        .finish = ring_finish,
        .cancel = ring_cancel,
        .trim = ring_trim,
        .client_new = ring_client_new,
        .client_gone = ring_client_gone,
        .hunger = ring_hunger,
        .waits = ring_waits,
};
