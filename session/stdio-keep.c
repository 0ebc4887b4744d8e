/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a process with a copy of the pipe's writing end. Invariant: whatever becomes of the holder, who
 * reads the pipe sees an end only after let_go. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "session/stdio-parts.h"

/* Nothing else of the holder's: neither its socket nor its output. */
static void close_all_but(unsigned a, unsigned b) {
        const unsigned low = a < b ? a : b, high = a < b ? b : a;

        if (low > 0)
                (void)close_range(0, low - 1, 0);
        if (high > low + 1)
                (void)close_range(low + 1, high - 1, 0);
        (void)close_range(high + 1, ~0u, 0);
}

static _Noreturn void keep_pipe(int pipe, int word) {
        /* Without an event: that nobody reads any more. */
        struct pollfd p[] = { { .fd = pipe }, { .fd = word, .events = POLLIN } };
        char said;

        close_all_but((unsigned)pipe, (unsigned)word);
        for (;;) {
                if (poll(p, 2, -1) < 0)
                        continue;
                if (p[0].revents)
                        _exit(EXIT_SUCCESS);
                if (p[1].revents) {
                        ssize_t n = read(word, &said, 1);

                        if (n > 0)
                                _exit(EXIT_SUCCESS);
                        if (n == 0)
                                p[1].fd = -1; /* the holder is dead, and the unit ends */
                }
        }
}

int keeper_start(int pipe, struct keeper *ret) {
        _cleanup_close_ int theirs = -EBADF, ours = -EBADF;
        int fds[2];
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        theirs = fds[0];
        ours = fds[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void)close(ours);
                keep_pipe(pipe, theirs);
        }
        *ret = (struct keeper){ .pid = pid, .word = TAKE_FD(ours) };
        return 0;
}

void keeper_let_go(struct keeper *k) {
        if (k->word >= 0)
                (void)!write(k->word, "", 1);
        k->word = close_fd(k->word);
}
