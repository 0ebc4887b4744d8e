/* SPDX-License-Identifier: Apache-2.0 */
/* primus-executor's connection to agentd: dials $PRIMUS_SOCKET, proves who it is, and dials again, with a
 * back-off of at most one second, whenever agentd goes away. Nothing here blocks. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/feed.h"

enum session_state {
        SESSION_DOWN,     /* no connection; dials at due */
        SESSION_HELLO,    /* HELLO sent, waits for the challenge */
        SESSION_ANSWERED, /* challenge answered, waits for WELCOME */
        SESSION_UP,
};

struct session {
        const char *path;
        enum session_state state;
        int fd;
        uint64_t due; /* DOWN: when to dial; HELLO, ANSWERED: when to give up on this connection;
                         CLOCK_BOOTTIME, usec */
        uint64_t backoff;
        uint64_t refused_since; /* first of the refusals since the last WELCOME, 0: none */
        char refused[256];      /* why agentd refused us last */
        struct feed_welcome welcome;
        int pipe_read, pipe_write; /* of the latest WELCOME; the caller may take them (TAKE_FD) */
};

void session_init(struct session *s, const char *path);
void session_done(struct session *s);

/* Dials if that is due. Returns when session_step() wants to be called again (USEC_INFINITY: only after
 * input). */
uint64_t session_step(struct session *s, uint64_t now);

/* Receives one packet. Returns 1 with a packet for the caller (FEED_WELCOME, then grants ...; its body in
 * buf, a zero byte behind it), 0 when there is none now. A lost connection is no error: the state becomes
 * SESSION_DOWN. buf has FEED_PACKET_MAX + 1 bytes. */
int session_receive(struct session *s, uint64_t now, uint8_t *buf, struct feed_header *ret);

/* Sends a packet when the session is up. 0, -EAGAIN: wait for POLLOUT, -ENOTCONN: it is down. */
int session_send(struct session *s, uint64_t now, uint32_t type, const void *body, size_t size);
