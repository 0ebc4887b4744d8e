/* SPDX-License-Identifier: Apache-2.0 */
/* What a trainer says of its training, to primus-agentd on $PRIMUS_SOCKET. Invariants: a report never waits
 * for anybody but for a moment's copying, and makes a system call at most once in a second; what could not be
 * said yet is joined to what follows, so a host that is away costs resolution and no memory. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/primus/agent.h"
#include "lib/primus/primus.h"
#include "lib/wire/feed.h"
#include "lib/wire/metrics.h"

#define APART_USEC USEC_PER_SEC           /* what comes within that is one point */
#define RETRY_USEC (5 * USEC_PER_SEC)     /* agentd is not there */
#define LAST_WORD_USEC (2 * USEC_PER_SEC) /* at the end of the program */
#define SLOTS (4 * METRIC_NAMES_MAX)      /* of the hash table, a power of two */

/* At first every report is a point of its own, as far as a packet goes, so that a short job has a curve as
 * well; of a series that is longer already, what comes between two packets is one. */
#define POINTS_MAX 16u
#define DETAILED 256u

struct series {
        char name[METRIC_NAME_MAX + 1];
        struct metric_point points[POINTS_MAX]; /* that were not said yet */
        uint32_t n;
        uint32_t width, filled; /* so many reports are one point, but so many the last of them */
        uint32_t said;          /* points */
        uint64_t usec;          /* of the latest report: each has a time of its own, by which it is known */
};

/* What was said last, for an agent that ended before it has passed it on: the next one is told again. Points
 * that masterd has already change nothing. */
#define SAID_AGAIN 4u
struct said {
        size_t size;
        uint8_t packet[sizeof(struct feed_metrics) + METRICS_BYTES_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
        bool begun, nowhere; /* nowhere: not in an executor */
        bool forked;         /* this process is a child of the one that has begun */
        pthread_cond_t changed;
        bool waits; /* the thread waits for something to be said */
        bool hurry; /* somebody waits for it to be said */
        uint32_t n_known;
        struct series series[METRIC_NAMES_MAX];
        uint32_t n;
        uint16_t slots[SLOTS]; /* index + 1 */
        char path[108];
        uint32_t local;
        struct said said[SAID_AGAIN]; /* a ring, the thread's alone */
        uint32_t n_said;
} state;

/* ---- with the lock held ---- */

static uint32_t hash_name(const char *name) {
        uint32_t h = 2166136261u; /* FNV-1a */

        for (; *name; name++)
                h = (h ^ (uint8_t)*name) * 16777619u;
        return h;
}

/* Negative: -EINVAL, -ENOSPC. */
static int find_series(const char *name, struct series **ret) {
        uint32_t at = hash_name(name) % SLOTS;

        for (; state.slots[at]; at = (at + 1) % SLOTS)
                if (strcmp(state.series[state.slots[at] - 1].name, name) == 0) {
                        *ret = state.series + state.slots[at] - 1;
                        return 0;
                }
        if (!metric_name_is_valid(name))
                return -EINVAL;
        if (state.n == METRIC_NAMES_MAX)
                return -ENOSPC;
        *ret = state.series + state.n++;
        state.slots[at] = (uint16_t)state.n;
        strcpy((*ret)->name, name);
        return 0;
}

/* All names together fit one packet. */
static uint32_t points_of(const struct series *s) {
        uint32_t fit = METRICS_BYTES_MAX / METRIC_POINT_BYTES_MAX / state.n;

        return s->said >= DETAILED ? 1 : MAX(MIN(fit, POINTS_MAX), 1u);
}

static void join_neighbours(struct series *s) {
        uint32_t n = metric_halve(s->points, s->n, &s->width, &s->filled);

        state.n_known -= s->n - n;
        s->n = n;
        if (s->n >= points_of(s)) { /* the last one takes all that comes */
                s->width = UINT32_MAX;
                s->filled = 1;
        }
}

static void add_point(struct series *s, uint64_t step, uint64_t now, double value) {
        struct metric_point p = metric_single(step, MAX(now, s->usec + 1), value);

        s->usec = p.usec;
        if (s->n == 0)
                s->width = 1;
        else if (s->filled < s->width) {
                s->points[s->n - 1] = metric_join(s->points + s->n - 1, &p);
                s->filled++;
                return;
        }
        if (s->n >= points_of(s)) {
                join_neighbours(s);
                add_point(s, step, now, value);
                return;
        }
        s->points[s->n++] = p;
        s->filled = 1;
        state.n_known++;
}

static size_t pack_points(uint8_t *to) {
        const struct feed_metrics head = { .local = state.local };
        uint8_t *at = mempcpy(to, &head, sizeof(head));

        for (uint32_t i = 0; i < state.n; i++) {
                while (state.series[i].n > points_of(state.series + i)) /* names have come meanwhile */
                        join_neighbours(state.series + i);
                for (uint32_t k = 0; k < state.series[i].n; k++)
                        at = metric_put(at, state.series[i].name, state.series[i].points + k);
        }
        return (size_t)(at - to);
}

static void forget_points(void) {
        for (struct series *s = state.series; s < state.series + state.n; s++) {
                s->said = MIN(s->said + s->n, DETAILED);
                s->n = 0;
        }
        state.n_known = 0;
}

/* Waits until something has happened, at most until then (CLOCK_MONOTONIC). False: it is that late. */
static bool wait_until(uint64_t usec) {
        struct timespec t = { .tv_sec = (time_t)(usec / USEC_PER_SEC),
                              .tv_nsec = (long)(usec % USEC_PER_SEC) * 1000 };

        return pthread_cond_timedwait(&state.changed, &lock, &t) != ETIMEDOUT;
}

/* ---- the thread ---- */

static uint64_t now_monotonic(void) {
        return clock_usec(CLOCK_MONOTONIC);
}

/* The oldest of them is where the next is packed. */
static int say_again(int fd) {
        int r = 0;

        for (uint32_t i = 1; i < SAID_AGAIN && r >= 0; i++) {
                const struct said *s = state.said + (state.n_said + i) % SAID_AGAIN;

                if (s->size > 0)
                        r = agent_say(fd, FEED_METRICS, s->packet, s->size, MSG_DONTWAIT);
        }
        return r;
}

/* One round: dials where that has to be, and says what is known. The lock is held, and let go meanwhile where
 * something may block; what is said in that time is there afterwards. */
static int say_points(int *fd) {
        struct said *now = state.said + state.n_said % SAID_AGAIN;
        char why[AGENT_WHY_MAX];
        int r = 0;

        if (*fd < 0) {
                pthread_mutex_unlock(&lock);
                r = agent_dial(state.path, why);
                pthread_mutex_lock(&lock);
                if (r < 0)
                        return r;
                *fd = r;
                r = say_again(r);
        }
        now->size = pack_points(now->packet);
        r = r < 0 ? r : agent_say(*fd, FEED_METRICS, now->packet, now->size, MSG_DONTWAIT);
        if (r >= 0) {
                state.n_said++;
                forget_points();
        } else if (r != -EAGAIN) {
                (void)close(*fd);
                *fd = -EBADF;
        }
        return r;
}

static void *run_thread(void *userdata) {
        uint64_t due = 0;
        int fd = -EBADF, r;

        pthread_mutex_lock(&lock);
        for (;;) {
                while (state.n_known == 0) {
                        state.waits = true;
                        pthread_cond_wait(&state.changed, &lock);
                }
                state.waits = false;
                while (!state.hurry && wait_until(due))
                        ;
                r = say_points(&fd);
                if (r == -EPIPE || r == -ECONNRESET) /* agentd has a new link, and hung up on all */
                        r = say_points(&fd);
                pthread_cond_broadcast(&state.changed);
                due = now_monotonic() + (r < 0 && r != -EAGAIN ? RETRY_USEC : APART_USEC);
                /* It was tried, and somebody still waits: not in a circle. */
                if (r < 0 && state.hurry)
                        (void)wait_until(now_monotonic() + 100 * USEC_PER_MSEC);
        }
        return NULL;
}

/* ---- for the trainer ---- */

static void in_child(void) {
        state.forked = true;
        (void)pthread_mutex_init(&lock, NULL); /* whoever had it is not here */
}

static void say_last_word(void) {
        (void)primus_report_flush(LAST_WORD_USEC);
}

/* Of what starts several processes in an executor. LOCAL_RANK alone may be that of the executor on its host.
 */
static const char *local_rank(void) {
        return getenv("TORCHELASTIC_RUN_ID") ? getenv("LOCAL_RANK")
                                             : getenv("OMPI_COMM_WORLD_LOCAL_RANK") ?: getenv("MPI_LOCALRANKID");
}

static int begin_thread(void) {
        const char *local = local_rank();
        pthread_condattr_t clock;
        pthread_t thread;

        state.begun = true;
        state.nowhere = agent_path(state.path) < 0;
        if (state.nowhere)
                return 0;
        if (local && *local >= '0' && *local <= '9')
                state.local = (uint32_t)strtoul(local, NULL, 10) % (METRIC_LOCAL_MAX + 1);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&state.changed, &clock);
        pthread_condattr_destroy(&clock);
        if (agent_thread(&thread, run_thread, NULL) != 0) {
                state.begun = false;
                return -EAGAIN;
        }
        (void)pthread_detach(thread);
        (void)pthread_atfork(NULL, NULL, in_child);
        (void)atexit(say_last_word);
        return 0;
}

static int report_locked(uint64_t step, const char *const names[], const double values[], size_t n) {
        uint64_t at = now_real();
        struct series *s;
        int r = state.begun ? 0 : begin_thread();

        if (r < 0 || state.nowhere)
                return r;
        if (state.forked)
                return -ECHILD;
        for (size_t i = 0; i < n; i++) {
                int k = find_series(names[i], &s);
                if (k >= 0)
                        add_point(s, step, at, values[i]);
                r = r < 0 ? r : k;
        }
        if (state.waits && state.n_known > 0) {
                state.waits = false;
                pthread_cond_broadcast(&state.changed);
        }
        return r;
}

int primus_report(uint64_t step, const char *const names[], const double values[], size_t n) {
        int r;

        pthread_mutex_lock(&lock);
        r = report_locked(step, names, values, n);
        pthread_mutex_unlock(&lock);
        return r;
}

int primus_report_flush(uint64_t timeout_usec) {
        uint64_t end = usec_add(now_monotonic(), timeout_usec);
        int r = 0;

        pthread_mutex_lock(&lock);
        while (state.begun && !state.nowhere && !state.forked && state.n_known > 0 && r == 0) {
                state.hurry = true;
                pthread_cond_broadcast(&state.changed);
                if (!wait_until(MIN(end, UINT64_C(1) << 60)))
                        r = -ETIMEDOUT;
        }
        state.hurry = false;
        pthread_mutex_unlock(&lock);
        return r;
}
