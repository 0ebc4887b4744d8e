/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer as a child process. Invariant: whatever ended the trainer is what systemd sees of the executor.
 */
#include "executor/feed/child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "lib/base/cleanup.h"

static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };

int child_signals(sigset_t *ret_old) {
        sigset_t mask;
        int fd;

        sigemptyset(&mask);
        for (size_t i = 0; i < ELEMENTSOF(forwarded); i++)
                sigaddset(&mask, forwarded[i]);
        sigaddset(&mask, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &mask, ret_old) < 0)
                return -errno;
        (void)signal(SIGPIPE, SIG_IGN);
        fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

/* In the child: the error goes through a pipe that exec closes, so that the parent knows which of the two
 * happened. */
static _Noreturn void execute(char *const argv[], int stdin_fd, const sigset_t *mask, int report) {
        int error;

        (void)signal(SIGPIPE, SIG_DFL);
        if (stdin_fd >= 0 && dup2(stdin_fd, STDIN_FILENO) < 0)
                goto fail;
        if (sigprocmask(SIG_SETMASK, mask, NULL) < 0)
                goto fail;
        execvp(argv[0], argv);
fail:
        error = errno;
        (void)!write(report, &error, sizeof(error));
        _exit(child_exec_status(-error));
}

int child_start(char *const argv[], int stdin_fd, const sigset_t *mask, pid_t *ret_pid) {
        _cleanup_close_ int read_end = -EBADF, write_end = -EBADF;
        int fds[2], error = 0;
        ssize_t l;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        read_end = fds[0];
        write_end = fds[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                execute(argv, stdin_fd, mask, write_end);
        write_end = close_fd(write_end);
        do
                l = read(read_end, &error, sizeof(error));
        while (l < 0 && errno == EINTR);
        if (l == (ssize_t)sizeof(error)) {
                (void)waitpid(pid, NULL, 0);
                return -error;
        }
        *ret_pid = pid;
        return 0;
}

void child_forward(pid_t pid, int signal, pid_t sender) {
        if (pid > 0 && sender != 1)
                (void)kill(pid, signal);
}

int child_exec_status(int error) {
        return error == -ENOENT || error == -ENOTDIR ? 127 : 126;
}

_Noreturn void child_exit_like(int wait_status) {
        if (WIFSIGNALED(wait_status)) {
                struct rlimit none = { 0, 0 };
                sigset_t set;

                /* The trainer has left its core; ours would only hide it. */
                (void)setrlimit(RLIMIT_CORE, &none);
                (void)signal(WTERMSIG(wait_status), SIG_DFL);
                sigemptyset(&set);
                sigaddset(&set, WTERMSIG(wait_status));
                (void)raise(WTERMSIG(wait_status));
                (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
                exit(128 + WTERMSIG(wait_status));
        }
        exit(WEXITSTATUS(wait_status));
}
