/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to the trainer's standard input: what is simply a range of a local file goes there by splice,
 * without a copy. Invariants: a byte is written at most once; what a task is in the queue for happens in its
 * order. */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <utlist.h>

#include "executor/feed/pipe-internal.h"

#define SPLICE_MAX (1u << 20)
#define SPIN_MAX UINT64_C(200) /* microseconds that room in the pipe is waited for awake */
#define SPIN_AGAIN 64u         /* full pipes after which that is tried again */
#define SPIN_HOT 2u            /* times that it has helped, after which the pipe is made small */
#define SPIN_PIPE (128u << 10)
#define TURN_MAX (4u << 20) /* bytes written before the other descriptors are looked at */

static void item_free(struct pipe_delivery *d, struct item *i) {
        DL_DELETE(d->items, i);
        if (i->kind == ITEM_CHUNK)
                d->buffer_used[i->buffer] = false;
        if (i->kind == ITEM_RANGE)
                d->n_ranges--;
        (void)opened_free(i->opened);
        free(i->error);
        free(i);
        producer_wake(d->producer);
}

static ssize_t pipe_error(struct pipe_delivery *d, int error) {
        if (error == EAGAIN || error == EINTR) {
                d->full = error == EAGAIN;
                return 0;
        }
        if (error != EPIPE)
                fprintf(stderr, "primus-executor: cannot write to the trainer's pipe: %s\n", strerror(error));
        return -error;
}

static struct task_mark chunk_from(const struct chunk *c) {
        return (struct task_mark){ c->position, c->flags & CHUNK_COUNTED ? c->skip : 0 };
}

/* Tells a trainer that says itself what counts where in the stream it is. 1; 0: not now. */
static int tell_span(struct pipe_delivery *d, const struct task *t, uint64_t position, uint64_t skip,
                     uint32_t flags) {
        struct client_span span = { .stream = d->flow.written,
                                    .position = position,
                                    .task = t->id,
                                    .skip = skip,
                                    .source = t->grant.source,
                                    .flags = flags };
        struct client *c;

        if (!ack_by_client(d->feed->ack))
                return 1;
        if (flags == 0 && d->span.task == t->id && d->span_generation == t->generation &&
            d->span.flags == 0 && d->span.position + (span.stream - d->span.stream) == position)
                return 1; /* as it follows from the one before */
        if (memcmp(&d->span, &span, sizeof(span)) == 0 && d->span_generation == t->generation)
                return 1; /* told, while the trainer was not reading it */
        c = clients_first(d->feed);
        d->untold = true;
        if (!c || !client_flushed(c))
                return 0;
        /* A task that the trainer could not use comes again: the former delivery ends here. */
        if (d->span.task == t->id && d->span_generation != t->generation &&
            !(d->span.flags & CLIENT_SPAN_END)) {
                d->span.stream = span.stream;
                d->span.flags = CLIENT_SPAN_END;
                if (client_send(c, CLIENT_SPAN, &d->span, sizeof(d->span), -EBADF) < 0)
                        return 0;
        }
        if (client_send(c, CLIENT_SPAN, &span, sizeof(span), -EBADF) < 0)
                return 0;
        d->span = span;
        d->span_generation = t->generation;
        d->untold = !client_flushed(c);
        return !d->untold;
}

static struct task_mark chunk_to(const struct chunk *c) {
        if (!(c->flags & CHUNK_COUNTED) || c->end > c->position)
                return (struct task_mark){ c->end, 0 };
        return (struct task_mark){ c->position, c->skip + c->records };
}

/* Whether the chunk's bytes are the task's, one to one; a newline may have been added. */
static bool is_by_byte(const struct chunk *c) {
        uint64_t n = c->end - c->position;

        return !(c->flags & (CHUNK_COUNTED | CHUNK_HEADER)) && c->size >= n && c->size - n <= 1;
}

/* Each push returns bytes written (or 1 for other progress), 0: not now, < 0: the pipe is over. */
static ssize_t push_chunk(struct pipe_delivery *d, struct item *i, struct task *t) {
        const struct chunk *c = &i->chunk;
        ssize_t l;

        if (!i->begun) {
                int r;

                if (!t || t->place != PLACE_HELD) {
                        item_free(d, i);
                        return 1;
                }
                if ((r = tell_span(d, t, c->position, chunk_from(c).skip,
                                   c->flags & CHUNK_COUNTED ? CLIENT_SPAN_COUNTED : 0)) <= 0)
                        return r;
                tasks_begin(t, chunk_from(c));
                r = flow_begin(&d->flow, i->task, chunk_from(c), chunk_to(c), is_by_byte(c), c->records);
                if (r < 0)
                        return 0; /* memory may come back */
                i->begun = true;
        }
        l = write(d->write_end, d->buffers[i->buffer] + i->done, c->size - i->done);
        if (l < 0)
                return pipe_error(d, errno);
        i->done += (size_t)l;
        flow_wrote(&d->flow, (uint64_t)l);
        if (i->done == c->size) {
                d->feed->counters.records += c->records;
                flow_end(&d->flow, chunk_to(c));
                item_free(d, i);
        }
        return l;
}

/* The file is not what it was any more. */
static ssize_t range_broken(struct pipe_delivery *d, struct item *i, struct task *t, const char *why) {
        char error[READ_ERROR_MAX];
        char byte = '\n';

        snprintf(error, sizeof(error), "%.350s: %s", i->opened->grant.path, why);
        /* What cannot be read any more may have been the middle of a line. */
        if (i->at > i->first)
                d->pad = pread(i->fd, &byte, 1, (off_t)i->at - 1) != 1 || byte != '\n';
        flow_end(&d->flow, (struct task_mark){ i->at, 0 });
        if (t)
                tasks_fail(&d->feed->tasks, t, error);
        d->copy_size = d->copy_done = 0;
        item_free(d, i);
        return 1;
}

static ssize_t push_copy(struct pipe_delivery *d, struct item *i, struct task *t) {
        ssize_t l;

        if (d->copy_done == d->copy_size) {
                do
                        l = pread(i->fd, d->copy, (size_t)MIN(i->last - i->at, (uint64_t)SPLICE_MIN),
                                  (off_t)i->at);
                while (l < 0 && errno == EINTR);
                if (l <= 0)
                        return range_broken(d, i, t, l < 0 ? strerror(errno) : "changed while it was read");
                d->copy_size = (size_t)l;
                d->copy_done = 0;
        }
        l = write(d->write_end, d->copy + d->copy_done, d->copy_size - d->copy_done);
        if (l < 0)
                return pipe_error(d, errno);
        d->copy_done += (size_t)l;
        i->at += (uint64_t)l;
        flow_wrote(&d->flow, (uint64_t)l);
        return l;
}

static ssize_t push_splice(struct pipe_delivery *d, struct item *i, struct task *t) {
        off_t offset = (off_t)i->at;
        ssize_t l =
                splice(i->fd, &offset, d->write_end, NULL, (size_t)MIN(i->last - i->at, (uint64_t)SPLICE_MAX),
                       SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

        if (l < 0 && errno == EINVAL)
                d->can_splice = false; /* a file system without it */
        if (l < 0 && (errno == EAGAIN || errno == EINTR || errno == EPIPE))
                return pipe_error(d, errno);
        if (l <= 0)
                return push_copy(d, i, t); /* reading failed, or it is shorter than it was: let pread say */
        i->spliced = true;
        i->at += (uint64_t)l;
        flow_wrote(&d->flow, (uint64_t)l);
        return l;
}

/* The last byte of the range is in the pipe. */
static ssize_t range_over(struct pipe_delivery *d, struct item *i, struct task *t) {
        struct to_check *check;
        char error[READ_ERROR_MAX];
        int r;

        if (t && i->begun && (r = tell_span(d, t, i->at, 0, CLIENT_SPAN_END)) <= 0)
                return r;
        if (i->begun)
                flow_end(&d->flow, (struct task_mark){ i->at, 0 });
        /* Pages that were spliced are the file's own until the trainer takes them: those are compared then.
         */
        check = i->spliced ? calloc(1, sizeof(*check)) : NULL;
        if (check) {
                *check = (struct to_check){ i->task, i->generation, d->flow.written, TAKE_PTR(i->opened) };
                DL_APPEND(d->checks, check);
        } else if (t && reader_check(i->opened->reader, error) < 0)
                tasks_fail(&d->feed->tasks, t, error);
        else if (t)
                tasks_whole(&d->feed->tasks, t);
        item_free(d, i);
        return 1;
}

static ssize_t push_range(struct pipe_delivery *d, struct item *i, struct task *t) {
        if (!i->begun) {
                int r;

                if (!t || t->place != PLACE_HELD) {
                        item_free(d, i);
                        return 1;
                }
                if (i->first == i->last)
                        return range_over(d, i, t);
                if ((r = tell_span(d, t, i->first, 0, 0)) <= 0)
                        return r;
                tasks_begin(t, (struct task_mark){ i->first, 0 });
                if (flow_begin(&d->flow, i->task, (struct task_mark){ i->first, 0 },
                               (struct task_mark){ i->last, 0 }, true, 0) < 0)
                        return 0;
                i->begun = true;
        }
        if (i->at == i->last)
                return range_over(d, i, t);
        if (!t && d->copy_done == d->copy_size)
                return range_broken(d, i, t, "dropped");
        if (d->can_splice && d->copy_done == d->copy_size && i->last - i->at >= SPLICE_MIN)
                return push_splice(d, i, t);
        return push_copy(d, i, t);
}

static ssize_t push_one(struct pipe_delivery *d, struct item *i) {
        struct task *t = pipe_task(d, i->task, i->generation);
        int r;

        if (d->pad) {
                /* The task before broke off: its last line must not run into the next one. */
                if (write(d->write_end, "\n", 1) < 0)
                        return pipe_error(d, errno);
                flow_skip(&d->flow, 1);
                d->pad = false;
        }
        switch (i->kind) {
        case ITEM_CHUNK:
                return push_chunk(d, i, t);
        case ITEM_RANGE:
                return push_range(d, i, t);
        case ITEM_END:
                if (t && d->span.task == t->id &&
                    (r = tell_span(d, t, t->delivered.position, 0, CLIENT_SPAN_END)) <= 0)
                        return r;
                if (t)
                        tasks_whole(&d->feed->tasks, t);
                break;
        case ITEM_AGAIN:
                if (t)
                        tasks_again(&d->feed->tasks, t);
                break;
        case ITEM_FAIL:
                if (t)
                        tasks_fail(&d->feed->tasks, t, i->error ? i->error : "out of memory");
                break;
        }
        item_free(d, i);
        return 1;
}

void pipe_end_of_file(struct pipe_delivery *d) {
        d->write_end = close_fd(d->write_end);
}

/* Nothing more will be written. */
static bool is_all_written(const struct pipe_delivery *d) {
        const struct feed *f = d->feed;

        return f->tasks.last && !d->items && !producer_task(d->producer) && !tasks_may_take(&f->tasks, d);
}

static void set_small(struct pipe_delivery *d, bool small) {
        if (d->small == small || d->flow.pipe_size <= SPIN_PIPE)
                return;
        /* Not while more than that is in it: then the next time. */
        if (fcntl(d->write_end, F_SETPIPE_SZ, small ? (int)SPIN_PIPE : (int)d->flow.pipe_size) >= 0)
                d->small = small;
}

/* A trainer that does nothing but read has emptied the pipe sooner than we could be put to sleep and woken,
 * and would have to be woken itself then. So for as long as that helps, room is waited for awake, a moment.
 * (poll() takes no lock of the pipe; the next splice then waits for the end of the trainer's read.) And as
 * the pipe's lock is held for as long as one read() takes, such a trainer is served best by a small pipe,
 * which both sides leave before the other one falls asleep: twice as fast as by one of 1 MiB. */
static bool spin_for_room(struct pipe_delivery *d) {
        struct pollfd room = { .fd = d->write_end, .events = POLLOUT };
        uint64_t begin;

        if (d->spin == 0) {
                if (++d->not_spun < SPIN_AGAIN)
                        return false;
                d->spin = SPIN_MAX;
        }
        d->not_spun = 0;
        begin = now_boot();
        do
                if (poll(&room, 1, 0) > 0) {
                        d->spin = SPIN_MAX;
                        if (d->hot < SPIN_HOT)
                                d->hot++;
                        else
                                set_small(d, true);
                        return true;
                }
        while (now_boot() - begin < d->spin);
        d->spin = d->spin > SPIN_MAX / 8 ? d->spin / 2 : 0;
        if (d->spin > 0)
                return false;
        d->hot = 0;
        set_small(d, false);
        return false;
}

/* Writes what the pipe takes. Returns whether more could be written at once. */
bool pipe_push(struct pipe_delivery *d) {
        size_t turn = 0;

        d->full = d->untold = false;
        while (d->write_end >= 0 && d->items && turn < TURN_MAX && !d->feed->paused) {
                ssize_t l = push_one(d, d->items);

                if (l < 0) {
                        d->feed->tasks.last = true; /* no more credits */
                        pipe_end_of_file(d);
                }
                if (l == 0 && d->full && spin_for_room(d)) {
                        d->full = false;
                        continue;
                }
                if (l <= 0)
                        return false;
                turn += (size_t)l;
        }
        if (d->write_end >= 0 && is_all_written(d))
                pipe_end_of_file(d); /* for the trainer, behind what it has yet to read */
        return d->write_end >= 0 && d->items && !d->feed->paused;
}
