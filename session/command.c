/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the command of a session. Invariant: between fork() and exec the child calls nothing that is not
 * async-signal-safe. */
#include "session/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_EXECUTABLE 126

struct sides {
        int in, out, errors;
        bool terminal;
};

static void say_error(const char *text) {
        (void)!write(STDERR_FILENO, text, strlen(text));
}

static _Noreturn void become(char **argv, const char *path, const struct sides *s, const sigset_t *mask) {
        int error;

        if (setsid() < 0 || dup2(s->in, STDIN_FILENO) < 0 || dup2(s->out, STDOUT_FILENO) < 0 ||
            dup2(s->errors, STDERR_FILENO) < 0 || (s->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0))
                _exit(EXIT_NOT_EXECUTABLE);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(path, argv);
        error = errno;
        say_error(program_invocation_short_name);
        say_error(": cannot run ");
        say_error(path);
        say_error(": ");
        say_error(strerrordesc_np(error));
        say_error("\n");
        _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* The shell that the user's account names; accounts that are not for people name one that refuses. */
static const char *user_shell(void) {
        const char *shell = getenv("SHELL"), *name = shell ? strrchr(shell, '/') : NULL;

        return !name || strcmp(name, "/nologin") == 0 || strcmp(name, "/false") == 0 ? "/bin/sh" : shell;
}

static int open_terminal(const struct session_size *size, int *ret_master, int *ret_slave) {
        _cleanup_close_ int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -EBADF;
        const struct winsize w = { .ws_row = size->rows, .ws_col = size->columns };
        char name[64];

        if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
                return -errno;
        if (ptsname_r(master, name, sizeof(name)) != 0)
                return -EIO;
        slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0 || (w.ws_row > 0 && w.ws_col > 0 && ioctl(slave, TIOCSWINSZ, &w) < 0) ||
            fcntl(master, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        *ret_master = TAKE_FD(master);
        *ret_slave = TAKE_FD(slave);
        return 0;
}

/* Our side does not block, the child's does. */
static int open_pipe(bool child_reads, int *ret_ours, int *ret_theirs) {
        int fds[2], ours;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ours = fds[child_reads];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0) {
                int r = -errno;
                (void)close(fds[0]);
                (void)close(fds[1]);
                return r;
        }
        *ret_ours = ours;
        *ret_theirs = fds[!child_reads];
        return 0;
}

int command_start(char **argv, bool pty, const struct session_size *size, const sigset_t *mask,
                  struct command *ret) {
        _cleanup_(command_done) struct command c = {
                .terminal = -EBADF, .in = -EBADF, .out = -EBADF, .errors = -EBADF
        };
        _cleanup_close_ int in = -EBADF, out = -EBADF, errors = -EBADF;
        _cleanup_free_ char *login = NULL;
        char *shell[] = { NULL, NULL };
        const char *path = *argv;
        struct sides s;
        int r;

        if (!path) {
                path = user_shell();
                if (asprintf(&login, "%s%s", pty ? "-" : "", strrchr(path, '/') + 1) < 0)
                        return -ENOMEM;
                shell[0] = login;
                argv = shell;
        }
        if (pty) {
                r = open_terminal(size, &c.terminal, &in);
                if (r < 0)
                        return r;
                c.in = fcntl(c.terminal, F_DUPFD_CLOEXEC, 3);
                c.out = fcntl(c.terminal, F_DUPFD_CLOEXEC, 3);
                if (c.in < 0 || c.out < 0)
                        return -errno;
                s = (struct sides){ in, in, in, true };
        } else {
                if ((r = open_pipe(true, &c.in, &in)) < 0 || (r = open_pipe(false, &c.out, &out)) < 0 ||
                    (r = open_pipe(false, &c.errors, &errors)) < 0)
                        return r;
                s = (struct sides){ in, out, errors, false };
        }
        c.pid = fork();
        if (c.pid < 0)
                return -errno;
        if (c.pid == 0)
                become(argv, path, &s, mask);
        *ret = c;
        c = (struct command){ .terminal = -EBADF, .in = -EBADF, .out = -EBADF, .errors = -EBADF };
        return 0;
}

void command_done(struct command *c) {
        c->terminal = close_fd(c->terminal);
        c->in = close_fd(c->in);
        c->out = close_fd(c->out);
        c->errors = close_fd(c->errors);
}

void command_resize(const struct command *c, const struct session_size *size) {
        const struct winsize w = { .ws_row = size->rows, .ws_col = size->columns };

        if (c->terminal >= 0)
                (void)ioctl(c->terminal, TIOCSWINSZ, &w); /* sends SIGWINCH */
}

void command_hang_up(const struct command *c, bool kill_it) {
        const int signal = kill_it ? SIGKILL : SIGHUP;
        pid_t foreground = c->terminal >= 0 ? tcgetpgrp(c->terminal) : -1;

        if (foreground > 1 && foreground != c->pid)
                (void)kill(-foreground, signal);
        /* Twice: between fork() and setsid() there is no such group yet. */
        (void)kill(-c->pid, signal);
        (void)kill(c->pid, signal);
}
