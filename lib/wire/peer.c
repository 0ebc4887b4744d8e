/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a connection: connecting, handshake, acceptance, pumping, draining, ended. The server says with
 * one byte inside TLS that it accepts; only then is the client ready, so that a refusal always comes before.
 * Invariant: ended is called once, from the loop, after sd-bus has failed every pending call. */
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer-internal.h"
#include "lib/wire/pump.h"
#include "lib/wire/tcp.h"

#define HANDSHAKE_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 2)
#define ACCEPTED_BYTE 'P'
#define IN_RING_MAX ((size_t)256 << 10)
#define QUEUE_DEFAULT ((size_t)8 << 20)
#define QUEUED_MESSAGES_MAX 64u /* beyond a full queue; one message may be larger than the queue */
#define HANDSHAKE_DEFAULT (10 * USEC_PER_SEC)
#define LINGER_USEC USEC_PER_SEC
#define LINGER_BYTES ((size_t)64 << 10)
#define DRAIN_USEC (5 * USEC_PER_SEC)
#define STALL_CHECK_USEC (250 * USEC_PER_MSEC)
#define BUS_MESSAGES 16u /* handled before others have their turn */
#define BUS_TICK_USEC                                                                                        \
        (5 * USEC_PER_SEC) /* calls without an answer are found at the latest so much too late */

enum peer_state {
        PEER_CONNECTING,
        PEER_HANDSHAKE,
        PEER_ACCEPTING, /* client: waits for the server's word */
        PEER_RUNNING,
        PEER_LINGERING, /* refused: the alert has to arrive before the socket may go */
        PEER_DRAINING,  /* sd-bus gets what came before the end, then its end of file */
        PEER_ENDING,    /* ended is about to be called */
        PEER_ENDED,
};

struct peer {
        sd_event *event;
        struct peer_options options;
        char *expect_name;
        peer_join_handler join;
        peer_ready_handler ready;
        peer_ended_handler ended;
        void *userdata;

        enum peer_state state;
        int fd;
        int bus_fd; /* of the bus; owned by it */
        struct tls *tls;
        sd_bus *bus;
        sd_event_source *socket_source, *pair_source, *timer, *again, *finish;
        sd_event_source *bus_source, *bus_again, *bus_tick;
        unsigned pair_events, bus_events; /* what is watched */
        bool held;                        /* the bus is not served */
        struct pump pump;
        size_t lingered;

        struct addr address;
        struct peer_end end;
        char *end_text; /* where end.why is of the caller */
};

DEFINE_CLEANUP(struct peer *, peer_free)

/* ---- the end ---- */

static sd_event_source *source_gone(sd_event_source *s) {
        return sd_event_source_disable_unref(s);
}

static void close_socket(struct peer *p) {
        p->socket_source = source_gone(p->socket_source);
        p->fd = close_fd(p->fd);
        ring_done(&p->pump.out);
}

static int on_finish(sd_event_source *s, void *userdata) {
        struct peer *p = userdata;
        p->state = PEER_ENDED;
        p->ended(p, &p->end, p->userdata); /* may free p */
        return 0;
}

/* Before the bus closes its descriptor, whose number is then somebody else's. */
static void leave_bus(struct peer *p) {
        p->bus_source = source_gone(p->bus_source);
        p->bus_again = source_gone(p->bus_again);
        p->bus_tick = source_gone(p->bus_tick);
}

/* Calls ended from the next turn of the loop. */
static void finish_peer(struct peer *p) {
        if (p->state >= PEER_ENDING)
                return;
        p->state = PEER_ENDING;
        leave_bus(p);
        p->timer = source_gone(p->timer);
        p->again = source_gone(p->again);
        p->pair_source = source_gone(p->pair_source);
        close_socket(p);
        p->pump.pair_fd = close_fd(p->pump.pair_fd);
        ring_done(&p->pump.in);
        if (p->finish)
                (void)sd_event_source_set_enabled(p->finish, SD_EVENT_ONESHOT);
}

static int set_timer(struct peer *p, uint64_t usec, sd_event_time_handler_t handler) {
        p->timer = source_gone(p->timer);
        return sd_event_add_time_relative(p->event, &p->timer, CLOCK_BOOTTIME, usec, 0, handler, p);
}

static int on_time_up(sd_event_source *s, uint64_t usec, void *userdata) {
        finish_peer(userdata);
        return 0;
}

static void set_end(struct peer *p, int error, const char *why) {
        p->end = (struct peer_end){ .error = error, .why = why };
}

static void deliver_end(struct peer *p);

/* The network side is over: what has come goes to the bus, then its end of file. Without a bus nothing is
 * left to do. */
static void drain_rings(struct peer *p) {
        close_socket(p);
        p->again = source_gone(p->again);
        if (!p->bus || set_timer(p, DRAIN_USEC, on_time_up) < 0) {
                finish_peer(p);
                return;
        }
        p->state = PEER_DRAINING;
        deliver_end(p);
}

static void fail_peer(struct peer *p, int error, const char *why) {
        if (p->state >= PEER_DRAINING)
                return;
        set_end(p, error, why);
        drain_rings(p);
}

/* Before the connection runs: an alert that we sent is lost if the socket is closed while input is unread
 * (RST). */
static void linger(struct peer *p, int error, const char *why) {
        set_end(p, error, why);
        (void)shutdown(p->fd, SHUT_WR);
        if (set_timer(p, LINGER_USEC, on_time_up) < 0 ||
            sd_event_source_set_io_events(p->socket_source, EPOLLIN) < 0)
                finish_peer(p);
        else
                p->state = PEER_LINGERING;
}

static void step_lingering(struct peer *p) {
        uint8_t buf[4096];
        ssize_t n;
        while ((n = recv(p->fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
                if ((p->lingered += (size_t)n) > LINGER_BYTES)
                        break;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        finish_peer(p);
}

/* ---- the pump ---- */

static int on_stall_check(sd_event_source *s, uint64_t usec, void *userdata);

/* A full queue with more behind it: the other side does not read. Looks again later, since the loop stops
 * watching the bus's side while there is no room. */
static void check_stall(struct peer *p) {
        uint64_t waiting = 0;
        if (p->state != PEER_RUNNING || !ring_full(&p->pump.out))
                return;
        if (sd_bus_get_n_queued_write(p->bus, &waiting) >= 0 && waiting > QUEUED_MESSAGES_MAX) {
                fail_peer(p, -ENOBUFS, "stalled: it does not take what is sent to it");
                return;
        }
        if (!p->timer && set_timer(p, STALL_CHECK_USEC, on_stall_check) < 0)
                fail_peer(p, -ENOMEM, "out of memory");
}

static void watch_bus(struct peer *p);

/* A running connection is watched for edges: the event loop hands on one event in a turn and asks the kernel
 * anew in each, which would tell of everything that still waits, so that a thousand waiting connections would
 * cost a thousand steps for each of them (measured: 2,000 agents that came at once did not get in within a
 * minute). The pump and the bus remember what they have not read to its end. */
static void watch_events(sd_event_source *s, unsigned *watched, unsigned events) {
        events |= EPOLLET;
        if (*watched != events && sd_event_source_set_io_events(s, events) >= 0)
                *watched = events;
}

/* One wake-up of either side runs both. */
static void pump_peer(struct peer *p, bool socket_readable, bool pair_readable) {
        p->pump.socket_readable |= socket_readable;
        p->pump.pair_readable |= pair_readable;
        int r = pump_run(&p->pump);
        if (r < 0) {
                fail_peer(p, p->pump.end.error, p->pump.end.why);
                return;
        }
        if (r > 0)
                (void)sd_event_source_set_enabled(p->again, SD_EVENT_ONESHOT);
        check_stall(p);
        if (p->state != PEER_RUNNING)
                return;
        watch_events(p->pair_source, &p->pair_events, pump_pair_events(&p->pump));
        watch_bus(p);
}

/* Draining: only towards the bus. */
static void deliver_end(struct peer *p) {
        pump_deliver(&p->pump);
        watch_events(p->pair_source, &p->pair_events, ring_size(&p->pump.in) > 0 ? EPOLLOUT : 0u);
}

static int on_stall_check(sd_event_source *s, uint64_t usec, void *userdata) {
        struct peer *p = userdata;
        p->timer = source_gone(p->timer);
        pump_peer(p, false, true);
        return 0;
}

static int on_again(sd_event_source *s, void *userdata) {
        pump_peer(userdata, false, false);
        return 0;
}

static int on_pair(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct peer *p = userdata;
        if (p->state == PEER_DRAINING)
                deliver_end(p);
        else
                pump_peer(p, false, revents & ~(uint32_t)EPOLLOUT);
        return 0;
}

/* ---- the bus ---- */

/* The bus is served from here and not by sd_bus_attach_event(): that looks at each attached bus in every turn
 * of the loop, so that a master of N agents would need N steps for each of their heartbeats (measured: half
 * of its time with 300 agents, all of it with 2,000). */

static uint64_t now_monotonic(void) {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

/* Asks for a turn where the bus has something to do that no descriptor tells. */
static void watch_bus(struct peer *p) {
        uint64_t due;
        int events;
        if (p->held || !p->bus_source)
                return;
        events = sd_bus_get_events(p->bus);
        if (events >= 0)
                watch_events(p->bus_source, &p->bus_events, EPOLLIN | (events & POLLOUT ? EPOLLOUT : 0u));
        if (events < 0 || (sd_bus_get_timeout(p->bus, &due) > 0 && due <= now_monotonic()))
                (void)sd_event_source_set_enabled(p->bus_again, SD_EVENT_ONESHOT);
}

static void run_bus(struct peer *p) {
        int r = 1;
        for (unsigned n = 0; r > 0 && n < BUS_MESSAGES && p->bus_source && !p->held; n++)
                r = sd_bus_process(p->bus, NULL);
        if (!p->bus_source)
                return;
        if (p->held) /* else it would have every turn, and what is less urgent none */
                return;
        if (r > 0)
                (void)sd_event_source_set_enabled(p->bus_again, SD_EVENT_ONESHOT);
        else if (r < 0) { /* it is closed, and has said so to all but us */
                finish_peer(p);
                return;
        }
        watch_bus(p);
}

static int on_bus(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        run_bus(userdata);
        return 0;
}

static int on_bus_again(sd_event_source *s, void *userdata) {
        run_bus(userdata);
        return 0;
}

static int on_bus_tick(sd_event_source *s, uint64_t usec, void *userdata) {
        struct peer *p = userdata;
        watch_bus(p);
        (void)sd_event_source_set_time(s, usec + BUS_TICK_USEC);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int serve_bus(struct peer *p) {
        int r;
        if ((r = sd_event_add_io(p->event, &p->bus_source, p->bus_fd, EPOLLIN, on_bus, p)) < 0 ||
            (r = sd_event_add_defer(p->event, &p->bus_again, on_bus_again, p)) < 0)
                return r;
        return sd_event_add_time_relative(p->event, &p->bus_tick, CLOCK_BOOTTIME, BUS_TICK_USEC, USEC_PER_SEC,
                                          on_bus_tick, p);
}

void peer_hold(struct peer *p, bool hold) {
        p->held = hold;
        if (!p->bus_source)
                return;
        if (hold)
                watch_events(p->bus_source, &p->bus_events, 0);
        else
                (void)sd_event_source_set_enabled(p->bus_again, SD_EVENT_ONESHOT);
}

/* The bus has closed, and failed every call that was pending on it. */
static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct peer *p = userdata;
        if (p->state < PEER_DRAINING) {
                set_end(p, -EPROTO, "it does not speak D-Bus");
                tls_goodbye(p->tls);
        }
        finish_peer(p);
        return 0;
}

static int make_bus(struct peer *p) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        _cleanup_close_ int bus_end = fds[1];
        p->pump.pair_fd = fds[0];
        int r;
        TRY(sd_bus_new(&p->bus));
        TRY(sd_bus_set_fd(p->bus, bus_end, bus_end));
        p->bus_fd = TAKE_FD(bus_end);
        TRY(sd_bus_set_anonymous(p->bus, true));
        TRY(sd_bus_set_trusted(p->bus, true));
        TRY(sd_bus_negotiate_fds(p->bus, false));
        if (p->options.server) {
                sd_id128_t id;
                TRY(sd_id128_randomize(&id));
                TRY(sd_bus_set_server(p->bus, true, id));
        }
        TRY(sd_bus_start(p->bus));
        TRY(sd_bus_match_signal(p->bus, NULL, NULL, "/org/freedesktop/DBus/Local",
                                "org.freedesktop.DBus.Local", "Disconnected", on_disconnected, p));
        TRY(serve_bus(p));
        if ((r = sd_event_add_io(p->event, &p->pair_source, p->pump.pair_fd, EPOLLIN, on_pair, p)) < 0)
                return r;
        /* Behind the bus: what it says to all that it has read goes out together, in one TLS record and one
         * write. It goes out with the next bytes that come in any case, so no busy bus holds it back for
         * long. */
        return sd_event_source_set_priority(p->pair_source, SD_EVENT_PRIORITY_NORMAL + 1);
}

static void drop_bus(struct peer *p) {
        if (!p->bus)
                return;
        leave_bus(p);
        sd_bus_close_unref(p->bus);
        p->bus = NULL;
}

/* Identity is known and accepted: makes the bus and shows it to the owner. */
static int start_running(struct peer *p) {
        int r = make_bus(p);
        if (r < 0) {
                drop_bus(p);
                linger(p, r, "no resources for the connection");
                return r;
        }
        p->tls->receive_max = 0;
        p->pump.tls = p->tls;
        p->pump.bounded = p->options.server;
        p->pump.frames.max = LINK_MESSAGE_MAX;
        p->state = PEER_RUNNING;
        (void)sd_event_source_set_io_events(p->socket_source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
        r = p->ready(p, p->userdata);
        if (r < 0 && p->state == PEER_RUNNING) {
                p->pair_source = source_gone(p->pair_source);
                drop_bus(p);
                p->pump.pair_fd = close_fd(p->pump.pair_fd);
                tls_refuse(p->tls);
                linger(p, r, "refused");
                return r;
        }
        if (p->state != PEER_RUNNING)
                return -ECONNABORTED;
        p->timer = source_gone(p->timer);
        return 0;
}

/* ---- becoming known ---- */

static void learn_address(struct peer *p) {
        struct sockaddr_storage ss;
        socklen_t size = sizeof ss;
        if (getpeername(p->fd, (struct sockaddr *)&ss, &size) >= 0)
                (void)addr_from_sockaddr((struct sockaddr *)&ss, &p->address);
}

static void step_connecting(struct peer *p) {
        int error = 0;
        socklen_t size = sizeof error;
        if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                error = errno;
        if (error != 0) {
                const char *why = strerrordesc_np(error);
                fail_peer(p, -error, why ? why : "cannot connect");
                return;
        }
        learn_address(p);
        p->state = PEER_HANDSHAKE;
}

static void step_handshake(struct peer *p) {
        int r = tls_handshake(p->tls);
        if (r < 0) {
                linger(p, p->tls->end.error, p->tls->end.why);
                return;
        }
        (void)sd_event_source_set_io_events(p->socket_source, tls_wants_write(p->tls) ? EPOLLOUT : EPOLLIN);
        if (r == 0)
                return;
        if (!p->options.server) {
                (void)sd_event_source_set_io_events(p->socket_source, EPOLLIN);
                p->state = PEER_ACCEPTING;
                return;
        }
        if (tls_is_join(p->tls)) {
                p->socket_source = source_gone(p->socket_source);
                p->timer = source_gone(p->timer);
                p->state = PEER_ENDED;
                p->join(p, TAKE_PTR(p->tls), TAKE_FD(p->fd), p->userdata); /* may free p */
                return;
        }
        if (start_running(p) < 0)
                return;
        (void)sd_event_source_set_priority(p->socket_source, SD_EVENT_PRIORITY_NORMAL);
        /* The first bytes in the queue of a fresh connection always fit. */
        const uint8_t accepted = ACCEPTED_BYTE;
        ssize_t n = tls_send(p->tls, &accepted, 1);
        if (n <= 0)
                fail_peer(p, -ECONNRESET, n < 0 ? p->tls->end.why : "connection lost");
        else
                pump_peer(p, true, true);
}

static void step_accepting(struct peer *p) {
        uint8_t b;
        ssize_t n = tls_receive(p->tls, &b, 1);
        if (n == 0)
                return;
        if (n < 0)
                fail_peer(p, p->tls->end.error < 0 ? p->tls->end.error : -ECONNRESET, p->tls->end.why);
        else if (b != ACCEPTED_BYTE)
                fail_peer(p, -EPROTO, "it does not speak " TLS_LINK);
        else if (start_running(p) == 0)
                pump_peer(p, true, true);
}

static int on_socket(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct peer *p = userdata;
        if (p->state == PEER_CONNECTING)
                step_connecting(p);
        switch (p->state) {
        case PEER_HANDSHAKE:
                step_handshake(p); /* may free p when it was a join */
                break;
        case PEER_ACCEPTING:
                step_accepting(p);
                break;
        case PEER_RUNNING:
                p->pump.socket_ended |= revents & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
                pump_peer(p, revents & ~(uint32_t)EPOLLOUT, false);
                break;
        case PEER_LINGERING:
                step_lingering(p);
                break;
        default:
                break;
        }
        return 0;
}

static int on_handshake_late(sd_event_source *s, uint64_t usec, void *userdata) {
        struct peer *p = userdata;
        fail_peer(p, -ETIMEDOUT, p->state == PEER_CONNECTING ? "no answer" : "the handshake takes too long");
        return 0;
}

/* ---- making and ending ---- */

static int peer_start(struct peer *p, struct tls_credentials *credentials, enum tls_side side,
                      uint64_t receive_max) {
        const struct tls_expect expect = { .role = p->options.expect_role,
                                           .name = p->expect_name,
                                           .check = p->options.check,
                                           .userdata = p->userdata };
        int r;
        if ((r = tls_new(credentials, side, p->fd, &expect, &p->tls)) < 0)
                return r;
        p->tls->receive_max = receive_max;
        tcp_set_options(p->fd);
        if ((r = sd_event_add_io(p->event, &p->socket_source, p->fd, p->options.server ? EPOLLIN : EPOLLOUT,
                                 on_socket, p)) < 0 ||
            (r = sd_event_add_defer(p->event, &p->again, on_again, p)) < 0 ||
            (r = sd_event_source_set_enabled(p->again, SD_EVENT_OFF)) < 0 ||
            (r = sd_event_add_defer(p->event, &p->finish, on_finish, p)) < 0 ||
            (r = sd_event_source_set_enabled(p->finish, SD_EVENT_OFF)) < 0)
                return r;
        if (p->options.server) {
                learn_address(p);
                p->state = PEER_HANDSHAKE;
                /* A third of a millisecond each: a thousand hosts that come back at once do not hold up those
                 * who are there, nor people. */
                r = sd_event_source_set_priority(p->socket_source, HANDSHAKE_PRIORITY);
                if (r < 0)
                        return r;
        }
        uint64_t limit = p->options.handshake_usec > 0 ? p->options.handshake_usec : HANDSHAKE_DEFAULT;
        return set_timer(p, limit, on_handshake_late);
}

static int peer_new_full(sd_event *event, int fd_in, struct tls_credentials *credentials,
                         const struct peer_options *options, enum tls_side side, uint64_t receive_max,
                         peer_join_handler join, peer_ready_handler ready, peer_ended_handler ended,
                         void *userdata, struct peer **ret) {
        _cleanup_close_ int fd = fd_in;
        _cleanup_(peer_free_p) struct peer *p = calloc(1, sizeof *p);
        if (!p)
                return -ENOMEM;
        p->fd = TAKE_FD(fd);
        p->pump.pair_fd = p->bus_fd = -EBADF;
        p->event = sd_event_ref(event);
        p->options = *options;
        p->join = join;
        p->ready = ready;
        p->ended = ended;
        p->userdata = userdata;
        p->pump.in.max = IN_RING_MAX;
        p->pump.out.max = options->queue_max > 0 ? (size_t)options->queue_max : QUEUE_DEFAULT;
        set_end(p, -ECONNABORTED, "closed");
        if (options->expect_name && !(p->expect_name = strdup(options->expect_name)))
                return -ENOMEM;
        p->options.expect_name = p->expect_name;
        int r = peer_start(p, credentials, side, receive_max);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

int peer_new(sd_event *event, int fd, struct tls_credentials *credentials, const struct peer_options *options,
             peer_ready_handler ready, peer_ended_handler ended, void *userdata, struct peer **ret) {
        return peer_new_full(event, fd, credentials, options, options->server ? TLS_SERVER : TLS_CLIENT, 0,
                             NULL, ready, ended, userdata, ret);
}

int peer_new_accepted(sd_event *event, int fd, struct tls_credentials *credentials,
                      const struct peer_options *options, uint64_t receive_max, peer_join_handler join,
                      peer_ready_handler ready, peer_ended_handler ended, void *userdata, struct peer **ret) {
        return peer_new_full(event, fd, credentials, options, join ? TLS_SERVER_BOTH : TLS_SERVER,
                             receive_max, join, ready, ended, userdata, ret);
}

void peer_set_owner(struct peer *p, peer_ended_handler ended, void *userdata) {
        p->ended = ended;
        p->userdata = userdata;
}

void peer_free(struct peer *p) {
        if (!p)
                return;
        p->timer = source_gone(p->timer);
        p->again = source_gone(p->again);
        p->finish = source_gone(p->finish);
        p->pair_source = source_gone(p->pair_source);
        drop_bus(p);
        tls_free(p->tls);
        close_socket(p);
        close_fd(p->pump.pair_fd);
        ring_done(&p->pump.in);
        sd_event_unref(p->event);
        free(p->expect_name);
        free(p->end_text);
        free(p);
}

void peer_close(struct peer *p, const char *why) {
        if (p->state >= PEER_LINGERING)
                return;
        if (p->state == PEER_RUNNING) {
                uint8_t buf[4096];
                pump_flush(&p->pump);
                while (recv(p->bus_fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
                        ;
                ring_done(&p->pump.in);
        }
        p->end_text = strdup(why);
        set_end(p, -ECONNABORTED, p->end_text ? p->end_text : "closed");
        tls_goodbye(p->tls);
        drain_rings(p);
}

/* ---- properties ---- */

sd_bus *peer_bus(struct peer *p) {
        return p->bus;
}

const char *peer_name(const struct peer *p) {
        return p->tls && p->tls->verified ? p->tls->name : NULL;
}

const char *peer_serial(const struct peer *p) {
        return p->tls && p->tls->verified ? p->tls->serial_hex : NULL;
}

enum peer_role peer_role(const struct peer *p) {
        return p->options.expect_role;
}

void peer_local_address(const struct peer *p, struct addr *ret) {
        struct sockaddr_storage ss;
        socklen_t size = sizeof ss;
        *ret = (struct addr){ .family = AF_UNSPEC };
        if (p->fd >= 0 && getsockname(p->fd, (struct sockaddr *)&ss, &size) >= 0)
                (void)addr_from_sockaddr((struct sockaddr *)&ss, ret);
}

void peer_address(const struct peer *p, struct addr *ret) {
        *ret = p->address;
}

uint64_t peer_queued(const struct peer *p) {
        return ring_size(&p->pump.out);
}
