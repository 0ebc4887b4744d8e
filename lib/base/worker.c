/* SPDX-License-Identifier: Apache-2.0 */
/* The thread for what may block. Invariant: an item is in exactly one of the two lists, or in the thread's
 * hands. */
#include "lib/base/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <utlist.h>

struct item {
        worker_function run, done;
        void *data;
        struct item *next, *prev;
};

struct worker {
        pthread_t thread;
        bool running;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool stop, abandoned;
        worker_function release;
        void *release_data;
        struct item *todo, *finished;
        int fd;
        sd_event_source *source;
};

static void destroy(struct worker *w) {
        struct item *i, *next;

        DL_FOREACH_SAFE (w->todo, i, next)
                free(i);
        DL_FOREACH_SAFE (w->finished, i, next)
                free(i);
        sd_event_source_disable_unref(w->source);
        close_fd(w->fd);
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        free(w);
}

static void *worker_main(void *userdata) {
        struct worker *w = userdata;
        const uint64_t one = 1;

        pthread_mutex_lock(&w->lock);
        while (!w->stop) {
                struct item *i = w->todo;

                if (!i) {
                        pthread_cond_wait(&w->wake, &w->lock);
                        continue;
                }
                DL_DELETE(w->todo, i);
                pthread_mutex_unlock(&w->lock);
                i->run(i->data);
                pthread_mutex_lock(&w->lock);
                DL_APPEND(w->finished, i);
                if (write(w->fd, &one, sizeof(one)) < 0)
                        abort(); /* an eventfd that nobody else holds */
        }
        pthread_mutex_unlock(&w->lock);
        if (w->abandoned) {
                w->release(w->release_data);
                destroy(w);
        }
        return NULL;
}

static int on_finished(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct worker *w = userdata;
        struct item *finished, *i, *next;
        uint64_t n;

        if (read(fd, &n, sizeof(n)) < 0)
                return 0;
        pthread_mutex_lock(&w->lock);
        finished = TAKE_PTR(w->finished);
        pthread_mutex_unlock(&w->lock);
        DL_FOREACH_SAFE (finished, i, next) {
                if (i->done)
                        i->done(i->data);
                free(i);
        }
        return 0;
}

static int new (sd_event *event, size_t stack, struct worker **ret) {
        _cleanup_(worker_free_p) struct worker *w = calloc(1, sizeof(*w));
        pthread_attr_t attributes;
        sigset_t all, old;
        int r;

        if (!w)
                return -ENOMEM;
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
        w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (w->fd < 0)
                return -errno;
        r = sd_event_add_io(event, &w->source, w->fd, EPOLLIN, on_finished, w);
        if (r < 0)
                return r;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, stack);
        sigfillset(&all); /* signals are the loop's */
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = -pthread_create(&w->thread, &attributes, worker_main, w);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attributes);
        if (r < 0)
                return r;
        w->running = true;
        *ret = TAKE_PTR(w);
        return 0;
}

int worker_new(sd_event *event, struct worker **ret) {
        return new (event, 256 << 10, ret);
}

int worker_new_deep(sd_event *event, struct worker **ret) {
        return new (event, 2 << 20, ret);
}

void worker_free(struct worker *w) {
        if (!w)
                return;
        if (w->running) {
                pthread_mutex_lock(&w->lock);
                w->stop = true;
                pthread_cond_signal(&w->wake);
                pthread_mutex_unlock(&w->lock);
                pthread_join(w->thread, NULL);
        }
        destroy(w);
}

void worker_abandon(struct worker *w, worker_function release, void *data) {
        struct item *i, *next;

        if (!w)
                return;
        w->source = sd_event_source_disable_unref(w->source); /* the loop's, not to be freed elsewhere */
        pthread_mutex_lock(&w->lock);
        w->stop = w->abandoned = true;
        w->release = release;
        w->release_data = data;
        DL_FOREACH_SAFE (w->todo, i, next)
                free(i);
        w->todo = NULL;
        pthread_detach(w->thread);
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock); /* from here on it is the thread's */
}

int worker_submit(struct worker *w, worker_function run, worker_function done, void *data) {
        struct item *i = malloc(sizeof(*i));

        if (!i)
                return -ENOMEM;
        *i = (struct item){ .run = run, .done = done, .data = data };
        pthread_mutex_lock(&w->lock);
        DL_APPEND(w->todo, i);
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        return 0;
}
