/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to primus-agentd on $PRIMUS_SOCKET (lib/wire/feed.h) of a process that is an executor's and
 * not its feeder. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/feed.h"

#define AGENT_WHY_MAX 480u
/* Between tries to connect, while agentd or its link is started anew; it doubles. */
#define AGENT_RETRY_FIRST_MSEC 200
#define AGENT_RETRY_MAX_MSEC 5000

/* A thread that no signal of the trainer's is given to. 0, or an errno as pthread_create() returns it. */
int agent_thread(pthread_t *ret, void *(*run)(void *), void *userdata);
/* $PRIMUS_SOCKET; -ENOENT: not in an executor. */
int agent_path(char ret[static 108]);
/* Blocks up to some seconds. A descriptor, to be closed; negative, with why it refuses or "". */
int agent_dial(const char *path, char why[static AGENT_WHY_MAX]);
/* flags: MSG_DONTWAIT or 0. */
int agent_say(int fd, uint32_t type, const void *body, size_t size, int flags);
/* One packet; 0 when there is none within the time. Descriptors that come with it, the data of somebody else,
 * are closed by the kernel, since there is no room for them here. */
int agent_hear(int fd, int msec, struct feed_header *ret, uint8_t *body, size_t size);
