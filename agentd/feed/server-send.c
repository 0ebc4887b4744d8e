/* SPDX-License-Identifier: Apache-2.0 */
/* What the peers of the feed socket are told. Invariant: packets leave in order; while some wait, the peer is
 * watched for room. */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utlist.h>

#include "agentd/feed/server-internal.h"
#include "lib/base/cleanup.h"

int feed_watch(struct peer *p) {
        uint32_t events = (p->held ? 0 : EPOLLIN) | (p->queue ? EPOLLOUT : 0);

        return sd_event_source_set_io_events(p->io, events);
}

int feed_transmit(struct peer *p, const void *packet, size_t size, const int fds[2]) {
        struct iovec iov = { (void *)packet, size };
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(2 * sizeof(int))];
        } control = { 0 };
        struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (fds) {
                m.msg_control = &control;
                m.msg_controllen = sizeof(control);
                struct cmsghdr *c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(2 * sizeof(int));
                memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
        }
        return sendmsg(p->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int feed_send(struct peer *p, const void *packet, size_t size) {
        struct queued *q;
        int r;

        if (!p->queue) {
                r = feed_transmit(p, packet, size, NULL);
                if (r != -EAGAIN && r != -EINTR && r != -ENOBUFS)
                        return r;
        }
        if (p->queued_bytes + size > p->server->limits.queue_bytes)
                return -ENOBUFS;
        q = malloc(sizeof(*q) + size);
        if (!q)
                return -ENOMEM;
        *q = (struct queued){ .size = size };
        memcpy(q->bytes, packet, size);
        LL_APPEND(p->queue, q);
        p->queued_bytes += size;
        return feed_watch(p);
}

int feed_send_simple(struct peer *p, uint32_t type, const void *body, size_t size) {
        uint8_t packet[sizeof(struct feed_header) + 512];
        struct feed_header header = { .type = type,
                                      .size = (uint32_t)MIN(size, sizeof(packet) - sizeof(header)) };

        memcpy(packet, &header, sizeof(header));
        memcpy(packet + sizeof(header), body ? body : "", header.size);
        return feed_send(p, packet, sizeof(header) + header.size);
}

int feed_flush(struct peer *p) {
        struct queued *q;

        while ((q = p->queue)) {
                int r = feed_transmit(p, q->bytes, q->size, NULL);

                if (r == -EAGAIN || r == -EINTR || r == -ENOBUFS)
                        return 0;
                if (r < 0)
                        return r;
                LL_DELETE(p->queue, q);
                p->queued_bytes -= q->size;
                free(q);
        }
        return feed_watch(p);
}
