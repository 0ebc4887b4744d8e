/* SPDX-License-Identifier: Apache-2.0 */
/* What sd-bus alone can do of it: for each one-way message with a task's worth of bytes, one comes back, over
 * TCP, with neither TLS nor anybody who thinks about it. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tests/bench/bench-tasks.h"
#include "tests/bench/report.h"

#define GRANT_SIZE 140u
#define REPORT_SIZE 64u
#define MEASURE_USEC (3 * USEC_PER_SEC)

struct end {
        sd_event *event;
        sd_bus *bus;
        uint64_t n, until;
        size_t size; /* of what it says */
};

static int check(int r) {
        if (r < 0) {
                (void)fprintf(stderr, "bench-tasks: sd-bus: %s\n", strerrordesc_np(-r));
                exit(1);
        }
        return r;
}

static void say(struct end *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        void *bytes;

        check(sd_bus_message_new_method_call(e->bus, &m, NULL, "/org/primus/Link", "org.primus.Link1",
                                             "Task"));
        check(sd_bus_message_set_expect_reply(m, false));
        check(sd_bus_message_append(m, "s", "worker"));
        check(sd_bus_message_append_array_space(m, 'y', e->size, &bytes));
        memset(bytes, 1, e->size);
        check(sd_bus_send(e->bus, m, NULL));
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct end *e = userdata;
        const void *bytes;
        const char *text;
        size_t size;

        if (sd_bus_message_is_method_call(m, NULL, "Task") <= 0)
                return 0;
        check(sd_bus_message_read(m, "s", &text));
        check(sd_bus_message_read_array(m, 'y', &bytes, &size));
        e->n++;
        if (e->until > 0 && now_boot() >= e->until)
                (void)sd_event_exit(e->event, 0);
        say(e);
        return 1;
}

static void attach(struct end *e, int fd, bool server, size_t size) {
        *e = (struct end){ .size = size };
        check(sd_event_new(&e->event));
        check(sd_bus_new(&e->bus));
        check(sd_bus_set_fd(e->bus, fd, fd));
        check(sd_bus_set_anonymous(e->bus, true));
        check(sd_bus_set_trusted(e->bus, true));
        if (server)
                check(sd_bus_set_server(
                        e->bus, true,
                        SD_ID128_MAKE(22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22)));
        check(sd_bus_start(e->bus));
        check(sd_bus_add_filter(e->bus, NULL, on_message, e));
        check(sd_bus_attach_event(e->bus, e->event, 0));
}

static void tcp_pair(int ret[2]) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        _cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(a);
        const int yes = 1;

        ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listener < 0 || ret[0] < 0 || bind(listener, (struct sockaddr *)&a, size) < 0 ||
            listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&a, &size) < 0 ||
            connect(ret[0], (struct sockaddr *)&a, size) < 0 ||
            (ret[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
                check(-errno);
        for (int i = 0; i < 2; i++)
                (void)setsockopt(ret[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static double cpu_of(clockid_t clock) {
        struct timespec ts;

        return clock_gettime(clock, &ts) < 0 ? 0 : (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double bench_raw(unsigned window) {
        clockid_t clock;
        struct end e;
        double cpu;
        int fds[2] = { -EBADF, -EBADF };
        pid_t parent = getpid(), pid;

        tcp_pair(fds);
        pid = fork();
        if (pid < 0)
                check(-errno);
        close(fds[pid == 0]);
        attach(&e, fds[pid != 0], pid == 0, pid == 0 ? GRANT_SIZE : REPORT_SIZE);
        if (pid == 0) {
                bench_die_with(parent);
                _exit(sd_event_loop(e.event) < 0);
        }
        check(-clock_getcpuclockid(pid, &clock));
        for (unsigned i = 0; i < window; i++)
                say(&e);
        e.until = now_boot() + MEASURE_USEC;
        cpu = cpu_of(clock);
        check(sd_event_loop(e.event));
        cpu = cpu_of(clock) - cpu;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        sd_bus_close_unref(e.bus);
        sd_event_unref(e.event);
        return (double)e.n / cpu;
}
