/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to agentd. Invariant: fd is a socket in every state but SESSION_DOWN, and -EBADF there. */
#include "executor/feed/session.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define BACKOFF_MIN (10 * USEC_PER_MSEC)
#define BACKOFF_MAX USEC_PER_SEC
#define IDENTIFY_MAX (10 * USEC_PER_SEC)

void session_init(struct session *s, const char *path) {
        *s = (struct session){ .path = path, .fd = -EBADF, .pipe_read = -EBADF, .pipe_write = -EBADF };
}

void session_done(struct session *s) {
        s->fd = close_fd(s->fd);
        s->pipe_read = close_fd(s->pipe_read);
        s->pipe_write = close_fd(s->pipe_write);
        s->state = SESSION_DOWN;
}

static void session_lost(struct session *s, uint64_t now) {
        s->fd = close_fd(s->fd);
        s->state = SESSION_DOWN;
        s->backoff = s->backoff ? MIN(s->backoff * 2, BACKOFF_MAX) : BACKOFF_MIN;
        s->due = now + s->backoff;
}

static int send_packet(int fd, uint32_t type, const void *body, size_t size, bool credentials) {
        struct feed_header header = { .type = type, .size = (uint32_t)size };
        struct iovec iov[2] = { { &header, sizeof(header) }, { (void *)body, size } };
        struct ucred me = { .pid = getpid(), .uid = getuid(), .gid = getgid() };
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(struct ucred))];
        } control = { 0 };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = size > 0 ? 2 : 1 };

        if (credentials) {
                m.msg_control = &control;
                m.msg_controllen = sizeof(control);
                struct cmsghdr *c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_CREDENTIALS;
                c->cmsg_len = CMSG_LEN(sizeof(me));
                memcpy(CMSG_DATA(c), &me, sizeof(me));
        }
        if (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                return errno == EINTR || errno == ENOBUFS ? -EAGAIN : -errno;
        return 0;
}

uint64_t session_step(struct session *s, uint64_t now) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct feed_hello hello = { .version = FEED_VERSION, .pid = (uint32_t)getpid() };

        if (s->state == SESSION_UP)
                return USEC_INFINITY;
        if (now < s->due)
                return s->due;
        if (s->state != SESSION_DOWN) {
                /* agentd took the connection and says nothing: try another one. */
                session_lost(s, now);
                return s->due;
        }
        strncpy(address.sun_path, s->path, sizeof(address.sun_path) - 1);
        s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            send_packet(s->fd, FEED_HELLO, &hello, sizeof(hello), false) < 0) {
                session_lost(s, now);
                return s->due;
        }
        s->state = SESSION_HELLO;
        s->due = now + IDENTIFY_MAX;
        return s->due;
}

static void take_descriptors(struct session *s, struct msghdr *m) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                int fds[2];
                size_t n;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds, CMSG_DATA(c), MIN(n, ELEMENTSOF(fds)) * sizeof(int));
                s->pipe_read = close_fd(s->pipe_read);
                s->pipe_write = close_fd(s->pipe_write);
                if (n > 0)
                        s->pipe_read = fds[0];
                if (n > 1)
                        s->pipe_write = fds[1];
        }
}

/* What the file's head says of the descriptor. */
static bool fd_fits_state(const struct session *s) {
        return (s->state == SESSION_DOWN) == (s->fd == -EBADF);
}

/* The packets of the identification; the rest is for the caller. 1: for the caller, 0: dealt with, < 0: hang
 * up. */
static int identify(struct session *s, uint64_t now, const struct feed_header *h, const uint8_t *body) {
        switch (h->type) {
        case FEED_CHALLENGE:
                if (s->state != SESSION_HELLO || h->size != sizeof(struct feed_challenge))
                        return -EPROTO;
                s->state = SESSION_ANSWERED;
                return send_packet(s->fd, FEED_ANSWER, body, h->size, true);
        case FEED_WELCOME:
                if (s->state != SESSION_ANSWERED || h->size < sizeof(struct feed_welcome))
                        return -EPROTO;
                memcpy(&s->welcome, body, sizeof(s->welcome));
                s->state = SESSION_UP;
                s->backoff = 0;
                s->refused_since = 0;
                return 1;
        case FEED_REFUSED:
                snprintf(s->refused, sizeof(s->refused), "%.*s", (int)MIN(h->size, 255u), (const char *)body);
                if (s->refused_since == 0)
                        s->refused_since = now;
                return -ECONNREFUSED;
        default:
                return s->state == SESSION_UP ? 1 : -EPROTO;
        }
}

int session_receive(struct session *s, uint64_t now, uint8_t *buf, struct feed_header *ret) {
        assert(fd_fits_state(s));
        while (s->state != SESSION_DOWN) {
                union {
                        struct cmsghdr align;
                        char bytes[CMSG_SPACE(2 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
                } control;
                struct feed_header header;
                struct iovec iov[2] = { { &header, sizeof(header) },
                                        { buf, FEED_PACKET_MAX - sizeof(header) } };
                struct msghdr m = { .msg_iov = iov,
                                    .msg_iovlen = 2,
                                    .msg_control = &control,
                                    .msg_controllen = sizeof(control) };
                ssize_t l = recvmsg(s->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
                int r;

                if (l < 0 && (errno == EAGAIN || errno == EINTR))
                        return 0;
                if (l > 0)
                        take_descriptors(s, &m);
                if (l < (ssize_t)sizeof(header) || header.size != (size_t)l - sizeof(header) ||
                    (m.msg_flags & MSG_TRUNC)) {
                        session_lost(s, now);
                        return 0;
                }
                buf[header.size] = 0;
                r = identify(s, now, &header, buf);
                if (r < 0) {
                        session_lost(s, now);
                        return 0;
                }
                if (r > 0) {
                        *ret = header;
                        return 1;
                }
        }
        return 0;
}

int session_send(struct session *s, uint64_t now, uint32_t type, const void *body, size_t size) {
        int r;

        assert(fd_fits_state(s));
        if (s->state != SESSION_UP)
                return -ENOTCONN;
        r = send_packet(s->fd, type, body, size, false);
        if (r < 0 && r != -EAGAIN) {
                session_lost(s, now);
                return -ENOTCONN;
        }
        return r;
}
