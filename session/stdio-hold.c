/* SPDX-License-Identifier: Apache-2.0 */
/* primus-stdio hold: the parent of an executor's command, with the other end of its standard input or
 * terminal. Invariant: the command sees an end of its input only where the frame that says so has come; input
 * that breaks off for good ends the command, by SIGKILL, before its input is let go. Where this process is
 * killed itself, or ends with its command while others read the input on, a keeper holds the input. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "session/stdio-hold-parts.h"

/* What the terminal showed last has so long to arrive. */
#define LAST_MSEC 10000
/* A command whose terminal has gone, from SIGHUP to SIGKILL. */
#define HANG_UP_MSEC 5000

enum {
        AT_SIGNALS,
        AT_LISTEN,
        AT_CONNECTION,
        AT_IN,
        AT_OUT,
        N_POLLED
};

/* ---- the command ---- */

static int start_on_pipe(struct hold *h) {
        _cleanup_close_ int theirs = -EBADF, ours = -EBADF;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        theirs = fds[0];
        ours = fds[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        h->command.pid = fork();
        if (h->command.pid < 0)
                return -errno;
        if (h->command.pid == 0) {
                char **a = h->options->command;
                int error;

                (void)setpgid(0, 0);
                (void)signal(SIGPIPE, SIG_DFL);
                if (dup2(theirs, STDIN_FILENO) >= 0 && sigprocmask(SIG_SETMASK, &h->mask, NULL) >= 0)
                        (void)execvp(*a, a);
                error = errno;
                (void)stdio_fail(*a, -error);
                _exit(error == ENOENT ? 127 : 126);
        }
        (void)setpgid(h->command.pid, h->command.pid);
        /* Behind the command: who is killed with it in the order of birth is killed later. */
        theirs = close_fd(theirs);
        r = keeper_start(ours, &h->keeper);
        if (r < 0) {
                (void)kill(-h->command.pid, SIGKILL);
                return r;
        }
        h->command.in = TAKE_FD(ours);
        return 0;
}

static void close_in(struct hold *h) {
        h->command.in = close_fd(h->command.in);
        keeper_let_go(&h->keeper);
}

int hold_start(struct hold *h, const struct session_size *size) {
        int r;

        if (h->command.pid > 0)
                return 0;
        r = h->options->pty ? command_start(h->options->command, true, size, &h->mask, &h->command)
                            : start_on_pipe(h);
        return r < 0 ? stdio_fail("cannot start the command", r) : 0;
}

static void command_ended(struct hold *h, int status) {
        h->ended = true;
        h->status = status;
        h->lost_at = h->kill_at = 0;
        h->last_at = now_msec() + LAST_MSEC;
}

/* Everybody below us but the keeper: what the command has started reads the same input. Orphans are ours to
 * find, since we reap them. */
static void kill_all(struct hold *h) {
        char path[64], text[4096];

        if (h->command.pid <= 0)
                return;
        (void)kill(-h->command.pid, SIGKILL);
        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        for (int i = 0; i < 1000; i++) {
                _cleanup_fclose_ FILE *f = fopen(path, "re");
                size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
                char *cursor = text, *end;
                bool others = false;

                text[n] = 0;
                for (long pid; (pid = strtol(cursor, &end, 10)) > 0; cursor = end)
                        if (pid != h->keeper.pid) {
                                others = true;
                                (void)kill((pid_t)pid, SIGKILL);
                        }
                for (;;) {
                        int status;
                        pid_t pid = waitpid(-1, &status, others ? 0 : WNOHANG);

                        if (pid == h->command.pid)
                                command_ended(h, status);
                        if (pid < 0 || (pid == 0 && h->keeper.pid > 0))
                                return;
                        if (pid == 0 || others)
                                break;
                }
        }
}

/* The input will never be whole. */
static _printf_(2, 3) void break_off(struct hold *h, const char *format, ...) {
        va_list ap;

        if (h->broken)
                return;
        h->broken = true;
        va_start(ap, format);
        (void)vdprintf(STDERR_FILENO, format, ap);
        va_end(ap);
        if (h->options->pty && h->command.pid > 0 && !h->ended) {
                h->broken = false; /* as when any terminal goes: the status is the command's */
                h->kill_at = now_msec() + HANG_UP_MSEC;
                command_hang_up(&h->command, false);
        } else
                kill_all(h);
}

void hold_lose(struct hold *h, const char *why) {
        h->lost_at = 0;
        if (h->options->pty)
                break_off(h, "primus-stdio: the terminal of this command has gone: %s\n", why);
        else
                break_off(h,
                          "primus-stdio: the standard input of this command broke off after %llu bytes: %s; "
                          "the "
                          "command was %s\n",
                          (unsigned long long)h->in.to, why,
                          h->command.pid > 0 ? "killed, so that it does not take this for the end"
                                             : "not started");
}

static void reap(struct hold *h) {
        pid_t pid;
        int status;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                if (pid == h->command.pid)
                        command_ended(h, status);
}

/* What a signal does to a process that has not asked for it. */
static bool ends_us(unsigned signal) {
        return signal != SIGCONT && signal != SIGWINCH && signal != SIGURG && signal != SIGTSTP &&
               signal != SIGTTIN && signal != SIGTTOU;
}

static void read_signals(struct hold *h) {
        struct signalfd_siginfo s;

        while (read(h->signals, &s, sizeof(s)) == sizeof(s))
                if (s.ssi_signo == SIGCHLD)
                        reap(h);
                else if (s.ssi_pid == (uint32_t)getpid())
                        continue; /* SIGPIPE, of a pipe that nobody reads: blocked, it is not ignored */
                else if (h->command.pid <= 0) {
                        if (ends_us(s.ssi_signo))
                                _exit(128 + (int)s.ssi_signo);
                } else if (s.ssi_pid != 1 && !h->ended) /* systemd tells everybody */
                        (void)kill(h->command.pid, (int)s.ssi_signo);
}

/* ---- the command's side ---- */

static void write_in(struct hold *h) {
        static const char eot = 4;

        while (h->command.in >= 0 && h->in.from < h->in.to) {
                const uint8_t *piece;
                size_t n = bytes_at(&h->in, h->in.from, &piece);
                ssize_t l = write(h->command.in, piece, n);

                if (l >= 0)
                        h->in.from += (size_t)l;
                else if (errno == EAGAIN || errno == EINTR)
                        return;
                else {
                        h->in_gone = true;
                        close_in(h);
                }
        }
        if (h->in_gone)
                h->in.from = h->in.to; /* it goes nowhere */
        if (h->in_ended && h->command.in >= 0) {
                if (h->options->pty)
                        (void)!write(h->command.in, &eot, 1);
                close_in(h);
        }
}

static void read_out(struct hold *h) {
        uint8_t data[16384];
        size_t room = bytes_room(&h->out);
        ssize_t n = room > 0 ? read(h->command.out, data, room < sizeof(data) ? room : sizeof(data)) : 1;

        if (room == 0)
                return;
        if (n > 0)
                bytes_put(&h->out, data, (size_t)n);
        else if (n == 0 || (errno != EINTR && (errno != EAGAIN || h->ended)))
                h->out_over = true;
}

/* ---- the loop ---- */

static int earliest(const struct hold *h) {
        const int64_t times[] = { h->lost_at, h->last_at, h->kill_at }, now = now_msec();
        int64_t first = INT64_MAX;

        for (size_t i = 0; i < 3; i++)
                if (times[i] > 0 && times[i] < first)
                        first = times[i];
        return first == INT64_MAX ? -1 : first <= now ? 0 : (int)(first - now);
}

static void look_at_clock(struct hold *h) {
        const int64_t now = now_msec();

        if (h->lost_at > 0 && now >= h->lost_at)
                hold_lose(
                        h,
                        h->command.pid > 0
                                ? "'primusctl run' was there no more, and did not come back within two minutes"
                                : "'primusctl run' did not come within two minutes");
        if (h->kill_at > 0 && now >= h->kill_at) {
                h->kill_at = 0;
                kill_all(h);
        }
        if (h->last_at > 0 && now >= h->last_at)
                h->left = true;
}

static bool is_over(const struct hold *h) {
        if (h->broken || (h->ended && h->left))
                return true;
        return h->ended && !h->options->pty; /* its output goes its own way */
}

static void loop(struct hold *h) {
        while (!is_over(h)) {
                struct pollfd p[N_POLLED] = {
                        [AT_SIGNALS] = { .fd = h->signals, .events = POLLIN },
                        [AT_LISTEN] = { .fd = h->listening, .events = POLLIN },
                        [AT_CONNECTION] = { .fd = h->connection,
                                            .events =
                                                    (short)(POLLIN | (connection_compose(h) ? POLLOUT : 0)) },
                        /* Without an event: that nobody reads any more. */
                        [AT_IN] = { .fd = h->command.in,
                                    .events = (short)(h->in.from < h->in.to ? POLLOUT : 0) },
                        [AT_OUT] = { .fd = h->out_over || bytes_room(&h->out) == 0 ? -1 : h->command.out,
                                     .events = POLLIN },
                };

                if (h->options->pty)
                        p[AT_IN].fd = h->in.from < h->in.to ? h->command.in : -1;
                if (h->ended && !h->out_over && bytes_room(&h->out) > 0) {
                        read_out(h);
                        continue;
                }
                if (poll(p, N_POLLED, earliest(h)) < 0)
                        continue;
                if (p[AT_SIGNALS].revents)
                        read_signals(h);
                if (p[AT_OUT].revents)
                        read_out(h);
                if (p[AT_IN].revents & (POLLERR | POLLHUP) && !h->options->pty) {
                        h->in_gone = true;
                        close_in(h);
                }
                if (p[AT_CONNECTION].revents)
                        connection_read(h);
                if (p[AT_LISTEN].revents)
                        connection_accept(h);
                if (h->command.pid > 0)
                        write_in(h);
                connection_send(h);
                look_at_clock(h);
        }
}

/* Who still reads the pipe sees no end of it, and is systemd's to end. Else nobody of ours stays. */
static void leave_keeper(struct hold *h) {
        struct pollfd p = { .fd = h->command.in };

        if (h->keeper.pid <= 0 || (h->command.in >= 0 && (poll(&p, 1, 0) < 0 || !p.revents)))
                return;
        (void)waitpid(h->keeper.pid, NULL, 0);
}

static _Noreturn void end_like(const struct hold *h) {
        if (h->broken)
                exit(STDIO_STATUS);
        if (WIFSIGNALED(h->status)) {
                const struct rlimit none = { 0, 0 };
                sigset_t set;

                (void)setrlimit(RLIMIT_CORE, &none);
                (void)signal(WTERMSIG(h->status), SIG_DFL);
                sigemptyset(&set);
                sigaddset(&set, WTERMSIG(h->status));
                (void)raise(WTERMSIG(h->status));
                (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
                exit(128 + WTERMSIG(h->status));
        }
        exit(WEXITSTATUS(h->status));
}

static int prepare_hold(struct hold *h) {
        /* Faults of our own. All else may be a signal that the job asks for, and must not end us. */
        static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
        struct sockaddr_un address;
        sigset_t set;
        int r;

        if ((r = stdio_address(&address)) < 0)
                return r;
        (void)unsetenv(STDIO_VARIABLE);
        h->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (h->listening < 0 || bind(h->listening, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(h->listening, 4) < 0)
                return -errno;
        sigfillset(&set);
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
                sigdelset(&set, faults[i]);
        if (sigprocmask(SIG_BLOCK, &set, &h->mask) < 0 ||
            (h->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
                return -errno;
        (void)signal(SIGPIPE, SIG_IGN);
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
        r = bytes_init(&h->in, STDIO_INPUT_WINDOW);
        return r < 0 ? r : bytes_init(&h->out, STDIO_OUTPUT_WINDOW);
}

int stdio_hold(const struct stdio_options *o) {
        static struct hold h = {
                .keeper = { .word = -EBADF },
                .command = { .terminal = -EBADF, .in = -EBADF, .out = -EBADF, .errors = -EBADF },
                .signals = -EBADF,
                .listening = -EBADF,
                .connection = -EBADF,
        };
        int r;

        h.options = o;
        h.out_over = !o->pty;
        r = prepare_hold(&h);
        if (r < 0)
                return stdio_fail(
                        r == -EINVAL ? "the standard input of this job came from a 'primusctl run' that is "
                                       "over; run it anew"
                                     : "cannot wait for the standard input",
                        r);
        if (o->may_leave && !o->pty && (r = hold_start(&h, NULL)) != 0)
                return r;
        if (!o->may_leave || o->pty)
                h.lost_at = now_msec() + LOST_MSEC;
        loop(&h);
        leave_keeper(&h);
        end_like(&h);
}
