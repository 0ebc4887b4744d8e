/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that looks. Invariant: what it shares with the loop is in struct look under its mutex, and
 * belongs to whoever leaves last. */
#include "agentd/capture/look.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>

#include "agentd/capture/describe.h"
#include "agentd/capture/program.h"
#include "agentd/capture/threads.h"

/* Whose threads are looking now. What hangs in a file of /proc hangs for as long as a program of the user's
 * likes, its memory being on a file system of the user's own for example: no one's pile up. */
static pthread_mutex_t busy_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t busy[LOOKS_MAX];
static size_t n_busy;

static bool busy_enter(uint32_t uid) {
        size_t same = 0;
        bool room;

        (void)pthread_mutex_lock(&busy_mutex);
        for (size_t i = 0; i < n_busy; i++)
                same += busy[i] == uid;
        room = n_busy < LOOKS_MAX && same < LOOKS_OF_USER_MAX;
        if (room)
                busy[n_busy++] = uid;
        (void)pthread_mutex_unlock(&busy_mutex);
        return room;
}

static void busy_leave(uint32_t uid) {
        (void)pthread_mutex_lock(&busy_mutex);
        for (size_t i = 0; i < n_busy; i++)
                if (busy[i] == uid) {
                        busy[i] = busy[--n_busy];
                        break;
                }
        (void)pthread_mutex_unlock(&busy_mutex);
}

struct look {
        pthread_mutex_t mutex;
        atomic_uint references; /* the loop, the thread */
        bool abandoned;
        int fd;
        struct capture found;
        /* the request */
        char *proc, *unit, *directory;
        pid_t *pids;
        size_t n_pids;
        int signal;
        uint32_t uid;
        bool (*tell)(pid_t pid, const char *unit, int signal);
        char *(*stacks)(uint64_t slice, uint64_t cgroup_id);
        uint64_t slice, cgroup_id;
};

static void look_unref(struct look *l) {
        if (!l || atomic_fetch_sub(&l->references, 1) > 1)
                return;
        capture_done(&l->found);
        close_fd(l->fd);
        free(l->proc);
        free(l->unit);
        free(l->directory);
        free(l->pids);
        (void)pthread_mutex_destroy(&l->mutex);
        free(l);
}

void look_free(struct look *l) {
        if (!l)
                return;
        (void)pthread_mutex_lock(&l->mutex);
        l->abandoned = true;
        (void)pthread_mutex_unlock(&l->mutex);
        look_unref(l);
}

void look_take(struct look *l, struct capture *ret) {
        (void)pthread_mutex_lock(&l->mutex);
        l->abandoned = true;
        *ret = l->found;
        l->found = (struct capture){};
        (void)pthread_mutex_unlock(&l->mutex);
}

/* ---- in the thread ---- */

/* Takes t over. False: nobody wants it any more, or there is no room. */
static bool found(struct look *l, struct capture_thread *t) {
        struct capture_thread *more;
        bool wanted;

        (void)pthread_mutex_lock(&l->mutex);
        wanted = !l->abandoned && l->found.n < CAPTURE_THREADS_MAX;
        more = wanted ? realloc(l->found.threads, (l->found.n + 1) * sizeof(*more)) : NULL;
        if (more) {
                l->found.threads = more;
                more[l->found.n++] = *t;
                *t = (struct capture_thread){};
        }
        (void)pthread_mutex_unlock(&l->mutex);
        capture_thread_done(t);
        return more;
}

static bool count(struct look *l, uint32_t n) {
        bool wanted;

        (void)pthread_mutex_lock(&l->mutex);
        wanted = !l->abandoned;
        if (wanted)
                l->found.total += n;
        (void)pthread_mutex_unlock(&l->mutex);
        return wanted;
}

/* The first threads of all processes, then the others: none is left out for another's many. */
static void look_at_threads(struct look *l) {
        for (size_t i = 0; i < l->n_pids; i++) {
                struct capture_thread t;

                if (!count(l, threads_count(l->proc, l->pids[i])))
                        return;
                if (thread_read(l->proc, l->pids[i], l->pids[i], &t) >= 0 && !found(l, &t))
                        break;
        }
        for (size_t i = 0; i < l->n_pids; i++) {
                DIR *list = threads_open(l->proc, l->pids[i]);
                struct capture_thread t;
                bool wanted = true;
                pid_t tid;

                while (list && wanted && (tid = threads_next(list)) > 0)
                        if (tid != l->pids[i] && thread_read(l->proc, l->pids[i], tid, &t) >= 0)
                                wanted = found(l, &t);
                if (list)
                        (void)closedir(list);
                if (!wanted)
                        return;
        }
}

/* "TID function function ...": better than /proc's, which has all of it for the mightiest only. */
static void take_stack(struct look *l, char *line) {
        char *names;
        uint32_t tid = (uint32_t)strtoul(line, &names, 10);
        struct capture_thread *t;

        if (*names != ' ')
                return;
        for (char *p = names; *p; p++)
                if (*p == ' ')
                        *p = '\n';
        names = describe_stack(names + 1);
        (void)pthread_mutex_lock(&l->mutex);
        t = l->abandoned ? NULL : capture_find(&l->found, tid);
        if (t && names) {
                free(t->stack);
                t->stack = TAKE_PTR(names);
        }
        (void)pthread_mutex_unlock(&l->mutex);
        free(names);
}

static void take_stacks(struct look *l) {
        _cleanup_free_ char *text = l->stacks(l->slice, l->cgroup_id);
        char *save;

        for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save))
                take_stack(l, line);
}

static void told(struct look *l, pid_t pid, char *text) {
        struct capture_thread *t;

        (void)pthread_mutex_lock(&l->mutex);
        t = l->abandoned ? NULL : capture_find(&l->found, (uint32_t)pid);
        if (t && !t->python)
                t->python = TAKE_PTR(text);
        (void)pthread_mutex_unlock(&l->mutex);
        free(text);
}

/* Asked for all at once, and waited for once. */
static void ask_programs(struct look *l) {
        pid_t asked[CAPTURE_PYTHONS_MAX];
        struct program p[CAPTURE_PYTHONS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < l->n_pids && n < CAPTURE_PYTHONS_MAX; i++) {
                if (program_open(l->directory, l->pids[i], l->uid, p + n) < 0)
                        continue; /* it writes elsewhere, if at all */
                if (l->tell(l->pids[i], l->unit, l->signal))
                        asked[n++] = l->pids[i];
                else
                        program_close(p + n);
        }
        programs_wait(p, n);
        for (size_t i = 0; i < n; i++) {
                told(l, asked[i], program_read(p + i));
                program_close(p + i);
        }
}

static void *run(void *data) {
        struct look *l = data;

        (void)pthread_setname_np(pthread_self(), "capture");
        look_at_threads(l);
        if (l->stacks && l->cgroup_id > 0)
                take_stacks(l);
        if (l->signal > 0 && l->directory && l->tell)
                ask_programs(l);
        busy_leave(l->uid);
        (void)eventfd_write(l->fd, 1);
        look_unref(l);
        return NULL;
}

/* ---- start ---- */

static int start_thread(struct look *l) {
        pthread_attr_t attributes;
        pthread_t thread;
        int r;

        if (!busy_enter(l->uid))
                return -EBUSY;
        r = pthread_attr_init(&attributes);
        if (r != 0) {
                busy_leave(l->uid);
                return -r;
        }
        r = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        if (r == 0)
                r = pthread_attr_setstacksize(&attributes, 256 << 10);
        if (r == 0) {
                atomic_fetch_add(&l->references, 1);
                r = pthread_create(&thread, &attributes, run, l);
                if (r != 0)
                        atomic_fetch_sub(&l->references, 1);
        }
        if (r != 0)
                busy_leave(l->uid);
        (void)pthread_attr_destroy(&attributes);
        return -r;
}

int look_new(const struct look_request *q, struct look **ret, int *ret_fd) {
        struct look *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        *l = (struct look){ .references = 1,
                            .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                            .n_pids = q->n_pids,
                            .signal = q->signal,
                            .uid = q->uid,
                            .tell = q->tell,
                            .stacks = q->stacks,
                            .slice = q->slice,
                            .cgroup_id = q->cgroup_id };
        (void)pthread_mutex_init(&l->mutex, NULL);
        l->proc = strdup(q->proc);
        l->unit = strdup(q->unit ?: "");
        l->directory = q->directory ? strdup(q->directory) : NULL;
        l->pids = calloc(q->n_pids + 1, sizeof(*l->pids));
        r = l->fd < 0                                                             ? -errno
            : !l->proc || !l->unit || !l->pids || (q->directory && !l->directory) ? -ENOMEM
                                                                                  : 0;
        if (r >= 0) {
                memcpy(l->pids, q->pids, q->n_pids * sizeof(*l->pids));
                r = start_thread(l);
        }
        if (r < 0) {
                look_unref(l);
                return r;
        }
        *ret_fd = l->fd;
        *ret = l;
        return 0;
}
