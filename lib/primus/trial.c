/* SPDX-License-Identifier: Apache-2.0 */
/* A trial's results, to primus-agentd on $PRIMUS_SOCKET (lib/wire/feed.h). A thread of its own speaks:
 * training never waits for the host or the master. Invariant: a result is forgotten when it is TAKEN, and not
 * before; on a new connection all that are left are said again, in their order. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/primus/agent.h"
#include "lib/primus/primus.h"
#include "lib/wire/feed.h"

#define WAITING_MAX 1024u /* results that are not on disk yet; then primus_trial_report() waits */
#define CURVE_MAX_USEC UINT64_C(500000) /* a result waits for what was reported before it */

struct primus_trial {
        pthread_mutex_t lock;
        pthread_cond_t changed; /* fewer wait, or it is refused */
        pthread_t thread;
        pid_t pid;
        int wake; /* eventfd: there is something to send, or the end */
        bool over;
        struct feed_result waiting[WAITING_MAX]; /* a ring: from first on */
        uint32_t first, n, sent;
        uint64_t number;
        char socket[108];
        char refused[AGENT_WHY_MAX]; /* why the latest that was refused is */
        char trouble[AGENT_WHY_MAX]; /* why there is no connection */
        char error[512];
};

static int dial_agent(struct primus_trial *t) {
        char why[AGENT_WHY_MAX];
        int fd = agent_dial(t->socket, why);

        pthread_mutex_lock(&t->lock);
        snprintf(t->trouble, sizeof(t->trouble), "%s", why);
        if (fd < 0 && !*why)
                snprintf(t->trouble, sizeof(t->trouble), "primus-agentd does not answer: %s", strerror(-fd));
        pthread_mutex_unlock(&t->lock);
        return fd;
}

/* ---- the thread ---- */

/* A result may end its trial within milliseconds. What primus_report() was told of it before, and is said
 * once a second, is to be with the host by then; the result waits for that, but not long. */
static void say_curve(struct primus_trial *t) {
        bool any;

        pthread_mutex_lock(&t->lock);
        any = t->sent < MIN(t->n, FEED_RESULTS_MAX);
        pthread_mutex_unlock(&t->lock);
        if (any)
                (void)primus_report_flush(CURVE_MAX_USEC);
}

/* What is left to say, as far as may be under way. */
static int say_results(struct primus_trial *t, int fd) {
        int r = 0;

        say_curve(t);
        pthread_mutex_lock(&t->lock);
        while (r >= 0 && t->sent < MIN(t->n, FEED_RESULTS_MAX)) {
                struct feed_result result = t->waiting[(t->first + t->sent) % WAITING_MAX];

                r = agent_say(fd, FEED_RESULT, &result, sizeof(result), 0);
                t->sent += r >= 0;
        }
        pthread_mutex_unlock(&t->lock);
        return r;
}

static int take_results(struct primus_trial *t, const uint8_t *body, size_t size) {
        struct feed_taken taken;

        if (size < sizeof(taken))
                return -EPROTO;
        memcpy(&taken, body, sizeof(taken));
        if (taken.text_size > size - sizeof(taken))
                return -EPROTO;
        pthread_mutex_lock(&t->lock);
        if (taken.refused)
                snprintf(t->refused, sizeof(t->refused), "%.*s", (int)MIN(taken.text_size, 400u),
                         (const char *)body + sizeof(taken));
        /* They are answered in their order. */
        while (t->sent > 0 && t->waiting[t->first].number <= taken.number) {
                t->first = (t->first + 1) % WAITING_MAX;
                t->n--;
                t->sent--;
        }
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
        return 0;
}

static void drain_wake(struct primus_trial *t) {
        uint64_t n;

        (void)!read(t->wake, &n, sizeof(n));
}

/* Waits for a packet, or to be woken. Negative: the connection is over. */
static int listen_to(struct primus_trial *t, int fd) {
        struct pollfd p[] = { { .fd = fd, .events = POLLIN }, { .fd = t->wake, .events = POLLIN } };
        struct feed_header header;
        uint8_t body[1024];
        int r;

        if (poll(p, 2, -1) < 0)
                return errno == EINTR ? 0 : -errno;
        if (p[1].revents)
                drain_wake(t);
        if (!p[0].revents)
                return 0;
        r = agent_hear(fd, 0, &header, body, sizeof(body));
        return r > 0 && header.type == FEED_TAKEN ? take_results(t, body, header.size) : MIN(r, 0);
}

static bool is_over(struct primus_trial *t) {
        bool over;

        pthread_mutex_lock(&t->lock);
        over = t->over;
        pthread_mutex_unlock(&t->lock);
        return over;
}

static void *run_thread(void *userdata) {
        struct primus_trial *t = userdata;
        int pause = AGENT_RETRY_FIRST_MSEC;

        while (!is_over(t)) {
                struct pollfd p = { .fd = t->wake, .events = POLLIN };
                int fd = dial_agent(t), r = MIN(fd, 0);

                pthread_mutex_lock(&t->lock);
                t->sent = 0;
                pthread_mutex_unlock(&t->lock);
                while (r >= 0 && !is_over(t)) {
                        pause = AGENT_RETRY_FIRST_MSEC;
                        r = say_results(t, fd);
                        r = r < 0 ? r : listen_to(t, fd);
                }
                if (fd >= 0)
                        (void)close(fd);
                if (is_over(t))
                        break;
                /* agentd is started anew, or its link is. Somebody who has more to say is no reason to ask
                 * sooner. */
                if (poll(&p, 1, pause) > 0) {
                        drain_wake(t);
                        (void)poll(NULL, 0, is_over(t) ? 0 : AGENT_RETRY_FIRST_MSEC);
                }
                pause = MIN(2 * pause, AGENT_RETRY_MAX_MSEC);
        }
        return NULL;
}

/* ---- for the trainer ---- */

int primus_trial_open(struct primus_trial **ret) {
        char path[sizeof((*ret)->socket)];
        pthread_condattr_t clock;
        struct primus_trial *t;

        if (!getenv("PRIMUS_TRIAL") || agent_path(path) < 0)
                return -ENOENT;
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->pid = getpid();
        strcpy(t->socket, path);
        t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        pthread_mutex_init(&t->lock, NULL);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&t->changed, &clock);
        pthread_condattr_destroy(&clock);
        if (t->wake < 0 || agent_thread(&t->thread, run_thread, t) != 0) {
                if (t->wake >= 0)
                        (void)close(t->wake);
                free(t);
                return -EAGAIN;
        }
        *ret = t;
        return 0;
}

static void wake_thread(struct primus_trial *t) {
        uint64_t one = 1;

        (void)!write(t->wake, &one, sizeof(one));
}

/* Waits until fewer than limit are left. The lock is held. */
static int wait_below(struct primus_trial *t, uint32_t limit, uint64_t timeout_usec) {
        struct timespec end;

        clock_gettime(CLOCK_MONOTONIC, &end);
        timeout_usec = MIN(timeout_usec, UINT64_C(86400000000) * 365);
        end.tv_sec += (time_t)(timeout_usec / 1000000);
        end.tv_nsec += (long)(timeout_usec % 1000000) * 1000;
        if (end.tv_nsec >= 1000000000) {
                end.tv_sec++;
                end.tv_nsec -= 1000000000;
        }
        while (t->n >= limit)
                if (pthread_cond_timedwait(&t->changed, &t->lock, &end) == ETIMEDOUT)
                        return -ETIMEDOUT;
        return 0;
}

static int add_result(struct primus_trial *t, uint64_t step, double metric, bool invalid) {
        if (t->pid != getpid())
                return -ECHILD;
        pthread_mutex_lock(&t->lock);
        (void)wait_below(t, WAITING_MAX, UINT64_MAX);
        t->waiting[(t->first + t->n++) % WAITING_MAX] = (struct feed_result){
                .number = ++t->number, .step = step, .metric = metric, .invalid = invalid
        };
        pthread_mutex_unlock(&t->lock);
        wake_thread(t);
        return 0;
}

int primus_trial_report(struct primus_trial *t, uint64_t step, double metric) {
        return add_result(t, step, metric, false);
}

int primus_trial_invalid(struct primus_trial *t) {
        return add_result(t, 0, NAN, true);
}

int primus_trial_flush(struct primus_trial *t, uint64_t timeout_usec) {
        int r;

        if (t->pid != getpid())
                return -ECHILD;
        pthread_mutex_lock(&t->lock);
        r = wait_below(t, 1, timeout_usec);
        if (r < 0)
                snprintf(t->error, sizeof(t->error), "%s",
                         *t->trouble ? t->trouble : "masterd has not answered yet");
        else
                snprintf(t->error, sizeof(t->error), "%s", t->refused);
        pthread_mutex_unlock(&t->lock);
        return r < 0 ? r : *t->error ? -EREMOTEIO : 0;
}

const char *primus_trial_error(const struct primus_trial *t) {
        return t->error;
}

void primus_trial_close(struct primus_trial *t) {
        if (!t)
                return;
        if (t->pid == getpid()) {
                pthread_mutex_lock(&t->lock);
                t->over = true;
                pthread_mutex_unlock(&t->lock);
                wake_thread(t);
                pthread_join(t->thread, NULL);
                pthread_cond_destroy(&t->changed);
                pthread_mutex_destroy(&t->lock);
        }
        (void)close(t->wake);
        free(t);
}
