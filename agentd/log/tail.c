/* SPDX-License-Identifier: Apache-2.0 */
/* Following all executors' output. Invariant: the state file never runs ahead of what has been taken, so
 * after a crash some bytes may be delivered twice, under the same offsets, and none is left out but by
 * skipping ahead. */
#include "agentd/log/tail.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "agentd/log/follow.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

struct order {
        struct order *next;
        struct executor_id id;
        uint64_t real; /* when it was given */
        bool ended;
};

struct tail {
        sd_event_source *source;
        tail_handler handler;
        void *userdata;
        pthread_t thread;
        bool started;
        int wake_thread, wake_loop;

        pthread_mutex_t lock; /* of the following */
        struct order *orders, **orders_end;
        struct delivery *delivery; /* on offer; the thread waits until it has been taken */
        bool taken, stop;

        struct follow *follow; /* the thread's */
        bool refused;          /* the loop's: waits for tail_resume() */
};

/* ---- the thread ---- */

/* Carries out what the loop has ordered. False: stop. */
static bool take_orders(struct tail *t, struct delivery **ret_taken) {
        struct order *o, *next;
        bool stop;

        pthread_mutex_lock(&t->lock);
        o = t->orders;
        t->orders = NULL;
        t->orders_end = &t->orders;
        stop = t->stop;
        *ret_taken = NULL;
        if (t->taken) {
                *ret_taken = TAKE_PTR(t->delivery);
                t->taken = false;
        }
        pthread_mutex_unlock(&t->lock);
        for (; o; o = next) {
                next = o->next;
                if (o->ended)
                        follow_ended(t->follow, &o->id, now_boot());
                else
                        (void)follow_add(t->follow, &o->id, o->real);
                free(o);
        }
        return !stop;
}

/* Hands what is held to the loop. Returns whether there was anything. */
static bool hand_over(struct tail *t) {
        struct delivery *d = NULL;

        if (follow_deliver(t->follow, &d) < 0 || !d)
                return false;
        pthread_mutex_lock(&t->lock);
        t->delivery = d;
        pthread_mutex_unlock(&t->lock);
        (void)eventfd_write(t->wake_loop, 1);
        return true;
}

static void wait_for_change(struct tail *t, bool reading, bool more, uint64_t until) {
        struct pollfd fds[2] = { { .fd = t->wake_thread, .events = POLLIN },
                                 { .fd = reading ? follow_fd(t->follow) : -1, .events = POLLIN } };
        uint64_t msec = (usec_sub(until, now_boot()) + 999) / 1000;
        eventfd_t value;

        (void)poll(fds, 2, more ? 0 : until == USEC_INFINITY ? -1 : (int)MIN(msec, UINT64_C(60000)));
        if (fds[0].revents)
                (void)eventfd_read(t->wake_thread, &value);
}

static void *tail_thread(void *userdata) {
        struct tail *t = userdata;
        struct delivery *taken;
        bool offered = false;

        while (take_orders(t, &taken)) {
                uint64_t now = now_boot();
                bool reading, more;

                if (taken) {
                        follow_taken(t->follow, taken);
                        offered = false;
                }
                /* While a delivery waits to be taken, reading goes on until the buffers are full. */
                reading = !offered || !follow_full(t->follow);
                more = reading && follow_read(t->follow, now);
                if (!offered && follow_due(t->follow, now))
                        offered = hand_over(t);
                wait_for_change(t, reading, more, offered ? USEC_INFINITY : follow_next(t->follow));
        }
        delivery_free(taken);
        return NULL;
}

/* ---- the loop ---- */

static void offer(struct tail *t) {
        struct delivery *d;
        bool taken;

        pthread_mutex_lock(&t->lock);
        d = t->taken ? NULL : t->delivery;
        pthread_mutex_unlock(&t->lock);
        if (!d)
                return;
        /* The thread does not touch it before it is taken. */
        taken = t->handler(t->userdata, d->chunks, d->n) != -EAGAIN;
        t->refused = !taken;
        if (!taken)
                return;
        pthread_mutex_lock(&t->lock);
        t->taken = true;
        pthread_mutex_unlock(&t->lock);
        (void)eventfd_write(t->wake_thread, 1);
}

static int on_offer(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        eventfd_t value;

        (void)eventfd_read(fd, &value);
        offer(userdata);
        return 0;
}

int tail_new(sd_event *event, const struct tail_options *options, tail_handler handler, void *userdata,
             struct tail **ret) {
        struct tail *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return -ENOMEM;
        pthread_mutex_init(&t->lock, NULL);
        t->orders_end = &t->orders;
        t->handler = handler;
        t->userdata = userdata;
        t->wake_thread = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        t->wake_loop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (t->wake_thread < 0 || t->wake_loop < 0)
                r = -errno;
        else
                r = follow_new(options ? options->directory : NULL, options ? options->sync_socket : NULL,
                               options ? options->state : NULL, &t->follow);
        if (r >= 0)
                r = sd_event_add_io(event, &t->source, t->wake_loop, POLLIN, on_offer, t);
        if (r < 0) {
                tail_free(t);
                return r;
        }
        *ret = t;
        return 0;
}

void tail_free(struct tail *t) {
        struct order *next;

        if (!t)
                return;
        if (t->started) {
                pthread_mutex_lock(&t->lock);
                t->stop = true;
                pthread_mutex_unlock(&t->lock);
                (void)eventfd_write(t->wake_thread, 1);
                pthread_join(t->thread, NULL);
        }
        for (struct order *o = t->orders; o; o = next) {
                next = o->next;
                free(o);
        }
        delivery_free(t->delivery);
        follow_free(t->follow);
        sd_event_source_disable_unref(t->source);
        (void)close_fd(t->wake_thread);
        (void)close_fd(t->wake_loop);
        pthread_mutex_destroy(&t->lock);
        free(t);
}

static int order(struct tail *t, const struct executor_id *id, bool ended) {
        struct order *o = calloc(1, sizeof(*o));

        if (!o)
                return -ENOMEM;
        o->id = *id;
        o->real = now_real();
        o->ended = ended;
        pthread_mutex_lock(&t->lock);
        *t->orders_end = o;
        t->orders_end = &o->next;
        pthread_mutex_unlock(&t->lock);
        (void)eventfd_write(t->wake_thread, 1);
        return 0;
}

int tail_add(struct tail *t, const struct executor_id *id) {
        return order(t, id, false);
}

int tail_ended(struct tail *t, const struct executor_id *id) {
        return order(t, id, true);
}

int tail_start(struct tail *t) {
        sigset_t all, old;
        int r;

        if (t->started)
                return 0;
        /* Signals are the main thread's. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = -pthread_create(&t->thread, NULL, tail_thread, t);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        t->started = r >= 0;
        return r;
}

void tail_resume(struct tail *t) {
        if (t->refused)
                offer(t);
}
