/* SPDX-License-Identifier: Apache-2.0 */
/* The reading thread. Invariant: between two calls of the reader the lock is held, and whatever has been
 * asked meanwhile (stop, cancel, trim) is done before the next one. */
#include "executor/feed/producer.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define STACK_SIZE (512u << 10)

struct producer {
        pthread_t thread;
        pthread_mutex_t *lock;
        pthread_cond_t wake;
        int wake_fd;
        const struct input *input;
        bool framed;
        const struct producer_ops *ops;
        void *userdata;
        struct task *task;     /* at hand */
        struct opened *opened; /* of it; once its reader is there, others may trim and cancel it */
        bool stop, cancel, ended;
        char error[READ_ERROR_MAX];
};

struct opened *opened_free(struct opened *o) {
        if (!o)
                return NULL;
        (void)reader_close(o->reader);
        free((char *)o->grant.path);
        free(o);
        return NULL;
}

static int opened_new(const struct task *t, bool ranges_only, struct opened **ret) {
        struct opened *o = calloc(1, sizeof(*o));

        if (!o)
                return -ENOMEM;
        o->grant = t->grant;
        o->grant.offset = t->from.position;
        o->grant.skip = t->from.skip;
        if (ranges_only) /* whoever reads the range leaves out what is to be left out */
                o->grant.skip = o->grant.failures = 0;
        o->grant.path = strdup(t->grant.path);
        if (!o->grant.path) {
                free(o);
                return -ENOMEM;
        }
        *ret = o;
        return 0;
}

static const struct input_source *source_of(const struct producer *p, uint32_t source) {
        return source < p->input->n_sources ? &p->input->sources[source] : NULL;
}

/* Waits for room. 1, or -ECANCELED. */
static int wait_for_room(struct producer *p, uint8_t **ret, size_t *ret_size) {
        int r;

        while ((r = p->stop || p->cancel ? -ECANCELED : p->ops->room(p->userdata, ret, ret_size)) == 0)
                (void)pthread_cond_wait(&p->wake, p->lock);
        return r;
}

/* Opens the task, also as a range where the ops take one. Without the lock. 1: as a range; 0: to be read. */
static int open_task(struct producer *p, struct opened *o, const struct input_source *source,
                     struct reader **ret, int *ret_fd, uint64_t *ret_first, uint64_t *ret_last) {
        struct reader_request q = { .input = p->input,
                                    .source = source,
                                    .task = &o->grant,
                                    .cancel = &o->cancel,
                                    .framed = p->framed };
        int r;

        if (!q.source) {
                snprintf(p->error, sizeof(p->error),
                         "%.350s: is of source %" PRIu32 ", which the job does not have", o->grant.path,
                         o->grant.source);
                return -EINVAL;
        }
        r = reader_open(&q, ret, p->error);
        if (r < 0 || !p->ops->range)
                return r;
        r = reader_range(*ret, ret_fd, ret_first, ret_last, p->error);
        if (r == -EOPNOTSUPP && !p->ops->room) {
                snprintf(p->error, sizeof(p->error),
                         "%.350s: cannot be handed out as a range of a file; set input.mode to ring or stdin",
                         o->grant.path);
                return r;
        }
        return r == -EOPNOTSUPP ? 0 : r < 0 ? r : 1;
}

/* Reads it to its end. Lock held, before and after, but not meanwhile. */
static int read_chunks(struct producer *p, struct task *t, struct opened *o) {
        for (;;) {
                struct chunk c;
                uint8_t *buf;
                size_t size;
                int r = wait_for_room(p, &buf, &size);

                if (r < 0)
                        return r;
                (void)pthread_mutex_unlock(p->lock);
                r = reader_next(o->reader, buf, size, &c, p->error);
                (void)pthread_mutex_lock(p->lock);
                if (p->cancel)
                        return -ECANCELED;
                if (r == 0 || r == 1)
                        p->ops->end_known(p->userdata, t, reader_end(o->reader));
                if (r != 1)
                        return r;
                p->ops->chunk(p->userdata, t, &c);
        }
}

/* One task. Lock held, before and after, but not meanwhile. */
static void deliver_task(struct producer *p, struct task *t) {
        struct opened *o = NULL;
        struct reader *reader = NULL;
        uint64_t first = 0, last = 0;
        int fd = -EBADF, r = opened_new(t, !p->ops->room, &o);

        t->busy = true;
        p->task = t;
        p->opened = o;
        p->cancel = false;
        snprintf(p->error, sizeof(p->error), "%.350s: %s", t->grant.path, strerror(ENOMEM));
        if (r >= 0) {
                const struct input_source *source = source_of(p, o->grant.source);

                (void)pthread_mutex_unlock(p->lock);
                r = open_task(p, o, source, &reader, &fd, &first, &last);
                (void)pthread_mutex_lock(p->lock);
                o->reader = reader;
        }
        if (p->cancel)
                r = -ECANCELED;
        if (r == 1) {
                p->task = NULL;
                p->opened = NULL;
                p->ops->range(p->userdata, t, o, fd, first, last);
                return;
        }
        if (r >= 0)
                r = read_chunks(p, t, o);
        p->task = NULL;
        p->opened = NULL;
        p->ops->over(p->userdata, t, r, p->error);
        (void)pthread_mutex_unlock(p->lock);
        (void)opened_free(o);
        (void)pthread_mutex_lock(p->lock);
}

static void *run_producer(void *userdata) {
        struct producer *p = userdata;
        uint64_t one = 1;

        (void)pthread_mutex_lock(p->lock);
        while (!p->stop) {
                struct task *t = p->ops->take(p->userdata);

                if (t)
                        deliver_task(p, t);
                else
                        (void)pthread_cond_wait(&p->wake, p->lock);
        }
        p->ended = true;
        (void)!write(p->wake_fd, &one, sizeof(one));
        (void)pthread_mutex_unlock(p->lock);
        return NULL;
}

int producer_new(pthread_mutex_t *lock, int wake_fd, const struct input *input, bool framed,
                 const struct producer_ops *ops, void *userdata, struct producer **ret) {
        struct producer *p = calloc(1, sizeof(*p));
        pthread_attr_t attributes;
        int r;

        if (!p)
                return -ENOMEM;
        *p = (struct producer){ .lock = lock,
                                .wake_fd = wake_fd,
                                .input = input,
                                .framed = framed,
                                .ops = ops,
                                .userdata = userdata };
        r = pthread_attr_init(&attributes);
        if (r == 0) {
                (void)pthread_cond_init(&p->wake, NULL);
                (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
                r = pthread_create(&p->thread, &attributes, run_producer, p);
                (void)pthread_attr_destroy(&attributes);
        }
        if (r != 0) {
                free(p);
                return -r;
        }
        *ret = p;
        return 0;
}

void producer_wake(struct producer *p) {
        (void)pthread_cond_signal(&p->wake);
}

void producer_cancel(struct producer *p) {
        p->cancel = true;
        if (p->opened)
                atomic_store(&p->opened->cancel, true);
        producer_wake(p);
}

void producer_stop(struct producer *p) {
        p->stop = true;
        producer_cancel(p);
}

bool producer_ended(const struct producer *p) {
        return p->ended;
}

struct producer *producer_free(struct producer *p) {
        if (!p)
                return NULL;
        (void)pthread_join(p->thread, NULL);
        (void)pthread_cond_destroy(&p->wake);
        free(p);
        return NULL;
}

struct producer *producer_end(struct producer *p) {
        pthread_mutex_t *lock;

        if (!p)
                return NULL;
        lock = p->lock;
        producer_stop(p);
        (void)pthread_mutex_unlock(lock);
        (void)producer_free(p);
        (void)pthread_mutex_lock(lock);
        return NULL;
}

struct task *producer_task(const struct producer *p) {
        return p->task;
}

void producer_trim(struct producer *p, uint64_t position) {
        if (p->opened && p->opened->reader)
                reader_trim(p->opened->reader, position);
}
