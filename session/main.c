/* SPDX-License-Identifier: Apache-2.0 */
/* primus-session: one session in an executor's cgroup, as the job's user, with its environment. agentd is at
 * the other end of standard input; it speaks once primus-enter has moved us. Invariant: until then nothing of
 * the user's runs here: it is linked statically (no LD_PRELOAD reaches it), uses libc alone, and lets no
 * other process of the user's trace it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "session/listening.h"
#include "session/relay.h"

#define STRINGS_MAX 16384u
#define CONNECT_MSEC 5000

struct start {
        struct session_start head;
        char **arguments; /* NULL-ended, into the packet */
};

/* Strings of the packet; names and values are set as they come. -EBADMSG. */
static int read_strings(struct start *s, char *text, size_t size) {
        char *end = text + size;

        if (s->head.n_arguments > STRINGS_MAX || s->head.n_environment > STRINGS_MAX || (size > 0 && end[-1]))
                return -EBADMSG;
        s->arguments = calloc(s->head.n_arguments + 1, sizeof(char *));
        if (!s->arguments)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->head.n_arguments + s->head.n_environment; i++) {
                if (text >= end)
                        return -EBADMSG;
                if (i < s->head.n_arguments)
                        s->arguments[i] = text;
                else if (strchr(text, '=') && putenv(text) != 0)
                        return -ENOMEM;
                text += strlen(text) + 1;
        }
        return 0;
}

static int receive_start(int control, char *packet, struct start *ret) {
        struct start s;
        ssize_t n;
        int r;

        do
                n = recv(control, packet, SESSION_PACKET_MAX, 0);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        if (n == 0)
                return -ECONNRESET; /* agentd thought better of it */
        if ((size_t)n < 1 + sizeof(s.head) || packet[0] != SESSION_START)
                return -EBADMSG;
        memcpy(&s.head, packet + 1, sizeof(s.head));
        if (s.head.version != SESSION_VERSION)
                return -EPROTONOSUPPORT;
        s.arguments = NULL;
        r = read_strings(&s, packet + 1 + sizeof(s.head), (size_t)n - 1 - sizeof(s.head));
        if (r < 0) {
                free(s.arguments);
                return r;
        }
        *ret = s;
        return 0;
}

static int connect_to(uint16_t port, int *ret) {
        _cleanup_free_ char *cgroup = NULL;
        _cleanup_close_ int fd = -EBADF;
        struct sockaddr_storage address;
        struct pollfd p = { .events = POLLOUT };
        socklen_t size, l;
        int r, error;

        if ((r = listening_own_cgroup("", &cgroup)) < 0 ||
            (r = listening_find("", cgroup, port, &address, &size)) < 0)
                return r;
        fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *)&address, size) < 0) {
                if (errno != EINPROGRESS)
                        return -errno;
                p.fd = fd;
                if (poll(&p, 1, CONNECT_MSEC) <= 0)
                        return -ETIMEDOUT;
                l = sizeof(error);
                if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &l) < 0)
                        return -errno;
                if (error)
                        return -error;
        }
        *ret = TAKE_FD(fd);
        return 0;
}

static int fail_session(int control, const char *what, int error) {
        char why[256];

        snprintf(why, sizeof(why), "%s: %s", what, strerror(-error));
        (void)relay_tell_end(control, SESSION_STATUS_BROKEN, why);
        return EXIT_FAILURE;
}

/* Where the executor's launcher went; as there, the variable is not passed on. */
static int enter_directory(int control) {
        const char *directory = getenv("PRIMUS_DIRECTORY");
        char why[512];

        if (!directory || !*directory)
                return 0;
        if (chdir(directory) < 0) {
                int error = errno;
                snprintf(why, sizeof(why), "cannot enter the executor's directory%s%s: %s",
                         strlen(directory) > 256 ? "" : " ", strlen(directory) > 256 ? "" : directory,
                         strerror(error));
                (void)relay_tell_end(control, SESSION_STATUS_BROKEN, why);
                return -error;
        }
        (void)unsetenv("PRIMUS_DIRECTORY");
        return 0;
}

static int run_session(int control, const struct start *s, const sigset_t *old, int signals) {
        struct relay_options o = { .control = control, .signals = signals };
        char why[128];
        int r;

        if (s->head.kind == SESSION_COMMAND) {
                if (enter_directory(control) < 0)
                        return EXIT_FAILURE;
                r = command_start(s->arguments, s->head.pty, &s->head.size, old, &o.command);
                if (r < 0)
                        return fail_session(
                                control, s->head.pty ? "cannot open a terminal" : "cannot start the command",
                                r);
                r = relay_run(&o);
                command_done(&o.command);
                return r;
        }
        r = connect_to(s->head.port, &o.command.in);
        if (r == -ECONNREFUSED) {
                snprintf(why, sizeof(why), "no process of this executor listens on port %u", s->head.port);
                (void)relay_tell_end(control, SESSION_STATUS_BROKEN, why);
                return EXIT_FAILURE;
        }
        if (r < 0)
                return fail_session(control, "cannot connect", r);
        o.command.terminal = o.command.errors = -EBADF;
        o.command.out = o.command.in;
        r = relay_run(&o);
        o.command.in = close_fd(o.command.in);
        return r;
}

int main(int argc, char **argv) {
        static char packet[SESSION_PACKET_MAX];
        _cleanup_close_ int control = -EBADF, signals = -EBADF, null = -EBADF;
        struct start s;
        sigset_t mask, old;
        int r;

        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("primus-session " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc > 1) {
                puts("primus-session\n\nA session in an executor, its end towards agentd on standard input; "
                     "started by "
                     "systemd in a unit of its own.");
                return strcmp(argv[1], "--help") == 0 ? EXIT_SUCCESS : 2;
        }
        (void)prctl(PR_SET_DUMPABLE, 0);
        /* Of this unit's, not of the executor's. */
        (void)unsetenv("JOURNAL_STREAM");
        (void)unsetenv("SYSTEMD_EXEC_PID");
        control = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (control < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0) {
                fprintf(stderr, "primus-session: no agentd on standard input: %s\n", strerror(errno));
                return EXIT_FAILURE;
        }
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGHUP);
        sigaddset(&mask, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &mask, &old) < 0 ||
            (signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
                return fail_session(control, "cannot wait for signals", -errno);
        (void)signal(SIGPIPE, SIG_IGN);
        r = receive_start(control, packet, &s);
        if (r == -ECONNRESET)
                return EXIT_SUCCESS;
        if (r < 0)
                return fail_session(
                        control,
                        r == -EPROTONOSUPPORT
                                ? "an upgrade of Primus is under way on this host, try again in a moment"
                                : "agentd's word is not understood",
                        r);
        (void)prctl(PR_SET_DUMPABLE, 1); /* as any process in the executor's cgroup */
        r = run_session(control, &s, &old, signals);
        free(s.arguments);
        return r;
}
