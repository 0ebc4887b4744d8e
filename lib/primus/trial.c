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
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/primus/primus.h"
#include "lib/wire/feed.h"

#define WAITING_MAX 1024u /* results that are not on disk yet; then primus_trial_report() waits */
#define RETRY_FIRST_MSEC 200
#define RETRY_MAX_MSEC 5000
#define IDENTIFY_MSEC 10000

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
        char refused[480]; /* why the latest that was refused is */
        char trouble[480]; /* why there is no connection */
        char error[512];
};

/* ---- the connection; of the thread alone ---- */

static int say_packet(int fd, uint32_t type, const void *body, size_t size) {
        struct feed_header header = { .type = type, .size = (uint32_t)size };
        struct iovec iov[] = { { &header, sizeof(header) }, { (void *)(uintptr_t)body, size } };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

        return sendmsg(fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* One packet; 0 when there is none within the time. Descriptors that come with it, the data of somebody else,
 * are closed by the kernel, since there is no room for them here. */
static int hear_packet(int fd, int msec, struct feed_header *ret, uint8_t *body, size_t size) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        struct iovec iov[] = { { ret, sizeof(*ret) }, { body, size } };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
        int r = poll(&p, 1, msec);
        ssize_t n;

        if (r <= 0)
                return r < 0 && errno != EINTR ? -errno : 0;
        n = recvmsg(fd, &m, 0);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n < (ssize_t)sizeof(*ret) || ret->size != (size_t)n - sizeof(*ret) || (m.msg_flags & MSG_TRUNC))
                return n == 0 ? -ECONNRESET : -EPROTO;
        return 1;
}

static int identify_self(int fd, char *refused, size_t refused_size) {
        struct feed_hello hello = { .version = FEED_VERSION, .pid = (uint32_t)getpid() };
        struct feed_welcome welcome;
        struct feed_header header;
        uint8_t body[600];
        int r = say_packet(fd, FEED_HELLO, &hello, sizeof(hello));

        while (r >= 0) {
                r = hear_packet(fd, IDENTIFY_MSEC, &header, body, sizeof(body));
                if (r == 0)
                        return -ETIMEDOUT;
                if (r < 0)
                        return r;
                switch (header.type) {
                case FEED_CHALLENGE:
                        r = say_packet(fd, FEED_ANSWER, body, header.size);
                        break;
                case FEED_WELCOME:
                        if (header.size < sizeof(welcome))
                                return -EPROTO;
                        memcpy(&welcome, body, sizeof(welcome));
                        if (welcome.version >= FEED_VERSION_RESULTS)
                                return 0;
                        snprintf(refused, refused_size,
                                 "this host's primus-agentd is of a release that knows no searches");
                        return -EOPNOTSUPP;
                case FEED_REFUSED:
                        snprintf(refused, refused_size, "%.*s", (int)MIN(header.size, 400u),
                                 (const char *)body);
                        return -ECONNREFUSED;
                default:
                        return -EPROTO;
                }
        }
        return r;
}

static int dial_agent(struct primus_trial *t) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char trouble[sizeof(t->trouble)] = "";
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), r;

        if (fd < 0)
                return -errno;
        memcpy(address.sun_path, t->socket, sizeof(address.sun_path));
        r = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0
                    ? -errno
                    : identify_self(fd, trouble, sizeof(trouble));
        pthread_mutex_lock(&t->lock);
        snprintf(t->trouble, sizeof(t->trouble), "%s", trouble);
        if (r < 0 && !*trouble)
                snprintf(t->trouble, sizeof(t->trouble), "primus-agentd does not answer: %s", strerror(-r));
        pthread_mutex_unlock(&t->lock);
        if (r >= 0)
                return fd;
        (void)close(fd);
        return r;
}

/* ---- the thread ---- */

/* What is left to say, as far as may be under way. */
static int say_results(struct primus_trial *t, int fd) {
        int r = 0;

        pthread_mutex_lock(&t->lock);
        while (r >= 0 && t->sent < MIN(t->n, FEED_RESULTS_MAX)) {
                struct feed_result result = t->waiting[(t->first + t->sent) % WAITING_MAX];

                r = say_packet(fd, FEED_RESULT, &result, sizeof(result));
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
        r = hear_packet(fd, 0, &header, body, sizeof(body));
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
        int pause = RETRY_FIRST_MSEC;

        while (!is_over(t)) {
                struct pollfd p = { .fd = t->wake, .events = POLLIN };
                int fd = dial_agent(t), r = MIN(fd, 0);

                pthread_mutex_lock(&t->lock);
                t->sent = 0;
                pthread_mutex_unlock(&t->lock);
                while (r >= 0 && !is_over(t)) {
                        pause = RETRY_FIRST_MSEC;
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
                        (void)poll(NULL, 0, is_over(t) ? 0 : RETRY_FIRST_MSEC);
                }
                pause = MIN(2 * pause, RETRY_MAX_MSEC);
        }
        return NULL;
}

/* ---- for the trainer ---- */

int primus_trial_open(struct primus_trial **ret) {
        const char *socket_path = getenv("PRIMUS_SOCKET");
        pthread_condattr_t clock;
        struct primus_trial *t;

        if (!getenv("PRIMUS_TRIAL") || !socket_path || strlen(socket_path) >= sizeof(t->socket))
                return -ENOENT;
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->pid = getpid();
        strcpy(t->socket, socket_path);
        t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        pthread_mutex_init(&t->lock, NULL);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&t->changed, &clock);
        pthread_condattr_destroy(&clock);
        if (t->wake < 0 || pthread_create(&t->thread, NULL, run_thread, t) != 0) {
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
