/* SPDX-License-Identifier: Apache-2.0 */
/* The feed socket's server. Invariant: no packet but the two of the identification has any effect before the
 * peer is known to be a live process in the unit, of the unit's user; a peer's fault ends its connection and
 * nothing else. */
#include "agentd/feed/server-internal.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <uthash.h>
#include <utlist.h>

#include "agentd/feed/packet.h"
#include "agentd/feed/pipes.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "lib/base/utf8.h"
#include "lib/wire/feed.h"
#include "lib/wire/metrics.h"

#define REFUSED_SAY_USEC (10 * USEC_PER_SEC)
#define ACCEPT_TURN 32u  /* connections taken, ... */
#define RECEIVE_TURN 16u /* ... and packets of one peer read, before others get a turn */
/* Packets of metrics of one peer that are taken; libprimus sends one, and its last again on a new connection.
 */
#define METRICS_A_SECOND 8u

const struct feed_limits feed_limits_default = {
        .connections = 4096,
        .per_unit = 8,
        .strangers = 256,
        .per_stranger = 128,
        .identify_usec = 10 * USEC_PER_SEC,
        .pipe_bytes = UINT64_C(256) << 20,
        .queue_bytes = 4u << 20,
};

/* ---- connections ---- */

static void unit_release(struct feed_server *s, struct unit *u, struct peer *p) {
        if (u->feeder == p)
                u->feeder = NULL;
        if (--u->n_peers > 0)
                return;
        HASH_DEL(s->units, u);
        free(u);
}

static void peer_free(struct peer *p) {
        struct feed_server *s = p->server;
        struct queued *q, *next;

        p->dead = true;
        if (p->busy)
                return; /* by whoever is busy with it */
        DL_DELETE(s->peers, p);
        if (p->number > 0)
                HASH_DELETE(hh, s->by_number, p);
        if (p->state == PEER_KNOWN)
                s->n_known--;
        else
                s->n_strangers--;
        if (p->unit)
                unit_release(s, p->unit, p);
        pipe_return(&s->budget, p->pipe_size);
        LL_FOREACH_SAFE (p->queue, q, next)
                free(q);
        sd_event_source_disable_unref(p->io);
        sd_event_source_disable_unref(p->timeout);
        (void)close_fd(p->fd);
        (void)close_fd(p->identity.pidfd);
        free(p->held);
        free(p);
}

/* Says why, as far as the peer listens, and hangs up. */
static void peer_refuse(struct peer *p, const char *why) {
        log_debug("feed: process %d of uid %u%s%s: %s", (int)p->identity.pid, (unsigned)p->identity.uid,
                  p->unit ? ", unit " : "", p->unit ? p->unit->name : "", why);
        (void)feed_send_simple(p, FEED_REFUSED, why, strlen(why));
        peer_free(p);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        peer_refuse(userdata, "took too long to identify itself");
        return 0;
}

/* ---- identification ---- */

static const char *on_hello(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        struct feed_hello hello;

        if (size < sizeof(hello))
                return "HELLO of a wrong size";
        memcpy(&hello, body, sizeof(hello));
        if (!feed_version_fits(hello.version)) {
                snprintf(s->refusal, sizeof(s->refusal),
                         "it speaks version %u of the feed protocol, this agentd (" PRIMUS_VERSION
                         ") %u to %u: its job was started by a Primus too far from this one, and gets no "
                         "data; requeue it",
                         hello.version, FEED_VERSION_OLDEST, FEED_VERSION + 1);
                if (s->refused_said == 0 || now_boot() > usec_add(s->refused_said, REFUSED_SAY_USEC)) {
                        s->refused_said = now_boot();
                        log_warning("Refused a process (pid %d of uid %u) on the feed's socket: %s",
                                    (int)p->identity.pid, (unsigned)p->identity.uid, s->refusal);
                }
                return s->refusal;
        }
        if (getrandom(&p->challenge, sizeof(p->challenge), 0) != (ssize_t)sizeof(p->challenge))
                return "no randomness for a challenge";
        if (feed_send_simple(p, FEED_CHALLENGE, &p->challenge, sizeof(p->challenge)) < 0)
                return "does not take the challenge";
        p->state = PEER_CHALLENGED;
        return NULL;
}

static int unit_get(struct feed_server *s, const char *name, struct unit **ret) {
        struct feed_unit info = { 0 };
        struct unit *u = NULL;
        int r;

        r = s->ops->find_unit(s->userdata, name, &info);
        if (r < 0)
                return r;
        HASH_FIND_STR(s->units, name, u);
        if (!u) {
                if (strlen(name) >= sizeof(u->name))
                        return -ENOENT;
                u = calloc(1, sizeof(*u));
                if (!u)
                        return -ENOMEM;
                strcpy(u->name, name);
                HASH_ADD_STR(s->units, name, u);
        }
        u->info = info;
        *ret = u;
        return 0;
}

static int peer_welcome(struct peer *p) {
        struct feed_server *s = p->server;
        _cleanup_close_ int read_end = -EBADF, write_end = -EBADF;
        struct {
                struct feed_header header;
                struct feed_welcome welcome;
        } packet = {
                .header = { .type = FEED_WELCOME, .size = sizeof(struct feed_welcome) },
                .welcome = { .ack = (uint32_t)p->unit->info.ack, .version = FEED_VERSION },
        };
        int fds[2], r;

        /* Without a size, the trainer's data does not come through its standard input. */
        if (p->unit->info.kind != ORDER_FEED || p->unit->info.pipe_size == 0)
                return feed_transmit(p, &packet, sizeof(packet), NULL);
        r = pipe_make(&s->budget, p->unit->info.pipe_size, fds, &p->pipe_size);
        if (r < 0)
                return r;
        read_end = fds[0];
        write_end = fds[1];
        packet.welcome.pipe_size = p->pipe_size;
        return feed_transmit(p, &packet, sizeof(packet), fds);
}

static const char *on_answer(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        char name[IDENTITY_UNIT_MAX];
        struct unit *u;
        int r;

        if (size != sizeof(p->challenge) || memcmp(body, &p->challenge, size) != 0)
                return "answered the challenge wrongly";
        if (!from || from->pid != p->identity.pid || from->uid != p->identity.uid)
                return "answered the challenge as another process than it connected as";
        r = s->identify(&p->identity, name);
        /* Only while the process lives does its number, and so its control group, mean this process. */
        if (r == -ENOENT || !identity_alive(&p->identity))
                return "is in no unit of an executor";
        if (r < 0)
                return "has a control group that cannot be read";
        r = unit_get(s, name, &u);
        if (r < 0)
                return r == -ENOENT ? "is in a unit that this agent does not know as an executor"
                                    : "cannot be taken for lack of memory";
        u->n_peers++;
        p->unit = u;
        if (u->info.uid != p->identity.uid)
                return "does not run as its unit's user";
        /* A unit's first is always taken: the others are no reason to leave it without its data. */
        if (u->n_peers > s->limits.per_unit || (u->n_peers > 1 && s->n_known >= s->limits.connections))
                return "is one connection too many";
        p->timeout = sd_event_source_disable_unref(p->timeout);
        p->state = PEER_KNOWN;
        s->n_strangers--;
        s->n_known++;
        return peer_welcome(p) < 0 ? "cannot be given a pipe" : NULL;
}

/* ---- packets of known peers ---- */

static const char *on_open(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        struct feed_open open = {};
        struct feed_opened opened;

        if ((size != offsetof(struct feed_open, sources) && size != sizeof(open)) ||
            p->unit->info.kind != ORDER_FEED)
                return "OPEN does not belong here";
        memcpy(&open, body, size);
        opened = (struct feed_opened){ MIN(open.credits, LINK_CREDITS_MAX), open.sources };
        if (p->unit->feeder && p->unit->feeder != p) {
                struct peer *old = p->unit->feeder;

                p->unit->feeder = NULL;
                peer_refuse(old, "another process of the unit has opened the feed");
        }
        p->unit->feeder = p;
        s->ops->on_open(s->userdata, &p->unit->info.id, &opened);
        return NULL;
}

static const char *on_progress(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        struct feed_report report;

        if (p->unit->info.kind != ORDER_FEED || packet_read_progress(body, size, &report) < 0)
                return "PROGRESS is not as it should be";
        s->ops->on_progress(s->userdata, &p->unit->info.id, &report);
        return NULL;
}

static const char *on_final(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        struct feed_report report;

        if (p->unit->info.kind != ORDER_FEED || packet_read_progress(body, size, &report) < 0)
                return "FINAL is not as it should be";
        if (s->ops->on_final(s->userdata, p->unit->name, body, size, !p->final) < 0)
                return "its last report cannot be kept";
        p->final = true;
        return NULL;
}

/* It waits for one more answer of masterd's. False: it waits for too many already. */
static bool expects_answer(struct peer *p) {
        struct feed_server *s = p->server;

        if (p->n_results >= FEED_RESULTS_MAX)
                return false;
        if (p->number == 0) {
                p->number = ++s->last_number;
                HASH_ADD(hh, s->by_number, number, sizeof(p->number), p);
        }
        p->n_results++;
        return true;
}

static const char *on_result(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        struct feed_result result;

        if (size < sizeof(result) || size > FEED_RESULT_MAX || p->unit->info.kind == ORDER_SCAN)
                return "RESULT does not belong here";
        memcpy(&result, body, sizeof(result));
        if (!expects_answer(p))
                return "said more results than it may before one is taken";
        s->ops->on_result(s->userdata, p->number, &p->unit->info.id, &result);
        return NULL;
}

static const char *on_ask(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        _cleanup_free_ char *text = NULL;
        struct feed_ask ask;

        if (size < sizeof(ask) || p->unit->info.kind == ORDER_SCAN)
                return "ASK does not belong here";
        memcpy(&ask, body, sizeof(ask));
        if (ask.text_size > FEED_ASK_MAX || size != sizeof(ask) + ask.text_size ||
            memchr(body + sizeof(ask), 0, ask.text_size))
                return "ASK is not as it should be";
        text = strndup((const char *)body + sizeof(ask), ask.text_size);
        if (!text || !utf8_valid(text, ask.text_size))
                return text ? "asked what is no text" : "cannot be heard for lack of memory";
        if (!expects_answer(p))
                return "asked more than it may before it is answered";
        s->ops->on_ask(s->userdata, p->number, &p->unit->info.id, ask.number, text);
        return NULL;
}

/* What comes more often than anybody has reason to is passed over: it is lossy anyway. */
static const char *on_metrics(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        struct feed_metrics head;

        if (size < sizeof(head) || size > sizeof(head) + METRICS_BYTES_MAX ||
            p->unit->info.kind == ORDER_SCAN)
                return "METRICS do not belong here";
        memcpy(&head, body, sizeof(head));
        if (head.local > METRIC_LOCAL_MAX)
                return "METRICS of a process whose number is too high";
        if (burst_admit(&p->metrics, now_boot(), USEC_PER_SEC, METRICS_A_SECOND))
                s->ops->on_metrics(s->userdata, &p->unit->info.id, head.local, body + sizeof(head),
                                   size - sizeof(head));
        return NULL;
}

static const char *on_entries(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        struct scan_batch batch;
        int r;

        if (p->unit->info.kind != ORDER_SCAN || packet_read_entries(body, size, &batch) < 0)
                return "ENTRIES are not as they should be";
        r = s->ops->on_entries(s->userdata, &p->unit->info.id, &batch);
        if (r != -EAGAIN)
                return NULL;
        p->held = malloc(MAX(size, (size_t)1));
        if (!p->held)
                return "cannot be held for lack of memory";
        memcpy(p->held, body, size);
        p->held_size = size;
        return feed_watch(p) < 0 ? "cannot be watched" : NULL;
}

static const char *on_bye(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from) {
        struct feed_server *s = p->server;
        _cleanup_free_ char *text = NULL;
        struct feed_bye bye;

        if (packet_read_bye(body, size, &bye, &text) < 0)
                return "BYE is not as it should be";
        p->unit->feeder = p; /* a scanner never opens; the farewell goes the way of grants */
        if (s->ops->on_bye(s->userdata, &p->unit->info.id, bye.failed != 0, text) == -EAGAIN)
                return NULL;
        return feed_send_simple(p, FEED_FAREWELL, NULL, 0) < 0 ? "does not take the farewell" : NULL;
}

/* What may come in which state. Anything else ends the connection. */
static const struct {
        enum peer_state state;
        uint32_t type;
        const char *(*handle)(struct peer *p, const uint8_t *body, size_t size, const struct ucred *from);
} packets[] = {
        { PEER_NEW, FEED_HELLO, on_hello },       { PEER_CHALLENGED, FEED_ANSWER, on_answer },
        { PEER_KNOWN, FEED_OPEN, on_open },       { PEER_KNOWN, FEED_PROGRESS, on_progress },
        { PEER_KNOWN, FEED_ENTRIES, on_entries }, { PEER_KNOWN, FEED_BYE, on_bye },
        { PEER_KNOWN, FEED_FINAL, on_final },     { PEER_KNOWN, FEED_RESULT, on_result },
        { PEER_KNOWN, FEED_METRICS, on_metrics }, { PEER_KNOWN, FEED_ASK, on_ask },
};

static const char *peer_handle(struct peer *p, const struct feed_header *h, const uint8_t *body,
                               const struct ucred *from) {
        for (size_t i = 0; i < ELEMENTSOF(packets); i++)
                if (packets[i].state == p->state && packets[i].type == h->type)
                        return packets[i].handle(p, body, h->size, from);
        return "a packet that does not belong here";
}

/* One packet. 1: handled, 0: none there, < 0: hang up. *ret_why: say so first. */
static int peer_receive(struct peer *p, const char **ret_why) {
        uint8_t *buf = p->server->packet;
        struct feed_header header;
        struct iovec iov[2] = { { &header, sizeof(header) }, { buf, FEED_PACKET_MAX - sizeof(header) } };
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(struct ucred)) + 512];
        } control;
        struct msghdr m = {
                .msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        struct ucred from;
        bool known = false;
        ssize_t l = recvmsg(p->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (l < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
                    c->cmsg_len == CMSG_LEN(sizeof(from))) {
                        memcpy(&from, CMSG_DATA(c), sizeof(from));
                        known = true;
                } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
                        /* Nobody is asked for descriptors; those that come are closed. */
                        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                                int fd;

                                memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                                (void)close_fd(fd);
                        }
                }
        }
        if (l == 0)
                return -ENOTCONN;
        if (l < (ssize_t)sizeof(header) || header.size != (size_t)l - sizeof(header) ||
            (m.msg_flags & MSG_TRUNC)) {
                *ret_why = "a packet whose size is not what it says";
                return -EBADMSG;
        }
        *ret_why = peer_handle(p, &header, buf, known ? &from : NULL);
        return *ret_why ? -EBADMSG : 1;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct peer *p = userdata;
        const char *why = NULL;
        int r = 1;

        p->busy = true;
        if (revents & EPOLLOUT)
                r = feed_flush(p) < 0 ? -EPIPE : 1;
        for (unsigned i = 0;
             i < RECEIVE_TURN && r > 0 && !p->dead && !p->held && (revents & ~(uint32_t)EPOLLOUT); i++)
                r = peer_receive(p, &why);
        p->busy = false;
        if (p->dead)
                peer_free(p);
        else if (why)
                peer_refuse(p, why);
        else if (r < 0 || (p->held && (revents & EPOLLHUP)))
                peer_free(p);
        return 0;
}

void feed_drain(struct feed_server *s, const struct executor_id *id) {
        char name[UNIT_NAME_MAX];
        struct peer *p, *next;

        executor_unit_name(id->job, id->role, id->index, id->attempt, name);
        DL_FOREACH_SAFE (s->peers, p, next)
                if (p->unit && !p->held && strcmp(p->unit->name, name) == 0)
                        (void)on_io(p->io, p->fd, EPOLLIN, p);
}

/* ---- the listener ---- */

/* The one who has waited longest among the strangers of a uid, and how many these are. */
static struct peer *strangers_of(const struct feed_server *s, uid_t uid, uint32_t *ret_n) {
        struct peer *oldest = NULL;

        *ret_n = 0;
        for (struct peer *p = s->peers; p; p = p->next)
                if (p->state != PEER_KNOWN && p->identity.uid == uid) {
                        oldest = oldest ?: p;
                        (*ret_n)++;
                }
        return oldest;
}

/* Room for one more stranger of that uid: an executor says who it is in a moment, so who has not is the one
 * to go, among those of the uid that has the most. */
static void make_room(struct feed_server *s, uid_t uid) {
        struct peer *who = NULL, *oldest;
        uint32_t n, most = 0;

        oldest = strangers_of(s, uid, &n);
        if (n >= s->limits.per_stranger)
                who = oldest;
        else if (s->n_strangers >= s->limits.strangers)
                for (struct peer *p = s->peers; p; p = p->next) {
                        if (p->state == PEER_KNOWN)
                                continue;
                        oldest = strangers_of(s, p->identity.uid, &n);
                        if (n > most) {
                                most = n;
                                who = oldest;
                        }
                        if (most * 2 >= s->n_strangers)
                                break;
                }
        if (who)
                peer_refuse(who, "did not say who it is before too many others came");
}

static void peer_new(struct feed_server *s, int fd) {
        _cleanup_close_ int mine = fd;
        char unit[IDENTITY_UNIT_MAX];
        struct identity identity;
        struct peer *p;

        if (identity_open(mine, &identity) < 0)
                return;
        p = calloc(1, sizeof(*p));
        if (!p) {
                (void)close_fd(identity.pidfd);
                return;
        }
        *p = (struct peer){ .server = s, .fd = TAKE_FD(mine), .identity = identity };
        /* Where it is not now it will not be: nobody but systemd puts a process into an executor's unit, and
         * before it runs. Whoever is elsewhere takes no room from those who are there. */
        if (s->identify(&identity, unit) < 0) {
                DL_APPEND(s->peers, p);
                s->n_strangers++;
                peer_refuse(p, "is in no unit of an executor");
                return;
        }
        make_room(s, identity.uid);
        DL_APPEND(s->peers, p);
        s->n_strangers++;
        if (sd_event_add_io(s->event, &p->io, p->fd, EPOLLIN, on_io, p) < 0 ||
            sd_event_add_time_relative(s->event, &p->timeout, CLOCK_BOOTTIME, s->limits.identify_usec, 0,
                                       on_timeout, p) < 0)
                peer_free(p);
}

static int on_listener(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        for (unsigned i = 0; i < ACCEPT_TURN; i++) {
                int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (c < 0)
                        break; /* none left, or no descriptors: those who wait are taken later */
                peer_new(userdata, c);
        }
        return 0;
}

int feed_server_new(sd_event *event, const char *path, const struct feed_limits *limits,
                    feed_identify identify, const struct feed_ops *ops, void *userdata,
                    struct feed_server **ret) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct feed_server *s;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->event = sd_event_ref(event);
        s->limits = limits ? *limits : feed_limits_default;
        s->budget = (struct pipe_budget){ .limit = s->limits.pipe_bytes,
                                          .widen = ops->widen,
                                          .userdata = userdata };
        s->identify = identify ? identify : identity_unit;
        s->ops = ops;
        s->userdata = userdata;
        s->path = strdup(path);
        s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)unlink(path);
        if (!s->path)
                r = -ENOMEM;
        else if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                 chmod(path, 0666) < 0 || listen(s->fd, 4096) < 0)
                r = -errno;
        else
                r = sd_event_add_io(event, &s->listener, s->fd, EPOLLIN, on_listener, s);
        if (r < 0) {
                feed_server_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void feed_server_free(struct feed_server *s) {
        struct peer *p, *next;

        if (!s)
                return;
        DL_FOREACH_SAFE (s->peers, p, next)
                peer_free(p);
        sd_event_source_disable_unref(s->listener);
        (void)close_fd(s->fd);
        free(s->path);
        sd_event_unref(s->event);
        free(s);
}

/* ---- from the manager ---- */

static struct peer *feeder_of(struct feed_server *s, const struct executor_id *id) {
        char name[UNIT_NAME_MAX];
        struct unit *u = NULL;

        executor_unit_name(id->job, id->role, id->index, id->attempt, name);
        HASH_FIND_STR(s->units, name, u);
        return u && u->feeder && !u->feeder->dead ? u->feeder : NULL;
}

/* A packet of a body in two parts, FEED_PACKET_MAX bytes at the most; the second may be empty (NULL). */
static int send_parts(struct peer *p, uint32_t type, const void *head, size_t head_size, const void *rest,
                      size_t rest_size) {
        struct feed_header header = { .type = type, .size = (uint32_t)(head_size + rest_size) };
        uint8_t packet[FEED_PACKET_MAX];
        int r;

        memcpy(packet, &header, sizeof(header));
        if (head_size > 0)
                memcpy(packet + sizeof(header), head, head_size);
        if (rest_size > 0)
                memcpy(packet + sizeof(header) + head_size, rest, rest_size);
        r = feed_send(p, packet, sizeof(header) + header.size);
        if (r < 0)
                peer_free(p);
        return r;
}

/* A packet to the executor's feeder: header and at most TASKS_WIRE_MAX bytes of body. */
static int feed_pass(struct feed_server *s, const struct executor_id *id, uint32_t type, const void *body,
                     size_t size) {
        struct peer *p = feeder_of(s, id);

        return p ? send_parts(p, type, body, size, NULL, 0) : -ENOTCONN;
}

int feed_grant(struct feed_server *s, const struct executor_id *id, const struct grant_batch *batch) {
        int r = 0;

        if (batch->size > TASKS_WIRE_MAX)
                return -E2BIG;
        if (batch->size > 0)
                r = feed_pass(s, id, FEED_GRANT, batch->grants, batch->size);
        return r >= 0 && batch->last ? feed_pass(s, id, FEED_LAST, NULL, 0) : r;
}

int feed_control(struct feed_server *s, const struct executor_id *id, const struct feed_order *order) {
        struct feed_control_order o = { .op = (uint32_t)order->op,
                                        .task = order->task,
                                        .value = order->value };

        return feed_pass(s, id, FEED_CONTROL, &o, sizeof(o));
}

int feed_source(struct feed_server *s, const struct executor_id *id, const struct feed_source_order *order) {
        uint8_t body[sizeof(order->source) + INPUT_SOURCE_BYTES_MAX];
        size_t n = strlen(order->text);

        if (n > INPUT_SOURCE_BYTES_MAX)
                return -E2BIG;
        memcpy(body, &order->source, sizeof(order->source));
        memcpy(body + sizeof(order->source), order->text, n);
        return feed_pass(s, id, FEED_SOURCE, body, sizeof(order->source) + n);
}

int feed_resume(struct feed_server *s, const struct executor_id *id) {
        char name[UNIT_NAME_MAX];
        struct peer *p, *next;

        executor_unit_name(id->job, id->role, id->index, id->attempt, name);
        DL_FOREACH_SAFE (s->peers, p, next) {
                _cleanup_free_ uint8_t *body = NULL;
                const char *why;

                if (!p->held || !p->unit || strcmp(p->unit->name, name) != 0)
                        continue;
                body = TAKE_PTR(p->held);
                p->busy = true;
                why = on_entries(p, body, p->held_size, NULL);
                p->busy = false;
                if (p->dead)
                        peer_free(p);
                else if (why)
                        peer_refuse(p, why);
                else
                        (void)feed_watch(p);
                return 0;
        }
        return -ENOTCONN;
}

int feed_farewell(struct feed_server *s, const struct executor_id *id) {
        struct peer *p = feeder_of(s, id);

        return p ? feed_send_simple(p, FEED_FAREWELL, NULL, 0) : -ENOTCONN;
}

/* What masterd says to one of the questions and results that the peer waits for. */
static void answer_peer(struct feed_server *s, uint64_t peer, uint32_t type, const struct feed_taken *taken,
                        const char *text) {
        struct peer *p;

        HASH_FIND(hh, s->by_number, &peer, sizeof(peer), p);
        if (!p || p->dead || p->n_results == 0)
                return;
        p->n_results--;
        (void)send_parts(p, type, taken, sizeof(*taken), text, taken->text_size);
}

void feed_taken(struct feed_server *s, uint64_t peer, uint64_t number, const char *refused) {
        size_t n = refused ? MIN(strlen(refused), (size_t)400) : 0;

        answer_peer(s, peer, FEED_TAKEN,
                    &(struct feed_taken){
                            .number = number, .refused = refused != NULL, .text_size = (uint32_t)n },
                    refused);
}

void feed_told(struct feed_server *s, uint64_t peer, uint64_t number, bool refused, const char *text) {
        size_t n = MIN(strlen(text), (size_t)FEED_ASK_MAX);

        answer_peer(s, peer, FEED_TOLD,
                    &(struct feed_taken){ .number = number, .refused = refused, .text_size = (uint32_t)n },
                    text);
}

void feed_drop_all(struct feed_server *s) {
        struct peer *p, *next;

        DL_FOREACH_SAFE (s->peers, p, next)
                if (p->state == PEER_KNOWN)
                        peer_free(p);
}

size_t feed_n_connections(const struct feed_server *s) {
        return s->n_known + s->n_strangers;
}

uint64_t feed_pipe_bytes(const struct feed_server *s) {
        return s->budget.used;
}
