/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to primus-executor. Invariant: what comes over it is checked before anything is done with
 * it, although the executor is ours: a trainer must not fall over a feeder of another version. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "lib/primus/handle.h"
#include "lib/primus/progress.h"

#define PASSED_FDS_MAX 4

struct passed {
        int fds[PASSED_FDS_MAX];
        size_t n;
};

int handle_fail(struct primus *p, int error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(p->error, sizeof(p->error), format, ap);
        va_end(ap);
        return error < 0 ? error : -error;
}

uint64_t feed_clock(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

int client_dial(struct primus *p, const char *name) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -EBADF;
        size_t n = strlen(name);

        if (name[0] != '@' || n < 2 || n > sizeof(address.sun_path))
                return handle_fail(p, EINVAL, "PRIMUS_FEED is '%.120s', which is no name of a feed", name);
        memcpy(address.sun_path + 1, name + 1, n - 1);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return handle_fail(p, errno, "cannot make a socket: %m");
        while (connect(fd, (struct sockaddr *)&address,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0) {
                if (errno == EINTR)
                        continue;
                if (errno == ECONNREFUSED)
                        return handle_fail(
                                p, ECONNREFUSED,
                                "nobody answers at %.120s ($PRIMUS_FEED): its primus-executor has ended, "
                                "or this is another network namespace",
                                name);
                return handle_fail(p, errno, "cannot connect to %.120s ($PRIMUS_FEED): %m", name);
        }
        p->fd = TAKE_FD(fd);
        return 0;
}

static int connection_over(struct primus *p) {
        p->gone = true;
        return handle_fail(p, ECONNRESET, "the connection to primus-executor is over");
}

static int send_parts(struct primus *p, uint32_t type, struct iovec *parts, size_t n) {
        struct client_header header = { .type = type };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = n };

        for (size_t i = 1; i < n; i++)
                header.size += (uint32_t)parts[i].iov_len;
        parts[0] = (struct iovec){ &header, sizeof(header) };
        if (p->gone)
                return connection_over(p);
        while (sendmsg(p->fd, &message, MSG_NOSIGNAL) < 0) {
                if (errno == EINTR)
                        continue;
                if (errno == EPIPE || errno == ECONNRESET)
                        return connection_over(p);
                return handle_fail(p, errno, "cannot tell primus-executor: %m");
        }
        return 0;
}

int client_send(struct primus *p, uint32_t type, const void *body, size_t size) {
        struct iovec parts[2] = { {}, { (void *)(uintptr_t)body, size } };

        return send_parts(p, type, parts, 2);
}

int client_send_state(struct primus *p, uint32_t type, const void *prefix, size_t prefix_size,
                      const void *state, size_t state_size) {
        const size_t room = CLIENT_PACKET_MAX - sizeof(struct client_header);
        const uint8_t *at = state;

        for (;;) {
                size_t n = MIN(state_size, room - prefix_size);
                struct iovec parts[3] = { {},
                                          { (void *)(uintptr_t)prefix, prefix_size },
                                          { (void *)(uintptr_t)at, n } };
                int r = send_parts(p, type, parts, 3);

                if (r < 0)
                        return r;
                at += n;
                state_size -= n;
                if (state_size == 0)
                        return 0;
                type = CLIENT_MORE;
                prefix_size = 0;
        }
}

static void passed_done(struct passed *x) {
        for (size_t i = 0; i < x->n; i++)
                x->fds[i] = close_fd(x->fds[i]);
        x->n = 0;
}

static void passed_take(struct msghdr *message, struct passed *ret) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                size_t n;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                        if (ret->n < PASSED_FDS_MAX)
                                ret->fds[ret->n++] = fd;
                        else
                                close_fd(fd);
                }
        }
}

/* One packet into p->packet. 1; 0: none now (with MSG_DONTWAIT); negative: over, or interrupted. */
static int receive_packet(struct primus *p, int flags, uint32_t *ret_type, size_t *ret_size,
                          struct passed *passed) {
        union {
                struct cmsghdr align;
                uint8_t bytes[CMSG_SPACE(sizeof(int) * PASSED_FDS_MAX)];
        } control;
        struct iovec part = { p->packet, CLIENT_PACKET_MAX };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        struct client_header header;
        ssize_t n;

        passed->n = 0;
        if (p->gone)
                return connection_over(p);
        n = recvmsg(p->fd, &message, flags | MSG_CMSG_CLOEXEC);
        if (n < 0) {
                if (errno == EAGAIN)
                        return 0;
                if (errno == EINTR)
                        return -EINTR;
                if (errno == ECONNRESET)
                        return connection_over(p);
                return handle_fail(p, errno, "cannot read from primus-executor: %m");
        }
        passed_take(&message, passed);
        if (n == 0)
                return connection_over(p);
        if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || (size_t)n < sizeof(header))
                goto broken;
        memcpy(&header, p->packet, sizeof(header));
        if (header.size != (size_t)n - sizeof(header))
                goto broken;
        *ret_type = header.type;
        *ret_size = header.size;
        return 1;
broken:
        passed_done(passed);
        p->gone = true;
        return handle_fail(p, EPROTO, "primus-executor sent a packet that cannot be understood");
}

static int not_expected(struct primus *p, uint32_t type, size_t size) {
        p->gone = true;
        return handle_fail(
                p, EPROTO,
                "primus-executor sent a packet of type %u and %zu bytes, which nobody expects here", type,
                size);
}

static int take_committed(struct primus *p, size_t size) {
        if (size != 0 || p->committed == p->commits)
                return -EPROTO;
        p->committed++;
        held_committed(&p->held, p->committed, feed_clock());
        return 0;
}

int client_drain(struct primus *p) {
        for (;;) {
                struct passed passed;
                const uint8_t *body = p->packet + sizeof(struct client_header);
                uint32_t type;
                size_t size;
                int r = receive_packet(p, MSG_DONTWAIT, &type, &size, &passed);

                if (r == -EINTR)
                        continue;
                if (r <= 0)
                        return r;
                if (type == CLIENT_COMMITTED)
                        r = take_committed(p, size);
                else if (type == CLIENT_PLACE)
                        r = client_take_place(p, body, size);
                else
                        r = p->ops->packet ? p->ops->packet(p, type, body, size,
                                                            passed.n == 1 ? &passed.fds[0] : NULL)
                                           : -EPROTO;
                passed_done(&passed);
                if (r == -EPROTO)
                        return not_expected(p, type, size);
                if (r < 0)
                        return r;
        }
}

int client_wait(struct primus *p, int fd) {
        struct pollfd fds[2] = { { .fd = p->gone ? -1 : p->fd, .events = POLLIN },
                                 { .fd = fd, .events = POLLIN } };
        uint64_t begin = feed_clock();
        int r;

        do {
                r = poll(fds, 2, progress_wait_msec());
                progress_waiting();
        } while (r == 0 || (r < 0 && errno == EINTR && !p->interruptible));
        p->waited_usec += feed_clock() - begin;
        if (r < 0)
                return errno == EINTR ? -EINTR : handle_fail(p, errno, "cannot wait for data: %m");
        return fds[1].revents != 0;
}

static int take_formats(struct primus *p, const struct client_welcome *w, const uint8_t *body, size_t size) {
        if (w->n_sources > CLIENT_SOURCES_MAX || size != w->n_sources * sizeof(struct client_format))
                return -EPROTO;
        p->formats = calloc(MAX(w->n_sources, 1u), sizeof(*p->formats));
        if (!p->formats)
                return handle_fail(p, ENOMEM, "no memory");
        p->n_formats = w->n_sources;
        for (uint32_t i = 0; i < w->n_sources; i++) {
                struct client_format f;

                memcpy(&f, body + i * sizeof(f), sizeof(f));
                if (f.kind >= _RECORD_KIND_MAX ||
                    ((f.kind == RECORD_RAW || f.kind == RECORD_FIXED) && f.record_size == 0))
                        return -EPROTO;
                /* On a pipe, messages are lines without their framing. */
                if (w->mode == DELIVERY_STDIN && f.kind == RECORD_MESSAGE)
                        f.kind = RECORD_TEXT;
                p->formats[i] = (struct record_format_info){
                        .kind = f.kind,
                        .record_size = f.record_size,
                        .multiline = f.flags & 1,
                };
        }
        return 0;
}

static int take_ring(struct primus *p, const struct client_welcome *w, struct passed *passed) {
        int r;

        if (passed->n != 4)
                return -EPROTO;
        passed->n = 0;
        r = ring_consumer_new(passed->fds, w->slots, w->slot_size, &p->ring.consumer);
        if (r < 0)
                return handle_fail(p, r, "cannot map the ring of primus-executor: %s", strerror(-r));
        return 0;
}

static int take_welcome(struct primus *p, const uint8_t *body, size_t size, struct passed *passed) {
        struct client_welcome w;
        int r;

        if (size < sizeof(w))
                return -EPROTO;
        memcpy(&w, body, sizeof(w));
        if (!client_version_fits(w.version))
                return handle_fail(p, EPROTONOSUPPORT,
                                   "primus-executor speaks version %u, this libprimus (" PRIMUS_VERSION
                                   ") %u to %u: the executor was started before an upgrade; start it anew",
                                   w.version, CLIENT_VERSION_OLDEST, CLIENT_VERSION + 1);
        if (w.mode >= _DELIVERY_MAX || w.ack >= _ACK_MODE_MAX || w.max_record == 0 ||
            w.max_record > INPUT_RECORD_MAX)
                return -EPROTO;
        r = take_formats(p, &w, body + sizeof(w), size - sizeof(w));
        if (r < 0)
                return r;
        p->mode = w.mode == DELIVERY_RING         ? PRIMUS_RING
                  : w.mode == DELIVERY_DESCRIPTOR ? PRIMUS_DESCRIPTOR
                                                  : PRIMUS_STDIN;
        p->ops = w.mode == DELIVERY_RING         ? &mode_ring
                 : w.mode == DELIVERY_DESCRIPTOR ? &mode_descriptor
                                                 : &mode_stdin;
        p->ack = w.ack;
        p->peer_version = w.version;
        p->max_record = w.max_record;
        return w.mode == DELIVERY_RING ? take_ring(p, &w, passed) : 0;
}

int client_hello(struct primus *p, const void *state, size_t state_size) {
        struct client_hello hello = { .version = CLIENT_VERSION, .state_size = (uint32_t)state_size };
        struct passed passed;
        const uint8_t *body = p->packet + sizeof(struct client_header);
        uint32_t type;
        size_t size;
        int r;

        r = client_send_state(p, CLIENT_HELLO, &hello, sizeof(hello), state, state_size);
        if (r < 0)
                return r;
        do
                r = receive_packet(p, 0, &type, &size, &passed);
        while (r == -EINTR && !p->interruptible);
        if (r == -EINTR)
                return handle_fail(p, EINTR, "interrupted");
        if (r < 0)
                return r;
        if (type == CLIENT_REFUSED)
                r = handle_fail(p, EPERM, "primus-executor refuses: %.*s",
                                (int)MIN(size, (size_t)ERROR_TEXT_MAX / 2), (const char *)body);
        else
                r = type == CLIENT_WELCOME ? take_welcome(p, body, size, &passed) : -EPROTO;
        passed_done(&passed);
        return r == -EPROTO ? not_expected(p, type, size) : r;
}
