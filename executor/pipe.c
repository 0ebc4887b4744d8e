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

#include "executor/child.h"
#include "executor/feed-internal.h"

#define TICK (100 * USEC_PER_MSEC)
#define TICK_HUNGRY (10 * USEC_PER_MSEC)
#define TICK_MAX USEC_PER_SEC
#define CHUNK_SIZE (1u << 20)
#define CHUNKS_AHEAD 4u
#define RANGES_AHEAD 4u
#define SPLICE_MIN (64u << 10)
#define SPLICE_MAX (1u << 20)
#define SPIN_MAX UINT64_C(200) /* microseconds that room in the pipe is waited for awake */
#define SPIN_AGAIN 64u         /* full pipes after which that is tried again */
#define SPIN_HOT 2u            /* times that it has helped, after which the pipe is made small */
#define SPIN_PIPE (128u << 10)
#define TURN_MAX (4u << 20) /* bytes written before the other descriptors are looked at */

enum item_kind {
        ITEM_CHUNK,
        ITEM_RANGE,
        ITEM_END,
        ITEM_AGAIN,
        ITEM_FAIL
};

/* What comes next in the stream, and then of its task. */
struct item {
        enum item_kind kind;
        uint64_t task, generation; /* another one: the trainer could not use what this is of */
        bool begun;                /* the stream has something of it */
        /* CHUNK */
        unsigned buffer;
        struct chunk chunk;
        size_t done;
        /* RANGE */
        struct opened *opened;
        int fd; /* the reader's */
        uint64_t first, last, at;
        bool spliced;
        char *error; /* FAIL */
        struct item *prev, *next;
};

/* A file whose pages are in the pipe: compared with the scan when the trainer has taken them. */
struct to_check {
        uint64_t task, generation, stream_end;
        struct opened *opened;
        struct to_check *prev, *next;
};

struct pipe_delivery {
        struct feed *feed;
        struct producer *producer;
        struct flow flow;
        int write_end; /* -EBADF once the trainer has been shown the end of file */
        int read_end;  /* kept for looking at what is unread in it */
        struct item *items;
        unsigned n_ranges;
        uint8_t *buffers[CHUNKS_AHEAD];
        bool buffer_used[CHUNKS_AHEAD];
        unsigned room; /* the one that the producer fills */
        struct to_check *checks;
        bool can_splice;
        bool pad;      /* the last task broke off inside a line */
        bool full;     /* the pipe took no more at the last attempt */
        uint64_t spin; /* microseconds; 0: it did not help lately */
        unsigned not_spun, hot;
        bool small;               /* the pipe is, for now */
        bool untold;              /* the trainer has to be told something first, and does not take it */
        struct client_span span;  /* the latest that was sent ... */
        uint64_t span_generation; /* ... and of which delivery of its task */
        uint8_t *copy;            /* bytes of a range on their way */
        size_t copy_size, copy_done;
        uint64_t tick, next_tick;
        uint64_t looked; /* when, for the waits */
        uint64_t consumer_wait, producer_wait;
};

static void wake_loop(struct feed *f) {
        uint64_t one = 1;

        (void)!write(f->wake_fd, &one, sizeof(one));
}

/* The task, as long as what was read of it then is what the trainer is to have. */
static struct task *task_of(struct pipe_delivery *d, uint64_t id, uint64_t generation) {
        struct task *t = tasks_find(&d->feed->tasks, id);

        return t && t->generation == generation ? t : NULL;
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

/* ---- writing ---- */

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
        struct task *t = task_of(d, i->task, i->generation);
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

static void end_of_file(struct pipe_delivery *d) {
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
static bool push(struct pipe_delivery *d) {
        size_t turn = 0;

        d->full = d->untold = false;
        while (d->write_end >= 0 && d->items && turn < TURN_MAX && !d->feed->paused) {
                ssize_t l = push_one(d, d->items);

                if (l < 0) {
                        d->feed->tasks.last = true; /* no more credits */
                        end_of_file(d);
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
                end_of_file(d); /* for the trainer, behind what it has yet to read */
        return d->write_end >= 0 && d->items && !d->feed->paused;
}

/* ---- what the trainer has taken ---- */

static void check_files(struct pipe_delivery *d, uint64_t consumed) {
        struct to_check *c;

        while ((c = d->checks) && c->stream_end <= consumed) {
                struct task *t = task_of(d, c->task, c->generation);
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
static bool look(struct pipe_delivery *d, uint64_t now) {
        uint64_t consumed = d->flow.consumed, apart = d->looked > 0 ? usec_sub(now, d->looked) : 0;
        int unread;

        if (d->read_end >= 0 && ioctl(d->read_end, FIONREAD, &unread) >= 0)
                consumed = d->flow.written - (uint64_t)unread;
        if (consumed == d->flow.written && d->write_end >= 0)
                d->consumer_wait += apart;
        else if (d->full)
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

static void tick(struct pipe_delivery *d, uint64_t now) {
        bool hungry = is_hungry(d);
        uint64_t shortest = hungry ? TICK_HUNGRY : TICK, longest = hungry ? TICK : TICK_MAX;

        d->tick = look(d, now) ? shortest : MIN(d->tick * 2, longest);
        d->tick = MAX(d->tick, shortest);
        d->next_tick = d->flow.written > d->flow.consumed ? now + d->tick : USEC_INFINITY;
}

static uint64_t pipe_step(struct feed *f, uint64_t now) {
        struct pipe_delivery *d = f->pipe;
        bool more;

        if (!producer_task(d->producer) && f->tasks.todo)
                producer_wake(d->producer);
        more = push(d);
        if (now >= d->next_tick || d->next_tick == USEC_INFINITY ||
            (is_hungry(d) && d->next_tick > now + TICK))
                tick(d, now);
        return more ? 0 : d->next_tick;
}

/* ---- orders, beginning and end ---- */

int pipe_poll_fd(const struct feed *f) {
        return f->pipe && f->pipe->items && !f->paused && !f->pipe->untold ? f->pipe->write_end : -EBADF;
}

static void pipe_look(struct feed *f) {
        (void)look(f->pipe, now_boot());
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
        (void)look(f->pipe, now_boot());
        if (success)
                flow_finish(&f->pipe->flow);
        end_of_file(f->pipe);
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
        if (d->producer) {
                producer_stop(d->producer);
                (void)pthread_mutex_unlock(&f->lock);
                d->producer = producer_free(d->producer);
                (void)pthread_mutex_lock(&f->lock);
        }
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
        .waits = pipe_waits,
        .done = pipe_done,
};
