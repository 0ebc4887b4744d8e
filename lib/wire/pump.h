/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes between a TLS session and a socketpair, for peer.c; not for use outside lib/wire. Knows no
 * event loop: the owner says what has become readable and asks what to watch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/wire/frame.h"
#include "lib/wire/ring.h"
#include "lib/wire/tls.h"

struct pump {
        struct tls *tls;     /* borrowed */
        int pair_fd;         /* owned; -EBADF: none */
        struct ring in, out; /* from, to the network */
        bool bounded;        /* frames are followed: the other side is not trusted with memory */
        struct frame_watch frames;
        bool socket_readable, pair_readable; /* there may be something to read */
        bool socket_ended;                   /* nothing comes after what there is to read */
        struct peer_end end;                 /* why pump_run() failed */
};

void pump_done(struct pump *p);

/* Runs all four steps until nothing moves or others have waited long enough. 1: more would move, call again
 * soon; 0: waits for the socket (readable or writable) and for pump_pair_events(), edges suffice; negative:
 * over, p->end says why. */
int pump_run(struct pump *p);
unsigned pump_pair_events(const struct pump *p); /* EPOLL* */

/* After the network's end: hands on what has come, as far as there is room, and the end of file behind it. */
void pump_deliver(struct pump *p);

/* Before our own end: sends what the bus has handed over, as far as the network takes it. */
void pump_flush(struct pump *p);
