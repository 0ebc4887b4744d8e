/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of HTTP on standard input and output, as ssh hands them over. */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct stdio;

/* Carries bytes between standard input and output and a connection to listener, a socket of stdio_listen().
 * The loop ends when that connection has ended and its last byte is out. Standard input and output must be
 * pipes or sockets: -EPERM where they are files. */
int stdio_new(sd_event *event, int listener, struct stdio **ret);
void stdio_free(struct stdio *s);
DEFINE_CLEANUP(struct stdio *, stdio_free)

/* A unix socket without a place in the file system, which listens; or a negative errno. */
int stdio_listen(void);
