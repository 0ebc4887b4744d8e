/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of kept logs. Invariant: a task is owned by exactly one of the waiting list, the thread, and the
 * done list. */
#include "masterd/relay/logs-worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "masterd/relay/logs-kept.h"
#include "masterd/relay/logs.h"

struct task_list {
        struct log_task *head, **end;
};

struct log_worker {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct task_list waiting, finished;
        size_t bytes; /* of waiting appends */
        uint64_t dropped;
        bool stop, started;
        int dir_fd, event_fd;
        sd_event_source *source;
};

static void list_init(struct task_list *l) {
        l->head = NULL;
        l->end = &l->head;
}

static void list_append(struct task_list *l, struct log_task *t) {
        t->next = NULL;
        *l->end = t;
        l->end = &t->next;
}

static void task_free(struct log_task *t) {
        if (!t)
                return;
        free(t->data);
        free(t);
}

static void list_clear(struct task_list *l) {
        while (l->head) {
                struct log_task *t = l->head;
                l->head = t->next;
                task_free(t);
        }
        list_init(l);
}

struct log_task *log_task_new(enum log_task_kind kind, const struct executor_id *id) {
        struct log_task *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->kind = kind;
        t->id = *id;
        return t;
}

static void perform(struct log_worker *w, struct log_task *t) {
        char *text = NULL;
        size_t size = 0;
        uint64_t start = 0;

        switch (t->kind) {
        case LOG_TASK_APPEND:
                t->result = kept_append(w->dir_fd, &t->id, t->offset, t->data, t->size);
                break;
        case LOG_TASK_READ:
                t->result = kept_read(w->dir_fd, &t->id, t->offset, t->tail, &text, &size, &start);
                if (t->result >= 0) {
                        t->data = text;
                        t->size = size;
                        t->offset = start;
                }
                break;
        case LOG_TASK_ERROR:
                t->result = kept_read(w->dir_fd, &t->id, 0, 0, &text, &size, &start);
                if (t->result >= 0 && logs_error_line(text ? text : "", size, t->line, sizeof(t->line)) == 0)
                        t->line[0] = 0;
                free(text);
                break;
        case LOG_TASK_FORGET:
                t->result = kept_forget(w->dir_fd, t->id.job);
                break;
        }
}

static void *run(void *userdata) {
        struct log_worker *w = userdata;

        pthread_mutex_lock(&w->lock);
        for (;;) {
                struct log_task *t = w->waiting.head;

                if (!t) {
                        if (w->stop)
                                break;
                        pthread_cond_wait(&w->wake, &w->lock);
                        continue;
                }
                w->waiting.head = t->next;
                if (!t->next)
                        w->waiting.end = &w->waiting.head;
                if (t->kind == LOG_TASK_APPEND)
                        w->bytes -= t->size;
                pthread_mutex_unlock(&w->lock);
                perform(w, t);
                pthread_mutex_lock(&w->lock);
                if (t->done) {
                        list_append(&w->finished, t);
                        (void)eventfd_write(w->event_fd, 1);
                } else
                        task_free(t);
        }
        pthread_mutex_unlock(&w->lock);
        return NULL;
}

static int on_finished(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct log_worker *w = userdata;
        struct log_task *t;
        eventfd_t n;

        (void)eventfd_read(fd, &n);
        pthread_mutex_lock(&w->lock);
        t = w->finished.head;
        list_init(&w->finished);
        pthread_mutex_unlock(&w->lock);
        while (t) {
                struct log_task *next = t->next;
                t->done(t, t->userdata);
                task_free(t);
                t = next;
        }
        return 0;
}

/* Drops the oldest append; false where none waits. */
static bool drop_oldest(struct log_worker *w) {
        for (struct log_task **p = &w->waiting.head; *p; p = &(*p)->next) {
                struct log_task *t = *p;
                if (t->kind != LOG_TASK_APPEND)
                        continue;
                *p = t->next;
                if (!t->next)
                        w->waiting.end = p;
                w->bytes -= t->size;
                w->dropped++;
                task_free(t);
                return true;
        }
        return false;
}

void log_worker_push(struct log_worker *w, struct log_task *t) {
        pthread_mutex_lock(&w->lock);
        if (t->kind == LOG_TASK_APPEND) {
                while (w->bytes + t->size > LOG_WORKER_BYTES_MAX && drop_oldest(w))
                        ;
                w->bytes += t->size;
        }
        list_append(&w->waiting, t);
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
}

uint64_t log_worker_dropped(struct log_worker *w) {
        uint64_t n;

        pthread_mutex_lock(&w->lock);
        n = w->dropped;
        pthread_mutex_unlock(&w->lock);
        return n;
}

int log_worker_new(sd_event *event, const char *directory, struct log_worker **ret) {
        struct log_worker *w = calloc(1, sizeof(*w));
        sigset_t all, old;
        int r;

        if (!w)
                return -ENOMEM;
        w->dir_fd = w->event_fd = -EBADF;
        list_init(&w->waiting);
        list_init(&w->finished);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
        r = make_directories(directory, 0700);
        if (r >= 0) {
                w->dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
                if (w->dir_fd < 0 || w->event_fd < 0)
                        r = -errno;
        }
        if (r >= 0)
                r = sd_event_add_io(event, &w->source, w->event_fd, EPOLLIN, on_finished, w);
        if (r >= 0) {
                /* Signals belong to the loop. */
                sigfillset(&all);
                pthread_sigmask(SIG_BLOCK, &all, &old);
                r = -pthread_create(&w->thread, NULL, run, w);
                pthread_sigmask(SIG_SETMASK, &old, NULL);
                w->started = r == 0;
        }
        if (r < 0) {
                log_worker_free(w);
                return r;
        }
        *ret = w;
        return 0;
}

void log_worker_free(struct log_worker *w) {
        if (!w)
                return;
        if (w->started) {
                pthread_mutex_lock(&w->lock);
                w->stop = true;
                pthread_cond_signal(&w->wake);
                pthread_mutex_unlock(&w->lock);
                pthread_join(w->thread, NULL);
        }
        sd_event_source_disable_unref(w->source);
        list_clear(&w->waiting);
        list_clear(&w->finished);
        (void)close_fd(w->event_fd);
        (void)close_fd(w->dir_fd);
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        free(w);
}
