/* SPDX-License-Identifier: Apache-2.0 */
/* masterd's end of the port: accepts, bounds how many strangers it deals with and how fast, hands known nodes
 * over and takes requests to join. Invariant: a connection is in the list of strangers until it is handed
 * over, answered or dropped, and nothing that a stranger does makes a handler fail. */
#include <endian.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/names.h"
#include "lib/wire/join-wire.h"
#include "lib/wire/join.h"
#include "lib/wire/peer-internal.h"

#define STRANGERS_MAX 256u
#define STRANGER_USEC (10 * USEC_PER_SEC)
#define STRANGER_BYTES (UINT64_C(64) << 10)
#define EVICT_AFTER_USEC USEC_PER_SEC
#define HANDSHAKES_PER_SEC 500u
#define HANDSHAKES_BURST 100u
#define PAUSE_USEC (50 * USEC_PER_MSEC)
#define REPLY_USEC (5 * USEC_PER_SEC)
#define ACCEPTS_PER_TURN 16u
#define SOCKETS_MAX 16u
#define BACKLOG 4096

/* A stranger; once it asked to join, also what join_answer() gets. */
struct join_pending {
        struct listener *listener; /* NULL: the listener is gone */
        struct join_pending *prev, *next;
        uint64_t since;
        struct addr from;
        struct peer *peer; /* during the handshake */

        struct tls *tls; /* joining */
        int fd;          /* -EBADF once the other side is gone */
        sd_event_source *source, *timer;
        uint8_t *bytes; /* the request, then the reply */
        size_t size, done;
        bool deciding, replying;
};

struct listener {
        sd_event *event;
        struct tls_credentials *credentials;
        struct listener_handlers handlers;
        void *userdata;
        int fds[SOCKETS_MAX];
        sd_event_source *sources[SOCKETS_MAX];
        size_t n;
        uint16_t port;
        sd_event_source *resume;
        struct join_pending *oldest, *newest;
        unsigned strangers;
        uint64_t tokens_usec; /* a full bucket is HANDSHAKES_BURST handshakes' worth of time */
        uint64_t refilled;
};

DEFINE_CLEANUP(struct listener *, listener_free)

/* ---- the list of strangers ---- */

static void stranger_link(struct listener *l, struct join_pending *c) {
        c->listener = l;
        c->prev = l->newest;
        if (l->newest)
                l->newest->next = c;
        else
                l->oldest = c;
        l->newest = c;
        l->strangers++;
}

static void stranger_unlink(struct join_pending *c) {
        struct listener *l = c->listener;
        if (!l)
                return;
        if (c->prev)
                c->prev->next = c->next;
        else
                l->oldest = c->next;
        if (c->next)
                c->next->prev = c->prev;
        else
                l->newest = c->prev;
        l->strangers--;
        c->listener = NULL;
}

static void stranger_disconnect(struct join_pending *c) {
        c->source = sd_event_source_disable_unref(c->source);
        c->timer = sd_event_source_disable_unref(c->timer);
        peer_free(c->peer);
        c->peer = NULL;
        tls_free(c->tls);
        c->tls = NULL;
        c->fd = close_fd(c->fd);
}

/* The connection is over. What waits for join_answer() stays until then. */
static void stranger_drop(struct join_pending *c) {
        stranger_unlink(c);
        stranger_disconnect(c);
        if (c->deciding)
                return;
        if (c->bytes)
                explicit_bzero(c->bytes, c->size);
        free(c->bytes);
        free(c);
}

static void tell_refused(struct join_pending *c, const char *name, const char *why) {
        struct listener *l = c->listener;
        if (l && l->handlers.refused)
                l->handlers.refused(&c->from, name, why, l->userdata);
}

/* ---- joining ---- */

static int on_join_late(sd_event_source *s, uint64_t usec, void *userdata) {
        struct join_pending *c = userdata;
        if (!c->replying)
                tell_refused(c, NULL, "the request to join takes too long");
        stranger_drop(c);
        return 0;
}

static void step_reply(struct join_pending *c) {
        while (c->done < c->size) {
                ssize_t n = tls_send(c->tls, c->bytes + c->done, MIN(c->size - c->done, (size_t)16384));
                if (n < 0) {
                        stranger_drop(c);
                        return;
                }
                if (n == 0) {
                        (void)sd_event_source_set_io_events(c->source, EPOLLOUT);
                        return;
                }
                c->done += (size_t)n;
                if (c->done == c->size) {
                        tls_goodbye(c->tls);
                        (void)shutdown(c->fd, SHUT_WR);
                        (void)sd_event_source_set_io_events(c->source, EPOLLIN);
                }
        }
        /* All is said: the other side closes, or the timer ends it. */
        uint8_t rest[1024];
        ssize_t n = recv(c->fd, rest, sizeof rest, MSG_DONTWAIT);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
                stranger_drop(c);
}

static size_t put_text(uint8_t *p, const char *s, size_t n) {
        if (n > 0)
                memcpy(p, s, n);
        return n;
}

/* With the name that was asked for; the bytes are the request still. */
static void tell_refused_join(struct join_pending *c, const char *why) {
        struct join_head head;
        char name[JOIN_NAME_MAX + 1];
        size_t n;

        memcpy(&head, c->bytes, sizeof head);
        n = MIN((size_t)be16toh(head.name_size), sizeof name - 1);
        memcpy(name, c->bytes + sizeof head, n);
        name[n] = '\0';
        tell_refused(c, node_name_valid(name) ? name : NULL, why);
        explicit_bzero(&head, sizeof head);
}

void join_answer(struct join_pending *c, const char *why, const char *cert_pem, const char *ca_pem) {
        c->deciding = false;
        if (c->fd < 0) {
                stranger_drop(c);
                return;
        }
        const char *first = why ? why : cert_pem, *second = why ? "" : ca_pem;
        size_t n1 = strnlen(first, why ? JOIN_WHY_MAX : JOIN_PEM_MAX), n2 = strnlen(second, JOIN_PEM_MAX);
        const struct join_reply head = { .status = why ? JOIN_REFUSED : JOIN_GRANTED,
                                         .size = { htobe32((uint32_t)n1), htobe32((uint32_t)n2) } };
        uint8_t *reply = malloc(sizeof head + n1 + n2);
        if (!reply) {
                stranger_drop(c);
                return;
        }
        memcpy(reply, &head, sizeof head);
        size_t at = sizeof head;
        at += put_text(reply + at, first, n1);
        at += put_text(reply + at, second, n2);
        if (why)
                tell_refused_join(c, why);
        explicit_bzero(c->bytes, c->size);
        free(c->bytes);
        c->bytes = reply;
        c->size = at;
        c->done = 0;
        c->replying = true;
        /* The answer may be given from within the request's own event: it is sent from the next. */
        (void)sd_event_source_set_io_events(c->source, EPOLLOUT);
        (void)sd_event_source_set_time_relative(c->timer, REPLY_USEC);
}

static void decide_join(struct join_pending *c) {
        struct listener *l = c->listener;
        char name[JOIN_NAME_MAX + 1];
        struct join_request request = { .name = name, .from = c->from };
        struct join_head head;

        c->deciding = true;
        (void)sd_event_source_set_io_events(c->source, 0);
        if (join_request_split(c->bytes, c->done, &head, name, &request.csr_pem, &request.csr_size) < 0) {
                join_answer(c, "the node's name is not a host name of small letters, digits, - and .", NULL,
                            NULL);
                return;
        }
        request.id = head.id;
        request.secret = head.secret;
        l->handlers.join(c, &request, l->userdata);
        explicit_bzero(&head, sizeof head);
}

static void step_request(struct join_pending *c) {
        for (;;) {
                ssize_t n, want = join_request_wanted(c->bytes, c->done);

                if (want < 0) {
                        tell_refused(c, NULL, "not a request to join");
                        stranger_drop(c);
                        return;
                }
                if (c->done == (size_t)want)
                        break;
                n = tls_receive(c->tls, c->bytes + c->done, (size_t)want - c->done);
                if (n < 0) {
                        tell_refused(c, NULL, c->tls->end.why);
                        stranger_drop(c);
                        return;
                }
                if (n == 0)
                        return;
                c->done += (size_t)n;
        }
        decide_join(c);
}

static int on_join_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct join_pending *c = userdata;
        if (c->replying)
                step_reply(c);
        else if (!c->deciding)
                step_request(c);
        else /* hung up while it waited */
                stranger_drop(c);
        return 0;
}

/* ---- handshakes ---- */

static void on_wants_join(struct peer *p, struct tls *tls, int fd, void *userdata) {
        struct join_pending *c = userdata;
        struct listener *l = c->listener;
        peer_free(p);
        c->peer = NULL;
        c->tls = tls;
        c->fd = fd;
        c->size = JOIN_REQUEST_MAX;
        c->bytes = malloc(c->size);
        uint64_t spent = usec_sub(now_boot(), c->since);
        if (!c->bytes || sd_event_add_io(l->event, &c->source, fd, EPOLLIN, on_join_io, c) < 0 ||
            sd_event_add_time_relative(l->event, &c->timer, CLOCK_BOOTTIME, usec_sub(STRANGER_USEC, spent), 0,
                                       on_join_late, c) < 0) {
                stranger_drop(c);
                return;
        }
        step_request(c); /* GnuTLS may hold it already */
}

static void on_stranger_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct join_pending *c = userdata;
        if (end->error < 0)
                tell_refused(c, peer_name(p), end->why);
        stranger_drop(c);
}

static int on_link_ready(struct peer *p, void *userdata) {
        struct join_pending *c = userdata;
        struct listener *l = c->listener;
        peer_set_owner(p, l->handlers.link_ended, l->userdata);
        int r = l->handlers.link_ready(p, l->userdata);
        if (r < 0) {
                peer_set_owner(p, on_stranger_ended, c);
                return r;
        }
        c->peer = NULL;
        stranger_drop(c);
        return 0;
}

static const char *on_check(const char *name, const char *serial_hex, void *userdata) {
        struct join_pending *c = userdata;
        struct listener *l = c->listener;
        return l->handlers.check ? l->handlers.check(name, serial_hex, l->userdata) : NULL;
}

static void welcome_stranger(struct listener *l, int fd, const struct sockaddr *from) {
        const struct peer_options options = {
                .server = true, .expect_role = PEER_NODE, .handshake_usec = STRANGER_USEC, .check = on_check
        };
        struct join_pending *c = calloc(1, sizeof *c);
        if (!c) {
                close_fd(fd);
                return;
        }
        c->fd = -EBADF;
        c->since = now_boot();
        (void)addr_from_sockaddr(from, &c->from);
        stranger_link(l, c);
        if (peer_new_accepted(l->event, fd, l->credentials, &options, STRANGER_BYTES,
                              l->handlers.join ? on_wants_join : NULL, on_link_ready, on_stranger_ended, c,
                              &c->peer) < 0)
                stranger_drop(c);
}

/* ---- accepting ---- */

static void watch_sockets(struct listener *l, bool on) {
        for (size_t i = 0; i < l->n; i++)
                (void)sd_event_source_set_enabled(l->sources[i], on ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_resume(sd_event_source *s, uint64_t usec, void *userdata) {
        watch_sockets(userdata, true);
        return 0;
}

/* Leaves newcomers in the kernel's backlog for a while. */
static void pause_accepting(struct listener *l) {
        if (sd_event_source_set_time_relative(l->resume, PAUSE_USEC) >= 0 &&
            sd_event_source_set_enabled(l->resume, SD_EVENT_ONESHOT) >= 0)
                watch_sockets(l, false);
}

/* A token bucket in units of time. */
static bool take_token(struct listener *l) {
        const uint64_t price = USEC_PER_SEC / HANDSHAKES_PER_SEC, full = HANDSHAKES_BURST * price;
        uint64_t now = now_boot(), filled = usec_add(l->tokens_usec, usec_sub(now, l->refilled));
        l->tokens_usec = MIN(filled, full);
        l->refilled = now;
        if (l->tokens_usec < price)
                return false;
        l->tokens_usec -= price;
        return true;
}

/* Room for one more: a crowd of strangers that stay silent makes way, oldest first. */
static bool make_room(struct listener *l) {
        if (l->strangers < STRANGERS_MAX)
                return true;
        if (now_boot() < usec_add(l->oldest->since, EVICT_AFTER_USEC))
                return false;
        tell_refused(l->oldest, NULL, "too many connections that are not known yet");
        stranger_drop(l->oldest);
        return true;
}

static int on_listen(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct listener *l = userdata;
        for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
                struct sockaddr_storage from;
                socklen_t size = sizeof from;
                if (!make_room(l) || !take_token(l)) {
                        pause_accepting(l);
                        return 0;
                }
                int conn = accept4(fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (conn < 0) {
                        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                                pause_accepting(l);
                        return 0;
                }
                welcome_stranger(l, conn, (struct sockaddr *)&from);
        }
        return 0;
}

static int listen_on(const struct addr *a, int *ret) {
        struct sockaddr_storage ss;
        socklen_t size = addr_to_sockaddr(a, &ss);
        const int yes = 1;
        _cleanup_close_ int fd = socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (a->family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
        if (bind(fd, (struct sockaddr *)&ss, size) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        *ret = TAKE_FD(fd);
        return 0;
}

static uint16_t bound_port(int fd) {
        struct sockaddr_storage ss;
        socklen_t size = sizeof ss;
        struct addr a;
        if (getsockname(fd, (struct sockaddr *)&ss, &size) < 0 ||
            addr_from_sockaddr((struct sockaddr *)&ss, &a) < 0)
                return 0;
        return a.port;
}

/* "Every address" of a family that this kernel does not have is no error while another address is there. */
static bool dispensable(const struct addr *a, int r) {
        static const uint8_t any[16];
        return memcmp(a->bytes, any, sizeof any) == 0 && (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL);
}

static int listen_all(struct listener *l, const struct addr *addresses, size_t n) {
        int missing = -EINVAL;
        for (size_t i = 0; i < n; i++) {
                struct addr a = addresses[i];
                if (a.port == 0)
                        a.port = l->port; /* the same free port for all */
                int r = listen_on(&a, &l->fds[l->n]);
                if (r < 0 && !dispensable(&a, r))
                        return r;
                if (r < 0) {
                        missing = r;
                        continue;
                }
                int fd = l->fds[l->n++];
                if (l->port == 0)
                        l->port = bound_port(fd);
                r = sd_event_add_io(l->event, &l->sources[l->n - 1], fd, EPOLLIN, on_listen, l);
                if (r < 0)
                        return r;
        }
        return l->n > 0 ? 0 : missing;
}

int listener_new(sd_event *event, const struct addr *addresses, size_t n, struct tls_credentials *credentials,
                 const struct listener_handlers *handlers, void *userdata, struct listener **ret) {
        if (n > SOCKETS_MAX)
                return -E2BIG;
        _cleanup_(listener_free_p) struct listener *l = calloc(1, sizeof *l);
        if (!l)
                return -ENOMEM;
        l->event = sd_event_ref(event);
        l->credentials = tls_credentials_ref(credentials);
        l->handlers = *handlers;
        l->userdata = userdata;
        l->tokens_usec = USEC_PER_SEC;
        l->refilled = now_boot();
        int r = listen_all(l, addresses, n);
        if (r < 0)
                return r;
        if ((r = sd_event_add_time_relative(event, &l->resume, CLOCK_BOOTTIME, 0, 0, on_resume, l)) < 0 ||
            (r = sd_event_source_set_enabled(l->resume, SD_EVENT_OFF)) < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

void listener_free(struct listener *l) {
        if (!l)
                return;
        while (l->oldest)
                stranger_drop(l->oldest);
        for (size_t i = 0; i < l->n; i++) {
                sd_event_source_disable_unref(l->sources[i]);
                close_fd(l->fds[i]);
        }
        sd_event_source_disable_unref(l->resume);
        tls_credentials_free(l->credentials);
        sd_event_unref(l->event);
        free(l);
}

uint16_t listener_port(const struct listener *l) {
        return l->port;
}

void listener_set_credentials(struct listener *l, struct tls_credentials *credentials) {
        tls_credentials_ref(credentials);
        tls_credentials_free(l->credentials);
        l->credentials = credentials;
}
