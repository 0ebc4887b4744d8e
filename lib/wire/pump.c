/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: the two directions never wait for each other, and nothing blocks. A direction stops reading when
 * its ring is full. GnuTLS holds bytes that epoll cannot see, so every wake-up of either side runs both
 * directions. */
#include "lib/wire/pump.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"

#define BUDGET ((size_t)1 << 20)
#define RECORD_MAX ((size_t)16 << 10)

void pump_done(struct pump *p) {
        p->pair_fd = close_fd(p->pair_fd);
        ring_done(&p->in);
        ring_done(&p->out);
}

static ssize_t fail_pump(struct pump *p, int error, const char *why) {
        p->end = (struct peer_end){ .error = error, .why = why };
        return error < 0 ? error : -ECONNRESET;
}

/* The steps: bytes moved, or negative after fail_pump(). */

static ssize_t receive_some(struct pump *p) {
        uint8_t *buf;
        size_t space;
        if (!p->socket_readable && !tls_pending(p->tls))
                return 0;
        if (ring_space(&p->in, &buf, &space) < 0)
                return fail_pump(p, -ENOMEM, "out of memory");
        if (space == 0)
                return 0;
        ssize_t n = tls_receive(p->tls, buf, space);
        if (n < 0)
                return fail_pump(p, p->tls->end.error, p->tls->end.why);
        /* No edge tells of an end that came with the last bytes: that is read up to, not waited for. */
        if (!p->socket_ended && (n == 0 || (p->tls->drained && !tls_pending(p->tls))))
                p->socket_readable = false;
        int r = p->bounded ? frame_watch_feed(&p->frames, buf, (size_t)n) : 0;
        if (r < 0)
                return fail_pump(p, r,
                                 r == -EMSGSIZE ? "a message is larger than allowed"
                                                : "it does not speak D-Bus");
        ring_fill(&p->in, (size_t)n);
        return n;
}

static ssize_t give_bus(struct pump *p) {
        size_t n = ring_size(&p->in);
        if (n == 0)
                return 0;
        ssize_t w = send(p->pair_fd, p->in.data + p->in.begin, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (w < 0) {
                if (errno != EAGAIN && errno != EINTR)
                        ring_consume(&p->in, n); /* the bus is gone; its Disconnected tells */
                return 0;
        }
        ring_consume(&p->in, (size_t)w);
        return w;
}

static ssize_t take_from_bus(struct pump *p) {
        uint8_t *buf;
        size_t space;
        if (!p->pair_readable)
                return 0;
        if (ring_space(&p->out, &buf, &space) < 0)
                return fail_pump(p, -ENOMEM, "out of memory");
        if (space == 0)
                return 0;
        ssize_t n = recv(p->pair_fd, buf, space, MSG_DONTWAIT);
        p->pair_readable = n == (ssize_t)space;
        if (n <= 0)
                return 0;
        ring_fill(&p->out, (size_t)n);
        return n;
}

static ssize_t send_some(struct pump *p) {
        size_t size = ring_size(&p->out);
        if (size == 0)
                return 0;
        ssize_t n = tls_send(p->tls, p->out.data + p->out.begin, MIN(size, RECORD_MAX));
        if (n < 0)
                return fail_pump(p, p->tls->end.error, p->tls->end.why);
        ring_consume(&p->out, (size_t)n);
        return n;
}

int pump_run(struct pump *p) {
        static ssize_t (*const steps[])(struct pump *) = { receive_some, give_bus, take_from_bus, send_some };
        size_t total = 0, moved;
        do {
                moved = 0;
                for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                        ssize_t n = steps[i](p);
                        if (n < 0)
                                return (int)n;
                        moved += (size_t)n;
                }
                total += moved;
        } while (moved > 0 && total < BUDGET);
        return moved > 0;
}

unsigned pump_pair_events(const struct pump *p) {
        return EPOLLIN | (ring_size(&p->in) > 0 ? EPOLLOUT : 0u);
}

void pump_deliver(struct pump *p) {
        while (give_bus(p) > 0)
                ;
        if (ring_size(&p->in) == 0)
                (void)shutdown(p->pair_fd, SHUT_WR);
}

void pump_flush(struct pump *p) {
        ssize_t taken = 1, sent = 1;
        p->pair_readable = true;
        for (size_t moved = 0; moved < BUDGET && taken + sent > 0; moved += (size_t)(taken + sent))
                if ((taken = take_from_bus(p)) < 0 || (sent = send_some(p)) < 0)
                        return;
}
