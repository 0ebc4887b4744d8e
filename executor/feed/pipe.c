/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery through the trainer's standard input. The producer's thread opens tasks and reads what has to be
 * read, some chunks ahead; the loop writes to the pipe, and moves what is simply a range of a local file
 * there by splice, without a copy. The kernel tells nobody that a reader has taken something from a pipe
 * which is not full, so the reader's position is looked at while something is unread: 100 ms apart, 10 ms
 * while the window for small files is empty, less and less often, down to once a second, while the trainer
 * does not read. Invariants: a byte is written to the pipe at most once; what a task is in the queue for
 * happens in the order of the queue. */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <utlist.h>

#include "executor/feed/pipe-internal.h"

#define TICK (100 * USEC_PER_MSEC)
#define TICK_HUNGRY (2 * USEC_PER_MSEC)
#define TICK_MAX USEC_PER_SEC
#define CHUNK_SIZE (1u << 20)
#define RANGES_AHEAD 4u

static void wake_loop(struct feed *f) {
        uint64_t one = 1;

        (void)!write(f->wake_fd, &one, sizeof(one));
}

/* ---- the producer's side ---- */

static bool has_client(struct feed *f) {
        return !ack_by_client(f->ack) || clients_first(f);
}

static struct task *on_take(void *userdata) {
        struct pipe_delivery *d = userdata;

        if (d->write_end < 0 || d->n_ranges >= RANGES_AHEAD || !has_client(d->feed))
                return NULL;
        return tasks_take(&d->feed->tasks, d);
}

static int on_room(void *userdata, uint8_t **ret, size_t *ret_size) {
        struct pipe_delivery *d = userdata;

        for (unsigned i = 0; i < CHUNKS_AHEAD; i++) {
                if (d->buffer_used[i])
                        continue;
                if (!d->buffers[i] && !(d->buffers[i] = malloc(CHUNK_SIZE)))
                        continue; /* goes on with those that there are */
                d->room = i;
                *ret = d->buffers[i];
                *ret_size = CHUNK_SIZE;
                return 1;
        }
        return 0;
}

static struct item *add_item(struct pipe_delivery *d, enum item_kind kind, const struct task *t) {
        struct item *i = calloc(1, sizeof(*i));

        if (!i)
                return NULL;
        i->kind = kind;
        i->task = t->id;
        i->generation = t->generation;
        DL_APPEND(d->items, i);
        wake_loop(d->feed);
        return i;
}

static void on_end_known(void *userdata, struct task *t, uint64_t end) {
        struct pipe_delivery *d = userdata;

        tasks_set_end(&d->feed->tasks, t, end);
}

static void on_chunk(void *userdata, struct task *t, const struct chunk *c) {
        struct pipe_delivery *d = userdata;
        struct item *i = add_item(d, ITEM_CHUNK, t);

        if (!i) {
                tasks_fail(&d->feed->tasks, t, "out of memory");
                producer_cancel(d->producer);
                return;
        }
        d->buffer_used[d->room] = true;
        i->buffer = d->room;
        i->chunk = *c;
}

static void on_range(void *userdata, struct task *t, struct opened *o, int fd, uint64_t first,
                     uint64_t last) {
        struct pipe_delivery *d = userdata;
        struct item *i = add_item(d, ITEM_RANGE, t);

        tasks_set_end(&d->feed->tasks, t, last);
        if (i) {
                i->opened = o;
                i->fd = fd;
                i->first = i->at = first;
                i->last = last;
                d->n_ranges++;
        } else {
                tasks_fail(&d->feed->tasks, t, "out of memory");
                (void)opened_free(o);
        }
        tasks_idle(&d->feed->tasks, t);
}

static void on_over(void *userdata, struct task *t, int result, const char *error) {
        struct pipe_delivery *d = userdata;
        struct item *i;

        if (result == -ECANCELED && t->place == PLACE_HELD)
                tasks_put_back(&d->feed->tasks, t);
        else if (result != -ECANCELED) {
                i = add_item(d, result == 0 ? ITEM_END : result == -EAGAIN ? ITEM_AGAIN : ITEM_FAIL, t);
                if (i && i->kind == ITEM_FAIL)
                        i->error = strdup(error);
                if (!i)
                        tasks_fail(&d->feed->tasks, t, "out of memory");
        }
        tasks_idle(&d->feed->tasks, t);
}

static const struct producer_ops producer_ops = {
        on_take, on_room, on_end_known, on_chunk, on_range, on_over
};

/* ---- what the trainer has taken ---- */

static void check_files(struct pipe_delivery *d, uint64_t consumed) {
        struct to_check *c;

        while ((c = d->checks) && c->stream_end <= consumed) {
                struct task *t = pipe_task(d, c->task, c->generation);
                char error[READ_ERROR_MAX];

                if (t && reader_check(c->opened->reader, error) < 0)
                        tasks_fail(&d->feed->tasks, t, error);
                else if (t)
                        tasks_whole(&d->feed->tasks, t);
                DL_DELETE(d->checks, c);
                (void)opened_free(c->opened);
                free(c);
        }
}

/* Looks at how far the trainer has come. */
static bool look_at_pipe(struct pipe_delivery *d, uint64_t now) {
        uint64_t consumed = d->flow.consumed, apart = d->looked > 0 ? usec_sub(now, d->looked) : 0;
        int unread;

        if (d->read_end >= 0 && ioctl(d->read_end, FIONREAD, &unread) >= 0)
                consumed = d->flow.written - (uint64_t)unread;
        if (consumed == d->flow.written && d->write_end >= 0)
                d->consumer_wait += apart;
        else if (consumed < d->flow.written)
                d->producer_wait += apart;
        d->looked = now;
        d->feed->counters.bytes = consumed;
        check_files(d, consumed);
        return flow_consumed(&d->flow, consumed);
}

/* Nothing is left to write, and more will come once the trainer has read what there is. */
static bool is_hungry(const struct pipe_delivery *d) {
        return !d->items && !d->feed->tasks.todo && !d->feed->tasks.last;
}

static struct hunger pipe_hunger(struct feed *f) {
        const struct pipe_delivery *d = f->pipe;
        bool hungry = !d->items && d->flow.written == d->flow.consumed && d->write_end >= 0;

        return hunger_of(hungry, producer_task(d->producer) || f->tasks.todo ? 1 : 0);
}

static void tick(struct pipe_delivery *d, uint64_t now) {
        bool hungry = is_hungry(d);
        uint64_t shortest = hungry ? TICK_HUNGRY : TICK, longest = hungry ? TICK : TICK_MAX;

        d->tick = look_at_pipe(d, now) ? shortest : MIN(d->tick * 2, longest);
        d->tick = MAX(d->tick, shortest);
        if (d->flow.written > d->flow.consumed)
                d->next_tick = now + d->tick;
        else /* how long it waits is to be known while it does */
                d->next_tick = d->write_end >= 0 ? now + TICK_MAX : USEC_INFINITY;
}

static uint64_t pipe_step(struct feed *f, uint64_t now) {
        struct pipe_delivery *d = f->pipe;
        bool hungry, more, was_empty;

        if (!producer_task(d->producer) && f->tasks.todo)
                producer_wake(d->producer);
        /* It has waited up to now, which what is pushed would hide. And the last tasks that are at hand are
         * being written: what has been read meanwhile lets others be asked for before there is nothing to
         * write. */
        if (d->items && (d->flow.written == d->flow.consumed || (!f->tasks.todo && !f->tasks.last)))
                (void)look_at_pipe(d, now);
        was_empty = d->flow.written == d->flow.consumed;
        more = pipe_push(d);
        hungry = is_hungry(d);
        if (hungry && !d->was_hungry) {
                d->next_tick = now;
                d->tick = TICK_HUNGRY / 2;
        }
        d->was_hungry = hungry;
        if (now >= d->next_tick || d->next_tick == USEC_INFINITY ||
            (was_empty && d->flow.written > d->flow.consumed) || (hungry && d->next_tick > now + TICK))
                tick(d, now);
        return more ? 0 : d->next_tick;
}

/* ---- orders, beginning and end ---- */

int pipe_poll_fd(const struct feed *f) {
        return f->pipe && f->pipe->items && !f->paused && !f->pipe->untold ? f->pipe->write_end : -EBADF;
}

static void pipe_look(struct feed *f) {
        (void)look_at_pipe(f->pipe, now_boot());
}

int pipe_processed(struct feed *f, uint64_t bytes) {
        pipe_look(f);
        return flow_processed(&f->pipe->flow, bytes);
}

static void pipe_trim(struct feed *f, struct task *t, uint64_t position) {
        struct pipe_delivery *d = f->pipe;
        char error[READ_ERROR_MAX];
        struct item *i;

        if (producer_task(d->producer) == t) {
                t->trim_pending = true;
                producer_trim(d->producer, position);
                return;
        }
        DL_FOREACH (d->items, i) {
                uint64_t first, last;
                int fd;

                if (i->kind != ITEM_RANGE || i->task != t->id || i->at == i->last)
                        continue;
                reader_trim(i->opened->reader, MAX(position, i->at + (d->copy_size - d->copy_done)));
                if (reader_range(i->opened->reader, &fd, &first, &last, error) == 0 && last >= i->at &&
                    last < i->last)
                        i->last = last;
                tasks_set_end(&f->tasks, t, i->last);
        }
        tasks_report(&f->tasks, t, true);
}

static void pipe_cancel(struct feed *f, struct task *t) {
        if (producer_task(f->pipe->producer) == t)
                producer_cancel(f->pipe->producer);
}

/* Someone whom the stream can be explained to. */
static int pipe_client_new(struct feed *f, struct client *c) {
        f->pipe->span = (struct client_span){};
        producer_wake(f->pipe->producer);
        return 0;
}

int pipe_start(struct feed *f, int *ret_stdin) {
        struct pipe_delivery *d = calloc(1, sizeof(*d));
        int fds[2], r;

        if (!d)
                return -ENOMEM;
        f->pipe = d;
        d->feed = f;
        d->can_splice = true;
        d->next_tick = USEC_INFINITY;
        d->read_end = TAKE_FD(f->session.pipe_read);
        d->write_end = TAKE_FD(f->session.pipe_write);
        if (d->read_end < 0 || d->write_end < 0) {
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return -errno;
                d->read_end = fds[0];
                d->write_end = fds[1];
                (void)fcntl(fds[1], F_SETPIPE_SZ, (int)f->input->pipe_size);
        }
        d->copy = malloc(SPLICE_MIN);
        if (!d->copy)
                return -ENOMEM;
        if (fcntl(d->write_end, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        r = fcntl(d->write_end, F_GETPIPE_SZ);
        flow_init(&d->flow, &f->tasks, r > 0 ? (uint64_t)r : 1u << 16);
        *ret_stdin = d->read_end;
        return 0;
}

static int pipe_begin(struct feed *f) {
        f->readers = 1;
        return producer_new(&f->lock, f->wake_fd, f->input, false, &producer_ops, f->pipe,
                            &f->pipe->producer);
}

static void pipe_finish(struct feed *f, bool success) {
        (void)look_at_pipe(f->pipe, now_boot());
        if (success)
                flow_finish(&f->pipe->flow);
        pipe_end_of_file(f->pipe);
        producer_stop(f->pipe->producer);
}

static void pipe_waits(struct feed *f, uint64_t now, uint64_t *ret_consumer, uint64_t *ret_producer) {
        *ret_consumer = f->pipe->consumer_wait;
        *ret_producer = f->pipe->producer_wait;
}

static void pipe_done(struct feed *f) {
        struct pipe_delivery *d = f->pipe;

        if (!d)
                return;
        d->producer = producer_end(d->producer);
        while (d->items) {
                struct item *i = d->items;

                DL_DELETE(d->items, i);
                (void)opened_free(i->opened);
                free(i->error);
                free(i);
        }
        while (d->checks) {
                struct to_check *c = d->checks;

                DL_DELETE(d->checks, c);
                (void)opened_free(c->opened);
                free(c);
        }
        for (unsigned b = 0; b < CHUNKS_AHEAD; b++)
                free(d->buffers[b]);
        flow_done(&d->flow);
        free(d->copy);
        d->write_end = close_fd(d->write_end);
        d->read_end = close_fd(d->read_end);
        free(d);
        f->pipe = NULL;
}

const struct delivery_ops delivery_pipe = {
        .begin = pipe_begin,
        .step = pipe_step,
        .look = pipe_look,
        .finish = pipe_finish,
        .cancel = pipe_cancel,
        .trim = pipe_trim,
        .client_new = pipe_client_new,
        .hunger = pipe_hunger,
        .waits = pipe_waits,
        .done = pipe_done,
};
