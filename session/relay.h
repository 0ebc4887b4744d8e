/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes between agentd's socket and a command or a connection. */
#pragma once

#include <sys/types.h>

#include "session/command.h"

struct relay_options {
        int control;            /* agentd's socket */
        struct command command; /* pid 0: a connection, in and out are the same socket's */
        int signals;            /* a signalfd of SIGTERM, SIGINT, SIGHUP; with a command of SIGCHLD too */
};

/* Until the command has ended and all it wrote is passed on, both directions of the connection are finished,
 * or nobody listens any more; then tells the end and returns the session's status. The descriptors stay the
 * caller's but for in, which is closed at the end of input. */
int relay_run(struct relay_options *options);

/* The last packet: why is NULL where the command ended. */
int relay_tell_end(int control, int status, const char *why);
