/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery as descriptors: the producer's thread opens tasks and aligns their ranges to records, some ahead;
 * a process of the trainer that asks for tasks gets the descriptor of one, reads it itself, and says how far
 * it is. Invariant: a task that has been handed out is in the list of those given until its end, and so is
 * the reader, with which the file is compared once more. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "executor/feed/feed-internal.h"

#define CREDITS_MAX 64u /* tasks at once with one process */
#define LOOK_APART USEC_PER_SEC

struct range {
        uint64_t task;
        struct client *client; /* given to; NULL: ready */
        struct opened *opened;
        int fd; /* the reader's */
        uint64_t first, last, skip;
        struct range *prev, *next;
};

struct ranges {
        struct feed *feed;
        struct producer *producer;
        struct range *ready, *given;
        unsigned n_ready;
        uint64_t turns;  /* tasks that have been handed out */
        uint64_t looked; /* when, for the waits */
        uint64_t consumer_wait, producer_wait;
};

static struct range *range_free(struct range *r) {
        (void)opened_free(r->opened);
        free(r);
        return NULL;
}

/* ---- the producer's side ---- */

static struct task *on_take(void *userdata) {
        struct ranges *d = userdata;

        if (d->feed->paused || d->n_ready > d->feed->readers || d->feed->readers == 0)
                return NULL;
        return tasks_take(&d->feed->tasks, d);
}

static void on_end_known(void *userdata, struct task *t, uint64_t end) {
}

static void on_range(void *userdata, struct task *t, struct opened *o, int fd, uint64_t first,
                     uint64_t last) {
        struct ranges *d = userdata;
        struct feed *f = d->feed;
        struct range *r;
        uint64_t one = 1;
        char error[READ_ERROR_MAX];

        tasks_set_end(&f->tasks, t, last);
        if (t->place != PLACE_HELD) {
                (void)opened_free(o);
        } else if (first == last) {
                if (reader_check(o->reader, error) < 0)
                        tasks_fail(&f->tasks, t, error);
                else
                        tasks_whole(&f->tasks, t);
                (void)opened_free(o);
        } else if ((r = calloc(1, sizeof(*r)))) {
                uint32_t failures = t->grant.failures;

                *r = (struct range){ .task = t->id, .opened = o, .fd = fd, .first = first, .last = last };
                r->skip = t->from.skip + (failures > 0 && t->grant.source < f->input->n_sources
                                                  ? f->input->sources[t->grant.source].rewind_skip
                                                  : 0);
                DL_APPEND(d->ready, r);
                d->n_ready++;
        } else {
                tasks_fail(&f->tasks, t, "out of memory");
                (void)opened_free(o);
        }
        tasks_idle(&f->tasks, t);
        (void)!write(f->wake_fd, &one, sizeof(one));
}

static void on_over(void *userdata, struct task *t, int result, const char *error) {
        struct ranges *d = userdata;
        uint64_t one = 1;

        if (result == -ECANCELED)
                tasks_put_back(&d->feed->tasks, t);
        else
                tasks_fail(&d->feed->tasks, t, error);
        tasks_idle(&d->feed->tasks, t);
        (void)!write(d->feed->wake_fd, &one, sizeof(one));
}

static const struct producer_ops producer_ops = {
        .take = on_take,
        .end_known = on_end_known,
        .range = on_range,
        .over = on_over,
};

/* ---- handing out ---- */

static struct range *find_range(struct range *list, uint64_t task) {
        struct range *r;

        DL_FOREACH (list, r)
                if (r->task == task)
                        return r;
        return NULL;
}

static int give(struct feed *f, struct client *c, struct range *r, struct task *t) {
        size_t path = strlen(r->opened->grant.path);
        const struct client_task head = { .task = t->id,
                                          .start = MIN(t->grant.start, r->first),
                                          .end = r->last,
                                          .offset = r->first,
                                          .skip = r->skip,
                                          .seed = t->grant.seed,
                                          .source = t->grant.source,
                                          .path_size = (uint32_t)path };
        uint8_t body[sizeof(head) + TASK_PATH_MAX + 1];
        int fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 3);

        if (fd < 0)
                return -errno;
        memcpy(body, &head, sizeof(head));
        memcpy(body + sizeof(head), r->opened->grant.path, path);
        return client_send(c, CLIENT_TASK, body, sizeof(head) + path, fd);
}

/* The next range that is ready goes to c. False: none is. */
static bool give_next(struct feed *f, struct client *c) {
        struct ranges *d = f->ranges;
        struct range *r;

        while ((r = d->ready)) {
                struct task *t = tasks_find(&f->tasks, r->task);

                DL_DELETE(d->ready, r);
                d->n_ready--;
                producer_wake(d->producer);
                if (!t || t->place != PLACE_HELD) {
                        (void)range_free(r);
                        continue;
                }
                if (give(f, c, r, t) < 0) {
                        tasks_put_back(&f->tasks, t);
                        (void)range_free(r);
                        return false;
                }
                t->holder = c;
                tasks_begin(t, (struct task_mark){ r->first, r->skip });
                tasks_delivered(&f->tasks, t, (struct task_mark){ r->last, 0 });
                r->client = c;
                DL_APPEND(d->given, r);
                seat_give(&c->seat, &d->turns);
                c->hungry_since = 0;
                if (c->busy_since == 0)
                        c->busy_since = now_boot();
                return true;
        }
        return false;
}

static bool is_all_given(const struct feed *f) {
        const struct ranges *d = f->ranges;

        return f->tasks.last && !d->ready && !producer_task(d->producer) && !tasks_may_take(&f->tasks, d);
}

static void waits_pass(struct feed *f, uint64_t now) {
        struct ranges *d = f->ranges;
        uint64_t apart = d->looked > 0 ? usec_sub(now, d->looked) : 0;
        struct client *c;

        DL_FOREACH (f->clients, c) {
                uint64_t hungry;

                if (c->gone || c->seat.out)
                        continue;
                /* A process that has a task of its own at hand does not wait for one, it is busy. */
                hungry = c->hungry_since > 0 ? MIN(apart, usec_sub(now, c->hungry_since)) : 0;
                d->consumer_wait += hungry;
                if (c->busy_since > 0)
                        d->producer_wait += usec_sub(MIN(apart, usec_sub(now, c->busy_since)), hungry);
        }
        d->looked = now;
}

static struct client *next_client(struct feed *f) {
        struct client *c, *first = NULL;

        DL_FOREACH (f->clients, c)
                if (seat_first(first ? &first->seat : NULL, &c->seat) == &c->seat)
                        first = c;
        return first;
}

static struct hunger ranges_hunger(struct feed *f) {
        struct ranges *d = f->ranges;
        struct client *c;
        uint32_t n = 0;

        DL_FOREACH (f->clients, c)
                n += seat_is_hungry(&c->seat);
        return n == 0 ? (struct hunger){}
                      : hunger_of(n, d->n_ready + (producer_task(d->producer) != NULL) +
                                             tasks_free(&f->tasks, n));
}

static uint64_t ranges_step(struct feed *f, uint64_t now) {
        struct ranges *d = f->ranges;
        struct end_wait w = { .reading = d->given != NULL, .still_since = clients_still_since(f, now) };
        struct client *c;
        uint64_t next = USEC_INFINITY;

        waits_pass(f, now);
        if (!producer_task(d->producer) && tasks_may_take(&f->tasks, d))
                producer_wake(d->producer);
        while (d->ready && !f->paused && (c = next_client(f)))
                if (!give_next(f, c))
                        break;
        DL_FOREACH (f->clients, c) {
                if (!c->greeted || c->gone)
                        continue;
                /* Not before it waits: until then it can take what another one leaves behind. */
                if (seat_is_hungry(&c->seat) && is_all_given(f) && clients_end_due(f, w, now, &next)) {
                        c->seat.out = true;
                        c->hungry_since = 0;
                        (void)client_send(c, CLIENT_LAST, NULL, 0, -EBADF);
                }
                if (seat_is_hungry(&c->seat) && c->hungry_since == 0)
                        c->hungry_since = now;
                if (!c->seat.out) /* how long it waits, or is busy, is to be known while it does */
                        next = now + LOOK_APART;
        }
        return next;
}

int ranges_next(struct feed *f, struct client *c, uint32_t credits) {
        if (credits > CREDITS_MAX || c->seat.credits + credits > CREDITS_MAX)
                return -EPROTO;
        c->seat.credits += credits;
        return 0;
}

/* ---- what comes back ---- */

static void take_back(struct feed *f, struct range *r) {
        DL_DELETE(f->ranges->given, r);
        f->reads++;
        seat_take_back(&r->client->seat);
        (void)range_free(r);
}

int ranges_whole(struct feed *f, struct client *c, struct task *t) {
        struct range *r = find_range(f->ranges->given, t->id);
        char error[READ_ERROR_MAX];

        if (!r || r->client != c)
                return t->place == PLACE_HELD && !t->whole && t->holder == c ? -ERANGE : 0;
        if (reader_check(r->opened->reader, error) < 0)
                tasks_break(&f->tasks, t, error); /* tried again, it goes on from what counts */
        else {
                f->counters.bytes += r->last - MIN(r->last, MAX(r->first, t->read));
                tasks_read(&f->tasks, t, r->last, 0);
                tasks_whole(&f->tasks, t);
        }
        take_back(f, r);
        return 0;
}

void ranges_fail(struct feed *f, struct client *c, struct task *t, const char *why) {
        struct range *r = find_range(f->ranges->given, t->id);

        if (!r || r->client != c)
                return;
        take_back(f, r);
        tasks_break(&f->tasks, t, why);
}

void ranges_forget(struct feed *f, struct client *c, uint64_t task) {
        struct range *r = find_range(f->ranges->given, task);

        if (r && r->client == c)
                take_back(f, r);
}

/* How far the trainer says it is, of a task that it has. */
void ranges_at(struct feed *f, struct client *c, struct task *t, uint64_t position) {
        struct range *r = find_range(f->ranges->given, t->id);

        if (!r || r->client != c || position <= t->read || position > r->last)
                return;
        f->counters.bytes += position - MAX(r->first, t->read);
        f->reads++;
        tasks_read(&f->tasks, t, position, MAX(UINT64_C(1), r->last - position));
}

int ranges_trimmed(struct feed *f, struct client *c, struct task *t, uint64_t end) {
        struct range *r = find_range(f->ranges->given, t->id);

        if (!r || r->client != c)
                return 0;
        if (end > r->last || end < t->acked.position || end < r->first)
                return -EPROTO;
        r->last = end;
        t->delivered = (struct task_mark){ end, 0 };
        t->trim_pending = true;
        tasks_set_end(&f->tasks, t, end);
        return 0;
}

static void ranges_trim(struct feed *f, struct task *t, uint64_t position) {
        struct range *r = find_range(f->ranges->given, t->id), *ready = find_range(f->ranges->ready, t->id);
        struct client_trim trim = { .task = t->id, .end = position };
        char error[READ_ERROR_MAX];

        if (r) {
                (void)client_send(r->client, CLIENT_TRIM, &trim, sizeof(trim), -EBADF);
                return;
        }
        if (ready) {
                uint64_t first, last;
                int fd;

                reader_trim(ready->opened->reader, MAX(position, ready->first));
                if (reader_range(ready->opened->reader, &fd, &first, &last, error) == 0 &&
                    last < ready->last && last >= ready->first)
                        ready->last = last;
                tasks_set_end(&f->tasks, t, ready->last);
        }
        tasks_report(&f->tasks, t, true);
}

static void ranges_client_gone(struct feed *f, struct client *c) {
        struct range *r, *next;

        if (!c->greeted)
                return;
        f->readers--;
        c->seat.out = true;
        DL_FOREACH_SAFE (f->ranges->given, r, next)
                if (r->client == c)
                        take_back(f, r);
        tasks_give_back(&f->tasks, c);
}

static int ranges_client_new(struct feed *f, struct client *c) {
        f->readers++;
        producer_wake(f->ranges->producer);
        return 0;
}

/* ---- beginning and end ---- */

static int ranges_begin(struct feed *f) {
        struct ranges *d = calloc(1, sizeof(*d));

        if (!d)
                return -ENOMEM;
        d->feed = f;
        f->ranges = d;
        return producer_new(&f->lock, f->wake_fd, f->input, true, &producer_ops, d, &d->producer);
}

static void ranges_finish(struct feed *f, bool success) {
        producer_stop(f->ranges->producer);
}

static void ranges_cancel(struct feed *f, struct task *t) {
        if (producer_task(f->ranges->producer) == t)
                producer_cancel(f->ranges->producer);
}

static void ranges_wake(struct feed *f) {
        producer_wake(f->ranges->producer);
}

static void ranges_waits(struct feed *f, uint64_t now, uint64_t *ret_consumer, uint64_t *ret_producer) {
        *ret_consumer = f->ranges->consumer_wait;
        *ret_producer = f->ranges->producer_wait;
}

static void ranges_done(struct feed *f) {
        struct ranges *d = f->ranges;
        struct range *r, *next;

        if (!d)
                return;
        d->producer = producer_end(d->producer);
        DL_FOREACH_SAFE (d->ready, r, next)
                (void)range_free(r);
        DL_FOREACH_SAFE (d->given, r, next)
                (void)range_free(r);
        free(d);
        f->ranges = NULL;
}

const struct delivery_ops delivery_ranges = {
        .begin = ranges_begin,
        .step = ranges_step,
        .resume = ranges_wake,
        .finish = ranges_finish,
        .cancel = ranges_cancel,
        .trim = ranges_trim,
        .client_new = ranges_client_new,
        .client_gone = ranges_client_gone,
        .hunger = ranges_hunger,
        .waits = ranges_waits,
        .done = ranges_done,
};
