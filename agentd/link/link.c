/* SPDX-License-Identifier: Apache-2.0 */
/* The link to masterd. Invariant: a channel either has a peer or a timer that will dial (or a resolution that
 * will), never both and never neither; "up" is announced once per registration and "down" once after it. */
#include "agentd/link/link.h"

#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/wire/authority.h"

#define MASTER_PORT 7747
#define HANDSHAKE_USEC (10 * USEC_PER_SEC)
#define QUEUE_MAX (UINT64_C(64) << 20)
#define CONGESTED (UINT64_C(4) << 20)
#define CALL_USEC (60 * USEC_PER_SEC)
#define RETRY_FIRST_USEC (100 * USEC_PER_MSEC)
#define RETRY_MAX_USEC (5 * USEC_PER_SEC)
#define RETRY_REFUSED_USEC (30 * USEC_PER_SEC)
#define HEARTBEAT_MIN_USEC (10 * USEC_PER_MSEC)
#define ADDRESSES_MAX 8u
#define PATIENT_FAILURES 5u
#define SENT_MAX 64u /* heartbeats whose answer is awaited */

struct channel {
        struct link *link;
        enum link_channel kind;
        bool wanted, up, refused, resolving, worked;
        struct peer *peer;
        sd_event_source *retry;
        unsigned failures;
        unsigned address;                   /* which of the name's addresses is tried */
        uint64_t hello_boot, register_boot; /* when they were sent */
};

/* A resolution outlives nothing: the worker is freed before the link. */
struct resolution {
        struct channel *channel;
        char *host;
        uint16_t port;
        int error; /* of getaddrinfo() */
        struct addr addresses[ADDRESSES_MAX];
        size_t n;
};

struct link {
        sd_event *event;
        struct worker *worker;
        struct tls_credentials *credentials;
        struct link_options options;
        struct link_ops ops;
        void *userdata;
        struct channel main, bulk, calls;
        struct welcome welcome;
        uint16_t minor;
        bool takes_calls; /* the master does */
        sd_event_source *heartbeat;
        uint64_t seq, sent[SENT_MAX], heard;
};

/* At most max, at least half of it. */
static uint64_t jitter(uint64_t max) {
        uint64_t n = 0;

        if (getrandom(&n, sizeof(n), 0) != sizeof(n))
                n = now_boot(); /* no two hosts are asked in the same microsecond */
        return max / 2 + n % (max / 2 + 1);
}

static int dial(struct channel *c);

/* ---- dialling ---- */

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata) {
        if (dial(userdata) < 0)
                log_oom();
        return 0;
}

static void dial_later(struct channel *c, uint64_t usec) {
        int r;

        if (!c->retry)
                r = sd_event_add_time_relative(c->link->event, &c->retry, CLOCK_BOOTTIME, usec, 0, on_retry,
                                               c);
        else if ((r = sd_event_source_set_time_relative(c->retry, usec)) >= 0)
                r = sd_event_source_set_enabled(c->retry, SD_EVENT_ONESHOT);
        if (r < 0) {
                log_error_errno(r, "Cannot set a timer for the link");
                (void)sd_event_exit(c->link->event, EXIT_FAILURE);
        }
}

/* A master that comes back, or refuses us only for our version, must hear from us well before it counts us
 * LOST. */
static uint64_t retry_max(const struct link *l, uint64_t max) {
        uint64_t lost = l->welcome.lost_usec > 0 ? l->welcome.lost_usec : l->options.lost_usec;

        return lost > 0 ? MIN(max, lost / 4) : max;
}

static void dial_failed(struct channel *c) {
        uint64_t usec = RETRY_FIRST_USEC << MIN(c->failures, 6u);

        /* Others are tried at once where none has worked yet. After that, one that has worked is given time:
         * a master that is being started again refuses for a moment, and over another network this host would
         * have another address. */
        if (!c->worked || c->failures >= PATIENT_FAILURES)
                c->address++;
        c->failures++;
        dial_later(c, jitter(c->refused ? retry_max(c->link, RETRY_REFUSED_USEC)
                                        : MIN(usec, retry_max(c->link, RETRY_MAX_USEC))));
}

static int connect_to(const struct addr *a) {
        _cleanup_close_ int fd = -EBADF;
        struct sockaddr_storage ss;
        socklen_t size = addr_to_sockaddr(a, &ss);

        fd = socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *)&ss, size) < 0 && errno != EINPROGRESS)
                return -errno;
        return TAKE_FD(fd);
}

static int on_peer_ready(struct peer *p, void *userdata);
static void on_peer_ended(struct peer *p, const struct peer_end *end, void *userdata);

static void resolved(struct channel *c, const struct addr *addresses, size_t n) {
        const struct peer_options options = {
                .expect_name = AUTHORITY_MASTER_NAME,
                .expect_role = PEER_MASTER,
                .handshake_usec = HANDSHAKE_USEC,
                .queue_max = QUEUE_MAX,
        };
        int r;

        if (c->kind != LINK_MAIN && !c->link->main.up)
                return; /* dialled again once the main connection is up */
        if (!c->wanted)
                return;
        /* One address a try, so that one that does not answer does not hold up the others for long. */
        r = connect_to(&addresses[c->address % n]);
        if (r >= 0)
                r = peer_new(c->link->event, r, c->link->credentials, &options, on_peer_ready, on_peer_ended,
                             c, &c->peer);
        if (r < 0) {
                if (c->failures == 0)
                        log_warning_errno(r, "Cannot reach masterd at %s; trying again",
                                          c->link->options.master);
                dial_failed(c);
        }
}

static void run_resolution(void *data) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
        struct resolution *q = data;
        struct addrinfo *list;

        q->error = getaddrinfo(q->host, NULL, &hints, &list);
        if (q->error)
                return;
        for (struct addrinfo *i = list; i && q->n < ADDRESSES_MAX; i = i->ai_next)
                if (addr_from_sockaddr(i->ai_addr, &q->addresses[q->n]) >= 0)
                        q->addresses[q->n++].port = q->port;
        freeaddrinfo(list);
}

static void on_resolved(void *data) {
        struct resolution *q = data;
        struct channel *c = q->channel;

        c->resolving = false;
        if (q->n > 0)
                resolved(c, q->addresses, q->n);
        else {
                if (c->failures == 0)
                        log_warning("Cannot find masterd's host %s: %s; trying again", q->host,
                                    q->error ? gai_strerror(q->error) : "it has no address");
                dial_failed(c);
        }
        free(q->host);
        free(q);
}

static int dial(struct channel *c) {
        struct resolution *q;
        struct addr a;
        int r;

        if (c->peer || c->resolving)
                return 0;
        if (addr_parse(c->link->options.master, MASTER_PORT, &a) >= 0) {
                resolved(c, &a, 1);
                return 0;
        }
        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        q->channel = c;
        r = addr_split(c->link->options.master, MASTER_PORT, &q->host, &q->port);
        if (r >= 0)
                r = worker_submit(c->link->worker, run_resolution, on_resolved, q);
        if (r < 0) {
                free(q->host);
                free(q);
                return r;
        }
        c->resolving = true;
        return 0;
}

/* ---- messages ---- */

static int message(struct channel *c, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(peer_bus(c->peer), ret, NULL, LINK_PATH, LINK_INTERFACE,
                                              member);
}

int link_message(struct link *l, bool bulk, const char *member, sd_bus_message **ret) {
        struct channel *c = !l ? NULL : bulk ? &l->bulk : &l->main;

        return c && c->up ? message(c, member, ret) : -ENOTCONN;
}

int link_send(struct link *l, sd_bus_message *m) {
        int r = sd_bus_message_set_expect_reply(m, false);

        return r < 0 ? r : sd_bus_send(sd_bus_message_get_bus(m), m, NULL);
}

static void give_up(struct channel *c, int error, const char *what) {
        log_error_errno(error, "%s", what);
        peer_close(c->peer, what);
}

/* ---- heartbeats ---- */

static int on_heartbeat(sd_event_source *s, uint64_t usec, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct link *l = userdata;
        uint64_t now = now_boot();
        int r;

        if (!l->main.up)
                return 0;
        if (now - l->heard > l->welcome.lost_usec) {
                peer_close(l->main.peer, "masterd is silent");
                return 0;
        }
        l->seq++;
        l->sent[l->seq % SENT_MAX] = now;
        if ((r = message(&l->main, "Heartbeat", &m)) < 0 ||
            (r = sd_bus_message_append(m, "ta{sv}", l->seq, 0)) < 0 || (r = link_send(l, m)) < 0)
                give_up(&l->main, r, "Cannot send a heartbeat");
        (void)sd_event_source_set_time_relative(s, l->welcome.heartbeat_usec);
        (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        return 0;
}

void link_again(struct link *l, const char *why) {
        if (l && l->main.up && l->main.peer)
                peer_close(l->main.peer, why);
}

uint64_t link_heartbeat_acked(struct link *l, uint64_t seq) {
        if (!l->main.up || seq > l->seq || seq == 0 || l->seq - seq >= SENT_MAX)
                return 0;
        l->heard = now_boot();
        l->ops.acked(l->sent[seq % SENT_MAX], l->userdata);
        return l->sent[seq % SENT_MAX];
}

static int start_heartbeats(struct link *l) {
        int r;

        l->heard = now_boot();
        if (!l->heartbeat)
                return sd_event_add_time_relative(l->event, &l->heartbeat, CLOCK_BOOTTIME, 0, 0, on_heartbeat,
                                                  l);
        r = sd_event_source_set_time_relative(l->heartbeat, 0);
        return r < 0 ? r : sd_event_source_set_enabled(l->heartbeat, SD_EVENT_ONESHOT);
}

/* ---- Hello, Register ---- */

static void tell_refused(struct channel *c, const struct link_refused *r) {
        if (c->refused && c->kind == LINK_MAIN)
                c->link->ops.refused(r, c->link->userdata);
}

/* True, and the channel is closed, when the reply is an error. */
static bool was_refused(struct channel *c, sd_bus_message *reply, const char *what) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct link_refused refused = { .why = e ? e->message ?: e->name : "" };
        bool version;

        if (!e)
                return false;
        version = sd_bus_error_has_name(e, LINK_ERROR_VERSION);
        c->refused = version || sd_bus_error_has_name(e, LINK_ERROR_REFUSED);
        log_error("masterd refused %s: %s", what, refused.why);
        if (version && link_refusal_read(reply, &refused.who) > 0)
                refused.sent_boot = c->hello_boot;
        tell_refused(c, &refused);
        peer_close(c->peer, "masterd refused it");
        return true;
}

/* We refuse masterd. */
static void do_not_follow(struct channel *c, const char *why) {
        c->refused = true;
        log_error("Not following masterd at %s: %s", c->link->options.master, why);
        tell_refused(c, &(struct link_refused){ .why = why });
        peer_close(c->peer, "not followed");
}

static const char *const names[_LINK_CHANNEL_MAX] = {
        [LINK_MAIN] = "this agent",
        [LINK_BULK] = "the second connection",
        [LINK_CALLS] = "the connection for calls",
};

static void set_up(struct channel *c) {
        c->up = true;
        c->worked = true;
        c->failures = 0;
        c->refused = false;
}

static void dial_anew(struct channel *c) {
        if (!c->wanted || c->peer)
                return;
        c->failures = 0;
        dial_later(c, 0);
}

static int on_registered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct channel *c = userdata;
        struct link *l = c->link;
        int r;

        if (was_refused(c, reply, "the registration"))
                return 0;
        set_up(c);
        r = start_heartbeats(l);
        if (r < 0) {
                give_up(c, r, "Cannot start the heartbeats");
                return 0;
        }
        log_info("Registered with masterd %s (link %u.%u, term %llu, epoch %llu)", l->welcome.build,
                 LINK_MAJOR, l->minor, (unsigned long long)l->welcome.term,
                 (unsigned long long)l->welcome.epoch);
        l->ops.up(c->register_boot, l->userdata);
        dial_anew(&l->bulk);
        dial_anew(&l->calls);
        return 0;
}

static int register_node(struct channel *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct link *l = c->link;
        struct addr local;

        peer_local_address(c->peer, &local);
        local.port = 0;
        c->register_boot = now_boot();
        TRY(message(c, "Register", &m));
        TRY(sd_bus_message_append(m, "s", l->options.boot_id));
        TRY(l->ops.registration(m, &local, l->userdata));
        return sd_bus_call_async(peer_bus(c->peer), NULL, m, on_registered, c, CALL_USEC);
}

static int on_welcome(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct channel *c = userdata;
        struct link *l = c->link;
        struct welcome w;
        const char *why = NULL;
        int r;

        if (was_refused(c, reply, names[c->kind]))
                return 0;
        r = welcome_read(reply, &w);
        if (r <= 0) {
                give_up(c, r < 0 ? r : -EBADMSG, "masterd's welcome is not understood");
                return 0;
        }
        if (!link_versions_fit(w.major, w.minor)) {
                char text[LINK_VERSION_TEXT_MAX];
                do_not_follow(c, link_version_refusal(LINK_AGENT, w.build, w.major, w.minor, text));
                welcome_done(&w);
                return 0;
        }
        if (c->kind != LINK_MAIN) {
                welcome_done(&w);
                set_up(c);
                if (c->kind == LINK_BULK)
                        l->ops.bulk_up(l->userdata);
                else
                        l->ops.calls_up(l->userdata);
                return 0;
        }
        if (w.lost_usec < 3 * HEARTBEAT_MIN_USEC || w.heartbeat_usec < HEARTBEAT_MIN_USEC ||
            w.heartbeat_usec > w.lost_usec) {
                welcome_done(&w);
                give_up(c, -EBADMSG, "masterd's heartbeat times make no sense");
                return 0;
        }
        /* A master of before says nothing of the kind. */
        (void)welcome_read_extra(reply, &l->takes_calls);
        r = l->ops.welcome(&w, &why, l->userdata);
        if (r < 0) {
                do_not_follow(c, why);
                welcome_done(&w);
                return 0;
        }
        welcome_done(&l->welcome);
        l->welcome = w;
        l->minor = link_minor_spoken(w.minor);
        r = register_node(c);
        if (r < 0)
                give_up(c, r, "Cannot register with masterd");
        return 0;
}

static int say_hello(struct channel *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct link *l = c->link;

        c->hello_boot = now_boot();
        TRY(message(c, "Hello", &m));
        TRY(sd_bus_message_append(m, "qqsasa{sv}", LINK_MAJOR, LINK_MINOR, PRIMUS_VERSION, 0, 3, "node", "s",
                                  l->options.node, "bulk", "b", (int)(c->kind == LINK_BULK), "calls", "b",
                                  (int)(c->kind == LINK_CALLS)));
        return sd_bus_call_async(peer_bus(c->peer), NULL, m, on_welcome, c, CALL_USEC);
}

static int on_peer_ready(struct peer *p, void *userdata) {
        struct channel *c = userdata;
        const sd_bus_vtable *vtable =
                c->kind == LINK_BULK ? c->link->options.bulk_orders : c->link->options.orders;
        int r = 0;

        if (c->kind != LINK_CALLS)
                r = sd_bus_add_object_vtable(peer_bus(p), NULL, LINK_PATH, LINK_INTERFACE, vtable,
                                             c->link->options.orders_data);
        return r < 0 ? r : say_hello(c);
}

static void hang_up(struct channel *c) {
        if (c->peer)
                peer_close(c->peer, "the link is down");
        if (c->retry)
                (void)sd_event_source_set_enabled(c->retry, SD_EVENT_OFF);
}

static void on_peer_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct channel *c = userdata;
        struct link *l = c->link;
        bool was_up = c->up, identity = end->error == -EKEYREJECTED || end->error == -EKEYEXPIRED ||
                                        end->error == -EKEYREVOKED || end->error == -EIDRM;

        c->up = false;
        c->peer = NULL;
        c->refused |= identity;
        if (c->wanted && (was_up || c->failures == 0 || identity))
                log_full(identity ? LOG_ERR : LOG_WARNING, 0, NULL, "%s to masterd at %s ended: %s",
                         c->kind == LINK_MAIN   ? "The link"
                         : c->kind == LINK_BULK ? "The second connection"
                                                : "The connection for calls",
                         l->options.master, end->why);
        if (identity)
                tell_refused(c, &(struct link_refused){ .why = end->why, .removed = end->error == -EIDRM });
        peer_free(p);
        if (c->kind != LINK_MAIN) {
                if (was_up && c->kind == LINK_BULK)
                        l->ops.bulk_down(l->userdata);
                else if (c->kind == LINK_CALLS)
                        l->ops.calls_down(l->userdata);
                if (l->main.up && c->wanted)
                        dial_failed(c);
                return;
        }
        if (l->heartbeat)
                (void)sd_event_source_set_enabled(l->heartbeat, SD_EVENT_OFF);
        hang_up(&l->bulk);
        hang_up(&l->calls);
        if (was_up) {
                l->ops.down(l->userdata);
                c->failures = 1;
                /* The herd of all agents comes back within the spread that masterd asked for. */
                dial_later(c, MAX(jitter(l->welcome.spread_usec), jitter(RETRY_FIRST_USEC)));
        } else
                dial_failed(c);
}

/* ---- the rest ---- */

sd_bus *link_bus(struct link *l) {
        return l && l->main.up ? peer_bus(l->main.peer) : NULL;
}

sd_bus *link_bulk_bus(struct link *l) {
        return l && l->bulk.up ? peer_bus(l->bulk.peer) : NULL;
}

sd_bus *link_calls_bus(struct link *l) {
        return l && l->calls.up ? peer_bus(l->calls.peer) : NULL;
}

bool link_takes_calls(const struct link *l) {
        return l && l->main.up && l->takes_calls;
}

void link_want_calls(struct link *l, bool wanted) {
        struct channel *c = l ? &l->calls : NULL;

        if (!c || c->wanted == wanted)
                return;
        c->wanted = wanted;
        if (!wanted && c->peer)
                peer_close(c->peer, "nobody calls");
        else if (wanted && l->main.up)
                dial_anew(c);
}

bool link_is_congested(struct link *l, bool bulk) {
        const struct channel *c = !l ? NULL : bulk ? &l->bulk : &l->main;

        return c && c->peer && peer_queued(c->peer) > CONGESTED;
}

uint64_t link_queued(struct link *l) {
        return l && l->main.peer ? peer_queued(l->main.peer) : 0;
}

uint16_t link_minor(const struct link *l) {
        return l->minor;
}

const struct welcome *link_welcome(const struct link *l) {
        return &l->welcome;
}

void link_set_credentials(struct link *l, struct tls_credentials *credentials) {
        l->credentials = credentials;
}

int link_new(sd_event *event, struct worker *worker, struct tls_credentials *credentials,
             const struct link_options *options, const struct link_ops *ops, void *userdata,
             struct link **ret) {
        _cleanup_(link_free_p) struct link *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        l->event = sd_event_ref(event);
        l->worker = worker;
        l->credentials = credentials;
        l->options = *options;
        l->ops = *ops;
        l->userdata = userdata;
        l->main = (struct channel){ .link = l, .kind = LINK_MAIN, .wanted = true };
        l->bulk = (struct channel){ .link = l, .kind = LINK_BULK, .wanted = true };
        l->calls = (struct channel){ .link = l, .kind = LINK_CALLS };
        r = dial(&l->main);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

void link_free(struct link *l) {
        if (!l)
                return;
        sd_event_source_disable_unref(l->heartbeat);
        sd_event_source_disable_unref(l->main.retry);
        sd_event_source_disable_unref(l->bulk.retry);
        sd_event_source_disable_unref(l->calls.retry);
        if (l->calls.peer)
                peer_free(l->calls.peer);
        if (l->bulk.peer)
                peer_free(l->bulk.peer);
        if (l->main.peer)
                peer_free(l->main.peer);
        welcome_done(&l->welcome);
        sd_event_unref(l->event);
        free(l);
}
