/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer as a child process: started with the feed as its standard input, signalled, and its end passed
 * on. */
#pragma once

#include <signal.h>
#include <sys/types.h>

/* Blocks the signals that are passed on, and SIGCHLD, and returns a signalfd for them (closed on exec).
 * *ret_old is the mask that the trainer gets. SIGPIPE is ignored here, but not in the trainer. */
int child_signals(sigset_t *ret_old);

/* Forks and executes argv with stdin_fd as its standard input (-EBADF: leave it). 0 with *ret_pid, or the
 * negative errno of the fork or of the exec: a command that is not there is seen here, not as an exit status.
 */
int child_start(char *const argv[], int stdin_fd, const sigset_t *mask, pid_t *ret_pid);

/* Passes a signal read from the signalfd on. One that systemd (PID 1) sent is not: systemd signals the whole
 * control group, and the trainer, which has got it already, may take a second one as "at once". */
void child_forward(pid_t pid, int signal, pid_t sender);

/* The exit status of a command that could not be executed, as shells have it: 127 not found, else 126. */
int child_exec_status(int error);

/* Ends this process as the trainer ended: same exit status, or killed by the same signal. */
_Noreturn void child_exit_like(int wait_status);
