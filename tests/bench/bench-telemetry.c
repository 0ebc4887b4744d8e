/* SPDX-License-Identifier: Apache-2.0 */
/* What `tools/bench telemetry` runs as an executor: the same small piece of work over and over, and after
 * each a line "WHEN CPU WALL": CLOCK_MONOTONIC at its end, and what it took, in nanoseconds.
 *
 *   bench-telemetry read|getppid|tcp */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PIECE_READ 40000
#define PIECE_GETPPID 150000
#define PIECE_TCP 400
#define TCP_BYTES (64u << 10)

static uint64_t now(clockid_t clock) {
        struct timespec t;

        (void)clock_gettime(clock, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int zero, ends[2];
static char buf[TCP_BYTES];

static void fail(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

static void open_zero(void) {
        zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        if (zero < 0)
                fail("/dev/zero");
}

static void do_read(void) {
        for (int i = 0; i < PIECE_READ; i++)
                if (read(zero, buf, 4096) != 4096)
                        fail("read");
}

static void open_nothing(void) {
}

static void do_getppid(void) {
        for (int i = 0; i < PIECE_GETPPID; i++)
                (void)syscall(SYS_getppid);
}

static void open_tcp(void) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(a);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (listener < 0 || bind(listener, (struct sockaddr *)&a, size) < 0 || listen(listener, 1) < 0 ||
            getsockname(listener, (struct sockaddr *)&a, &size) < 0)
                fail("listen");
        ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(ends[0], (struct sockaddr *)&a, size) < 0)
                fail("connect");
        ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (ends[1] < 0)
                fail("accept");
        close(listener);
}

static void do_tcp(void) {
        for (int i = 0; i < PIECE_TCP; i++) {
                size_t left = TCP_BYTES;

                if (write(ends[0], buf, TCP_BYTES) != TCP_BYTES)
                        fail("write");
                while (left > 0) {
                        ssize_t n = read(ends[1], buf, left);

                        if (n <= 0)
                                fail("read");
                        left -= (size_t)n;
                }
        }
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*prepare)(void), (*piece)(void);
        } works[] = {
                { "read", open_zero, do_read },
                { "getppid", open_nothing, do_getppid },
                { "tcp", open_tcp, do_tcp },
        };

        for (size_t i = 0; argc == 2 && i < sizeof(works) / sizeof(works[0]); i++) {
                if (strcmp(argv[1], works[i].name) != 0)
                        continue;
                works[i].prepare();
                for (;;) {
                        uint64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC), end;

                        works[i].piece();
                        end = now(CLOCK_MONOTONIC);
                        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", end,
                               now(CLOCK_PROCESS_CPUTIME_ID) - cpu, end - wall);
                        fflush(stdout);
                }
        }
        fprintf(stderr, "usage: bench-telemetry read|getppid|tcp\n");
        return 2;
}
