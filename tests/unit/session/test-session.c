/* SPDX-License-Identifier: Apache-2.0 */
/* A session with this test as agentd: commands on pipes and on a terminal, their ends, who listens. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "session/listening.h"
#include "session/relay.h"

struct peer {
        int fd;
        pid_t pid;
        char out[1 << 16], errors[1 << 12], why[256];
        size_t n_out, n_errors;
        int status;
};

/* The program's part, without systemd. */
static _Noreturn void session(int control, const char *script, bool pty) {
        char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
        struct relay_options o = { .control = control };
        const struct session_size size = { 33, 77 };
        sigset_t mask, old;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGHUP);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGCHLD);
        sigprocmask(SIG_BLOCK, &mask, &old);
        o.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        if (command_start(argv, pty, &size, &old, &o.command) < 0)
                _exit(99);
        (void)relay_run(&o);
        _exit(0);
}

static void begin(struct peer *p, const char *script, bool pty) {
        int fds[2];

        *p = (struct peer){ .status = -1 };
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        p->pid = fork();
        assert_true(p->pid >= 0);
        if (p->pid == 0) {
                close(fds[0]);
                session(fds[1], script, pty);
        }
        close(fds[1]);
        p->fd = fds[0];
}

static void say(struct peer *p, enum session_frame frame, const void *data, size_t size) {
        static uint8_t packet[SESSION_PACKET_MAX];

        packet[0] = (uint8_t)frame;
        if (size > 0)
                memcpy(packet + 1, data, size);
        assert_int_equal(send(p->fd, packet, size + 1, MSG_NOSIGNAL), size + 1);
}

static bool hear(struct peer *p) {
        static uint8_t packet[SESSION_PACKET_MAX];
        struct session_end end;
        ssize_t n = recv(p->fd, packet, sizeof(packet), 0);

        /* Said once, as to agentd: it ended with input that it had not read. */
        if (n < 0 && errno == ECONNRESET)
                n = recv(p->fd, packet, sizeof(packet), 0);
        assert_true(n > 0);
        switch (packet[0]) {
        case SESSION_OUTPUT:
                assert_true(p->n_out + (size_t)n < sizeof(p->out));
                memcpy(p->out + p->n_out, packet + 1, (size_t)n - 1);
                p->n_out += (size_t)n - 1;
                return true;
        case SESSION_ERRORS:
                assert_true(p->n_errors + (size_t)n < sizeof(p->errors));
                memcpy(p->errors + p->n_errors, packet + 1, (size_t)n - 1);
                p->n_errors += (size_t)n - 1;
                return true;
        default:
                assert_int_equal(packet[0], SESSION_END);
                memcpy(&end, packet + 1, sizeof(end));
                p->status = end.status;
                memcpy(p->why, packet + 1 + sizeof(end), (size_t)n - 1 - sizeof(end));
                return false;
        }
}

static void finish(struct peer *p) {
        while (hear(p))
                ;
        close(p->fd);
        assert_int_equal(waitpid(p->pid, NULL, 0), p->pid);
}

static void wait_for(struct peer *p, const char *text) {
        while (!memmem(p->out, p->n_out, text, strlen(text)))
                assert_true(hear(p));
}

static void test_pipes(void **state) {
        struct peer p;

        begin(&p, "cat; echo no >&2; exit 5", false);
        say(&p, SESSION_INPUT, "hello", 5);
        say(&p, SESSION_INPUT_END, NULL, 0);
        finish(&p);
        assert_int_equal(p.status, 5);
        assert_string_equal(p.out, "hello");
        assert_string_equal(p.errors, "no\n");

        begin(&p, "kill -SEGV $$", false);
        finish(&p);
        assert_int_equal(p.status, 128 + SIGSEGV);

        /* Input that nobody reads is dropped; what is left behind is not waited for. */
        begin(&p, "exec <&-; sleep 100 & echo done", false);
        say(&p, SESSION_INPUT, "x", 1);
        finish(&p);
        assert_string_equal(p.out, "done\n");
        assert_int_equal(p.status, 0);
}

static void test_terminal(void **state) {
        const struct session_size bigger = { 50, 100 };
        struct peer p;

        begin(&p, "stty size; read x; stty size; echo got $x; cat", true);
        wait_for(&p, "33 77");
        say(&p, SESSION_SIZE, &bigger, sizeof(bigger));
        say(&p, SESSION_INPUT, "y\n", 2);
        wait_for(&p, "50 100\r\ngot y");
        /* By now it may still be the shell, which would keep a Ctrl-C to itself. */
        say(&p, SESSION_INPUT, "zz\n", 3);
        wait_for(&p, "zz\r\nzz");
        say(&p, SESSION_INPUT, "\x03", 1); /* Ctrl-C */
        finish(&p);
        assert_int_equal(p.status, 128 + SIGINT);
}

/* agentd goes, or the executor is stopped: nothing stays, also of who does not want to hear of it. */
static void test_abandoned(void **state) {
        struct peer p;

        for (int pty = 0; pty < 2; pty++) {
                begin(&p, "trap '' HUP TERM INT; echo on; while :; do sleep 1; done", pty);
                wait_for(&p, "on");
                close(p.fd);
                assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);

                begin(&p, "trap '' HUP TERM INT; echo on; while :; do sleep 1; done", pty);
                wait_for(&p, "on");
                kill(p.pid, SIGTERM);
                finish(&p);
                assert_int_equal(p.status, SESSION_STATUS_BROKEN);
                assert_non_null(strstr(p.why, "executor has ended"));
        }
}

static void test_listening(void **state) {
        struct sockaddr_in any = { .sin_family = AF_INET };
        struct sockaddr_storage found;
        _cleanup_free_ char *own = NULL;
        socklen_t size = sizeof(any), n;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(listening_own_cgroup("", &own), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &size), 0);
        assert_int_equal(listening_find("", own, ntohs(any.sin_port), &found, &n), -ECONNREFUSED);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(listening_find("", own, ntohs(any.sin_port), &found, &n), 0);
        assert_int_equal(((struct sockaddr_in *)&found)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        assert_int_equal(((struct sockaddr_in *)&found)->sin_port, any.sin_port);
        assert_int_equal(listening_find("", "/elsewhere", ntohs(any.sin_port), &found, &n), -ECONNREFUSED);
        close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pipes),
                cmocka_unit_test(test_terminal),
                cmocka_unit_test(test_abandoned),
                cmocka_unit_test(test_listening),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
