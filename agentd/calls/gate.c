/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: bytes reach sd-bus in the order in which they came, and only those of messages that are allowed.
 */
#include "agentd/calls/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/base/try.h"
#include "lib/wire/frame.h"
#include "lib/wire/ring.h"

#define RING_MAX ((size_t)256 << 10)
#define BUDGET ((size_t)1 << 20) /* moved before others have their turn */

/* Bytes from one socket to the other. */
struct way {
        int from, to;
        struct ring ring;
        bool over; /* nothing more comes */
};

struct gate {
        const struct gate_options *options;
        void *userdata;
        int client, pair;
        struct way in, out;
        struct frame_watch frames;
        sd_event_source *client_io, *pair_io;
        bool large, ended;
};

static void end_gate(struct gate *g) {
        if (g->ended)
                return;
        g->ended = true;
        (void)sd_event_source_set_enabled(g->client_io, SD_EVENT_OFF);
        (void)sd_event_source_set_enabled(g->pair_io, SD_EVENT_OFF);
        (void)shutdown(g->pair, SHUT_RDWR);
        g->options->ended(g->userdata);
}

/* 1: something has moved; 0; negative: it is over. */
static int fill_way(struct way *w, uint8_t **ret, size_t *ret_n) {
        size_t space;
        ssize_t n;

        *ret_n = 0;
        TRY(ring_space(&w->ring, ret, &space));
        if (w->over || space == 0)
                return 0;
        n = recv(w->from, *ret, space, MSG_DONTWAIT);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                w->over = true;
        *ret_n = (size_t)n;
        ring_fill(&w->ring, (size_t)n);
        return n > 0;
}

static int empty_way(struct way *w) {
        size_t n = ring_size(&w->ring);
        ssize_t sent;

        if (n == 0)
                return 0;
        sent = send(w->to, w->ring.data + w->ring.begin, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        ring_consume(&w->ring, (size_t)sent);
        return sent > 0;
}

static int watch_frames(struct gate *g, const uint8_t *bytes, size_t n) {
        TRY(frame_watch_feed(&g->frames, bytes, n));
        if (g->frames.rest == 0)
                g->large = false;
        if (g->large || g->frames.rest <= g->options->large)
                return 0;
        g->large = true;
        return g->options->large_comes(g->userdata) ? 0 : -ENOBUFS;
}

static int move_bytes(struct gate *g) {
        size_t total = 0, n;
        uint8_t *bytes;
        int moved;

        do {
                int in = fill_way(&g->in, &bytes, &n), out;

                TRY(in);
                TRY(watch_frames(g, bytes, n));
                TRY(moved = empty_way(&g->in));
                TRY(out = fill_way(&g->out, &bytes, &n));
                moved += in + out;
                TRY(out = empty_way(&g->out));
                moved += out;
                total += RING_MAX;
        } while (moved > 0 && total < BUDGET);
        return 0;
}

static void watch_gate(struct gate *g) {
        uint32_t client = 0, pair = 0;

        if (!g->in.over && !ring_full(&g->in.ring))
                client |= EPOLLIN;
        if (ring_size(&g->out.ring) > 0)
                client |= EPOLLOUT;
        if (!g->out.over && !ring_full(&g->out.ring))
                pair |= EPOLLIN;
        if (ring_size(&g->in.ring) > 0)
                pair |= EPOLLOUT;
        (void)sd_event_source_set_io_events(g->client_io, client);
        (void)sd_event_source_set_io_events(g->pair_io, pair);
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct gate *g = userdata;

        if (g->ended)
                return 0;
        if (move_bytes(g) < 0 || (g->in.over && ring_size(&g->in.ring) == 0) ||
            (g->out.over && ring_size(&g->out.ring) == 0))
                end_gate(g);
        else
                watch_gate(g);
        return 0;
}

int gate_new(sd_event *event, int fd, const struct gate_options *options, void *userdata, int *ret_bus_fd,
             struct gate **ret) {
        _cleanup_(gate_free_p) struct gate *g = calloc(1, sizeof(*g));
        _cleanup_close_ int client = fd, bus = -EBADF;
        int fds[2];

        if (!g)
                return -ENOMEM;
        *g = (struct gate){ .options = options, .userdata = userdata, .client = -EBADF, .pair = -EBADF };
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        bus = fds[1];
        g->pair = fds[0];
        g->client = TAKE_FD(client);
        g->in = (struct way){ .from = g->client, .to = g->pair, .ring.max = RING_MAX };
        g->out = (struct way){ .from = g->pair, .to = g->client, .ring.max = RING_MAX };
        g->frames.max = (uint32_t)options->message_max;
        TRY(sd_event_add_io(event, &g->client_io, g->client, EPOLLIN, on_io, g));
        TRY(sd_event_add_io(event, &g->pair_io, g->pair, EPOLLIN, on_io, g));
        *ret_bus_fd = TAKE_FD(bus);
        *ret = TAKE_PTR(g);
        return 0;
}

bool gate_is_large(const struct gate *g) {
        return g->large;
}

struct gate *gate_free(struct gate *g) {
        if (!g)
                return NULL;
        sd_event_source_disable_unref(g->client_io);
        sd_event_source_disable_unref(g->pair_io);
        (void)close_fd(g->client);
        (void)close_fd(g->pair);
        ring_done(&g->in.ring);
        ring_done(&g->out.ring);
        free(g);
        return NULL;
}
