/* SPDX-License-Identifier: Apache-2.0 */
/* The command of a session as a child process, on a terminal of its own or on pipes. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/wire/session.h"

struct command {
        pid_t pid;           /* also of its process group */
        int terminal;        /* the master's side; -EBADF: it has pipes */
        int in, out, errors; /* nonblocking; with a terminal out is a copy of it, in too, and errors -EBADF */
};

/* argv NULL-ended; empty: the user's shell, as a login shell on a terminal. mask: the signals that the child
 * starts with. A command that cannot be run ends as in a shell, having said why on its standard error: 127
 * not found, 126 not executable. */
int command_start(char **argv, bool pty, const struct session_size *size, const sigset_t *mask,
                  struct command *ret);
void command_done(struct command *c);

void command_resize(const struct command *c, const struct session_size *size);

/* What a terminal's loss is to those on it: SIGHUP; kill_it: SIGKILL. To the command's process group and to
 * what is in the foreground of its terminal. Not once it is reaped. */
void command_hang_up(const struct command *c, bool kill_it);
