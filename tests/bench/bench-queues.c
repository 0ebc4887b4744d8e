/* SPDX-License-Identifier: Apache-2.0 */
/* The same for two queues from Debian, each in its own process on the loopback: beanstalkd (reserve, delete)
 * and gearmand (a worker that grabs background jobs and completes them). Requests are sent ahead as far as
 * the protocol lets them be, which is more than their usual clients do.
 *
 *   bench-queues NAME      beanstalkd | gearmand; on its port there is nobody else
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "tests/bench/report.h"

#define JOBS 100000u
#define AHEAD 200u

static _Noreturn void die(const char *what) {
        (void)fprintf(stderr, "bench-queues: %s: %s\n", what, strerrordesc_np(errno));
        exit(1);
}

/* ---- a connection, with a buffer each way ---- */

struct line {
        int fd;
        char out[1 << 16], in[1 << 16];
        size_t n_out, begin, end;
};

static void flush(struct line *l) {
        for (size_t done = 0; done < l->n_out;) {
                ssize_t n = send(l->fd, l->out + done, l->n_out - done, MSG_NOSIGNAL);
                if (n < 0)
                        die("send");
                done += (size_t)n;
        }
        l->n_out = 0;
}

static void say(struct line *l, const void *data, size_t size) {
        if (l->n_out + size > sizeof(l->out))
                flush(l);
        memcpy(l->out + l->n_out, data, size);
        l->n_out += size;
}

/* At least size bytes; what is to be said is said first. */
static const char *hear(struct line *l, size_t size) {
        while (l->end - l->begin < size) {
                flush(l);
                memmove(l->in, l->in + l->begin, l->end - l->begin);
                l->end -= l->begin;
                l->begin = 0;
                ssize_t n = recv(l->fd, l->in + l->end, sizeof(l->in) - l->end, 0);
                if (n == 0)
                        errno = ECONNRESET;
                if (n <= 0)
                        die("receive");
                l->end += (size_t)n;
        }
        return l->in + l->begin;
}

/* Up to and with \r\n, of which it is freed. Valid until the next. */
static const char *hear_line(struct line *l) {
        for (size_t n = 2;; n++) {
                const char *text = hear(l, n);
                if (memcmp(text + n - 2, "\r\n", 2) != 0)
                        continue;
                l->in[l->begin + n - 2] = 0;
                l->begin += n;
                return text;
        }
}

static uint16_t free_port(void) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(a);

        if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 ||
            getsockname(fd, (struct sockaddr *)&a, &size) < 0)
                die("port");
        return ntohs(a.sin_port);
}

static void dial(struct line *l, uint16_t port) {
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(port) };
        const int yes = 1;

        *l = (struct line){ .fd = -EBADF };
        for (unsigned i = 0; i < 500; i++) {
                l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (l->fd >= 0 && connect(l->fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
                        (void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
                        return;
                }
                l->fd = close_fd(l->fd);
                (void)usleep(10000);
        }
        die("connect");
}

/* ---- beanstalkd ---- */

static void bean_fill(struct line *l) {
        static const char put[] = "put 1 0 60 40\r\n0123456789012345678901234567890123456789\r\n";

        for (unsigned sent = 0, heard = 0; heard < JOBS; heard++) {
                for (; sent < JOBS && sent - heard < AHEAD; sent++)
                        say(l, put, sizeof(put) - 1);
                if (strncmp(hear_line(l), "INSERTED ", 9) != 0)
                        die("beanstalkd: put");
        }
}

/* As many reservations on the way as AHEAD, and a deletion for each that has come. */
static void bean_take(struct line *l, unsigned ahead, double *latencies) {
        char text[64];
        unsigned deleted = 0, asked = 0;
        double began = bench_now();

        while (deleted < JOBS) {
                for (; asked < JOBS && asked - deleted < ahead; asked++)
                        say(l, "reserve\r\n", 9);
                const char *answer = hear_line(l);
                if (strncmp(answer, "RESERVED ", 9) == 0) {
                        int n = snprintf(text, sizeof(text), "delete %llu\r\n",
                                         strtoull(answer + 9, NULL, 10));
                        (void)hear(l, 42);
                        l->begin += 42;
                        say(l, text, (size_t)n);
                } else if (strcmp(answer, "DELETED") == 0) {
                        if (latencies) {
                                double now = bench_now();
                                latencies[deleted] = (now - began) * 1e6;
                                began = now;
                        }
                        deleted++;
                } else
                        die(answer);
        }
}

/* ---- gearmand: packets of \0REQ or \0RES, type, size, big-endian ---- */

enum {
        CAN_DO = 1,
        JOB_CREATED = 8,
        GRAB_JOB = 9,
        NO_JOB = 10,
        JOB_ASSIGN = 11,
        WORK_COMPLETE = 13,
        SUBMIT_JOB_BG = 18,
};

static void gear_say(struct line *l, uint32_t type, const void *data, size_t size) {
        uint32_t head[2] = { htonl(type), htonl((uint32_t)size) };

        say(l, "\0REQ", 4);
        say(l, head, sizeof(head));
        say(l, data, size);
}

static const char *gear_hear(struct line *l, uint32_t *ret_type) {
        uint32_t head[2];
        const char *packet;
        size_t size;

        memcpy(head, hear(l, 12) + 4, sizeof(head));
        size = ntohl(head[1]);
        packet = hear(l, 12 + size);
        *ret_type = ntohl(head[0]);
        l->begin += 12 + size;
        return packet + 12;
}

static void gear_fill(struct line *l) {
        static const char job[] =
                "f\0\0" /* function, no unique id */ "0123456789012345678901234567890123456789";
        uint32_t type;

        for (unsigned sent = 0, heard = 0; heard < JOBS; heard++) {
                for (; sent < JOBS && sent - heard < AHEAD; sent++)
                        gear_say(l, SUBMIT_JOB_BG, job, sizeof(job) - 1);
                (void)gear_hear(l, &type);
                if (type != JOB_CREATED)
                        die("gearmand: submit");
        }
}

static void gear_take(struct line *l, unsigned ahead, double *latencies) {
        double began = bench_now();
        uint32_t type;

        gear_say(l, CAN_DO, "f", 1);
        for (unsigned asked = 0, done = 0; done < JOBS; done++) {
                for (; asked < JOBS && asked - done < ahead; asked++)
                        gear_say(l, GRAB_JOB, "", 0);
                const char *job = gear_hear(l, &type);
                if (type != JOB_ASSIGN)
                        die("gearmand: grab");
                char done_text[128];
                size_t n = strnlen(job, sizeof(done_text) - 1) + 1;
                memcpy(done_text, job, n); /* the handle, and no result */
                gear_say(l, WORK_COMPLETE, done_text, n);
                if (latencies) {
                        double now = bench_now();
                        latencies[done] = (now - began) * 1e6;
                        began = now;
                }
        }
        flush(l);
}

/* ---- both ---- */

struct queue {
        const char *name;
        void (*fill)(struct line *l);
        void (*take)(struct line *l, unsigned ahead, double *latencies);
};

static const struct queue queues[] = {
        { "beanstalkd", bean_fill, bean_take },
        { "gearmand", gear_fill, gear_take },
};

static pid_t start(const struct queue *q, uint16_t port) {
        char number[8];
        pid_t parent = getpid(), pid = fork();

        snprintf(number, sizeof(number), "%u", port);
        if (pid < 0)
                die("process");
        if (pid > 0)
                return pid;
        bench_die_with(parent);
        if (q->fill == bean_fill)
                (void)execlp(q->name, q->name, "-l", "127.0.0.1", "-p", number, NULL);
        else
                (void)execlp(q->name, q->name, "-L", "127.0.0.1", "-p", number, "-l", "/dev/null", "-u",
                             "nobody", NULL);
        _exit(127);
}

static double cpu_of(clockid_t clock) {
        struct timespec ts;

        return clock_gettime(clock, &ts) < 0 ? 0 : (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void measure(const struct queue *q) {
        static struct line l, worker;
        double *latencies = calloc(JOBS, sizeof(double)), begin, cpu;
        uint16_t port = free_port();
        pid_t pid = start(q, port);
        char metric[128];
        clockid_t clock;

        if (!latencies || clock_getcpuclockid(pid, &clock) != 0)
                die("memory");
        dial(&l, port);
        dial(&worker, port);
        q->fill(&l);
        begin = bench_now();
        cpu = cpu_of(clock);
        q->take(&worker, AHEAD, NULL);
        snprintf(metric, sizeof(metric), "%s: assigned and acknowledged, sent ahead", q->name);
        bench_report("tasks", metric, JOBS / (bench_now() - begin), "1/s", 0, BENCH_NO_GOAL, 0);
        snprintf(metric, sizeof(metric), "%s: the same, by a second of its processor time", q->name);
        bench_report("tasks", metric, JOBS / (cpu_of(clock) - cpu), "1/s", 0, BENCH_NO_GOAL, 0);
        q->fill(&l);
        begin = bench_now();
        q->take(&worker, 1, latencies);
        snprintf(metric, sizeof(metric), "%s: assigned and acknowledged, one by one", q->name);
        bench_report("tasks", metric, JOBS / (bench_now() - begin), "1/s", 0, BENCH_NO_GOAL, 0);
        snprintf(metric, sizeof(metric), "%s: assigned to acknowledged, one by one, p50", q->name);
        bench_report("tasks", metric, bench_percentile(latencies, JOBS, 50), "usec", 0, BENCH_NO_GOAL, 0);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        close(l.fd);
        close(worker.fd);
        free(latencies);
}

int main(int argc, char *argv[]) {
        bench_die_with(getppid());
        for (size_t i = 0; argc == 2 && i < ELEMENTSOF(queues); i++)
                if (strcmp(argv[1], queues[i].name) == 0) {
                        measure(queues + i);
                        return 0;
                }
        (void)fprintf(stderr, "usage: bench-queues beanstalkd | gearmand\n");
        return 2;
}
