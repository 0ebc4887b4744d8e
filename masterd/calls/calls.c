/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: a message on the inner bus has a name that this file has made, of a connection and what its
 * agent calls the caller; whether the host may speak for him is asked at each call; a call is answered at
 * most once, by the connection that it came by, or not at all when that is gone. */
#include "masterd/calls/calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <uthash.h>
#include <utlist.h>

#include "lib/base/audit.h"
#include "lib/base/burst.h"
#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/policy/serve.h"
#include "lib/wire/copy.h"
#include "lib/wire/messages.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/caller.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/link/link-hold.h"
#include "masterd/link/link.h"
#include "masterd/queue/serving.h"

#define PATH_MAX_BYTES 255u /* none of our objects has a longer one */
#define NAME_MAX_BYTES 128u /* of a host's name, a bus's and what stands between them */

/* Refused calls of a host in a second, from which on it is read more slowly: an honest agent hands on no more
 * of one user's. */
#define REFUSED_MAX 2000u

struct host;

struct name {
        struct host *host;
        char far[NAME_MAX_BYTES];
        char local[32]; /* on the host's bus */
        uint32_t uid;
        UT_hash_handle hh; /* of all, by far */
        struct name *prev, *next;
};

/* Whose signals a host hears. */
struct heard {
        char *path;
        UT_hash_handle hh;
};

struct call {
        struct host *host;
        struct name *name;
        sd_bus_message *message; /* as it came */
        sd_bus_slot *slot;       /* its answer on the inner bus */
        size_t bytes;            /* of the message, about */
        struct call *prev, *next;
};

/* A connection of a host for its calls. */
struct host {
        struct manager *manager;
        struct link *link;
        sd_bus_slot *filter;
        struct name *names;
        unsigned n_names;
        struct heard *heard;
        bool hears_all;
        struct call *calls;
        unsigned n_calls;
        size_t bytes;         /* of these */
        struct burst refused; /* within a second */
        UT_hash_handle hh;    /* by link */
};

struct calls {
        sd_bus *inside, *outside; /* the two ends: of the objects, and of who calls them */
        struct callers *callers;
        struct host *hosts;
        struct name *names;
};

/* ---- names ---- */

/* ":1.77", as dbus-daemon makes them; anything else would stand for another one. */
static bool is_local(const char *name) {
        size_t n, k;

        if (*name++ != ':' || strlen(name) + 1 >= sizeof(((struct name *)NULL)->local))
                return false;
        n = strspn(name, "0123456789");
        k = n > 0 && name[n] == '.' ? strspn(name + n + 1, "0123456789") : 0;
        return k > 0 && !name[n + 1 + k];
}

static void name_far(const struct host *h, const char *local, char buf[static NAME_MAX_BYTES]) {
        snprintf(buf, NAME_MAX_BYTES, CALLER_FAR "%s.%s", h->link->node->name, local + 1);
}

static struct name *name_find(struct manager *m, const char *far) {
        struct name *n;

        HASH_FIND_STR(m->calls->names, far, n);
        return n;
}

static struct name *name_of(const struct host *h, const char *local) {
        char far[NAME_MAX_BYTES];

        if (!local || !is_local(local))
                return NULL;
        name_far(h, local, far);
        return name_find(h->manager, far);
}

static void call_free(struct call *c) {
        DL_DELETE(c->host->calls, c);
        c->host->n_calls--;
        c->host->bytes -= c->bytes;
        sd_bus_slot_unref(c->slot);
        sd_bus_message_unref(c->message);
        free(c);
}

static void name_free(struct name *n) {
        struct call *c, *next;

        DL_FOREACH_SAFE (n->host->calls, c, next)
                if (c->name == n)
                        call_free(c);
        callers_far_gone(n->host->manager->calls->callers, n->far);
        HASH_DEL(n->host->manager->calls->names, n);
        DL_DELETE(n->host->names, n);
        n->host->n_names--;
        free(n);
}

/* ---- calls ---- */

static const char *why_not(const struct host *h, const struct name *n, char buf[static SERVE_WHY_MAX]) {
        const struct node *node = h->link->node;
        const struct manager *m = h->manager;

        if (n->uid == 0)
                return "The calls of root are taken on the master's own host alone: primusctl -H HOST";
        if (serve_uid_is_nobodys(n->uid) || n->uid < m->conf.min_uid)
                snprintf(buf, SERVE_WHY_MAX, "uid %u is no person's (MinUid= in masterd.conf)", n->uid);
        else if (!relay_conf_may(&m->conf.relay, node->name, n->uid))
                snprintf(
                        buf, SERVE_WHY_MAX,
                        "The master takes no calls of uid %u from host %.64s (RelayFrom= in masterd.conf); by "
                        "ssh: primusctl -H HOST",
                        n->uid, node->name);
        else if (!serving_may(node, n->uid))
                snprintf(buf, SERVE_WHY_MAX,
                         "Host %.64s does not serve uid %u, so it does not speak for that user either "
                         "(AllowUsers= and the like in its agentd.conf)",
                         node->name, n->uid);
        else
                return NULL;
        return buf;
}

/* That it claims to speak for somebody is somebody's doing there. */
static void note_refusal(const struct name *n, sd_bus_message *call, const char *why) {
        struct audit_line line = AUDIT_LINE_EMPTY;

        if (!burst_admit(&n->host->refused, now_boot(), USEC_PER_SEC, REFUSED_MAX))
                link_hold(n->host->link, LINK_NOTICED_USEC);
        if (!audit_admit_stranger())
                return;
        line.what = "call";
        line.method = sd_bus_message_get_member(call);
        line.object = sd_bus_message_get_path(call);
        line.uid = n->uid;
        line.from = n->host->link->node->name;
        line.result = SD_BUS_ERROR_ACCESS_DENIED;
        line.arguments = why;
        audit_write(&line);
}

static int refuse_call(sd_bus_message *call, const char *name, const char *why) {
        if (!sd_bus_message_get_expect_reply(call))
                return 1;
        (void)reply_errorf(call, name, "%s", why);
        return 1;
}

/* Back to the host, as it is. */
static int hand_back(sd_bus_message *call, sd_bus_message *answer) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        size_t size;

        TRY(message_copy_answer(call, answer, LINK_MESSAGE_MAX, &reply, &size));
        return reply_send(reply);
}

static int on_answer(sd_bus_message *answer, void *userdata, sd_bus_error *error) {
        struct call *c = userdata;
        int r = hand_back(c->message, answer);

        if (r < 0)
                (void)refuse_call(c->message, SD_BUS_ERROR_FAILED,
                                  r == -EOPNOTSUPP
                                          ? "What this call answers cannot leave the master's own host"
                                          : "The answer cannot be handed on");
        call_free(c);
        return 0;
}

static int make_call(struct manager *m, const struct name *n, sd_bus_message *call, sd_bus_message **ret,
                     size_t *ret_bytes) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *inner = NULL;

        TRY(sd_bus_message_new_method_call(m->calls->outside, &inner, NULL, sd_bus_message_get_path(call),
                                           sd_bus_message_get_interface(call),
                                           sd_bus_message_get_member(call)));
        TRY(sd_bus_message_set_sender(inner, n->far));
        TRY(message_copy(inner, call, LINK_MESSAGE_MAX, ret_bytes));
        *ret = TAKE_PTR(inner);
        return 0;
}

static int hand_on(struct host *h, struct name *n, sd_bus_message *call) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *inner = NULL;
        struct call *c;
        size_t bytes;
        int r;

        TRY(make_call(h->manager, n, call, &inner, &bytes));
        if (!sd_bus_message_get_expect_reply(call)) {
                TRY(sd_bus_message_set_expect_reply(inner, false));
                return sd_bus_send(NULL, inner, NULL);
        }
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        *c = (struct call){ .host = h, .name = n, .message = sd_bus_message_ref(call), .bytes = bytes };
        DL_APPEND(h->calls, c);
        h->n_calls++;
        h->bytes += bytes;
        /* Some are answered when something has happened, so nothing here is in a hurry. */
        r = sd_bus_call_async(h->manager->calls->outside, &c->slot, inner, on_answer, c, UINT64_MAX);
        if (r < 0)
                call_free(c);
        return r;
}

/* Whatever comes on the connection of a host: what is not the link's own is somebody's call. */
static int on_message(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct host *h = userdata;
        const char *interface = sd_bus_message_get_interface(call);
        char buf[SERVE_WHY_MAX];
        const char *why;
        struct name *n;
        uint8_t type;
        int r;

        if (sd_bus_message_get_type(call, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL ||
            (interface && strcmp(interface, LINK_INTERFACE) == 0))
                return 0;
        n = name_of(h, sd_bus_message_get_sender(call));
        if (!n)
                return refuse_call(call, SD_BUS_ERROR_ACCESS_DENIED, "The host has not said who calls");
        why = why_not(h, n, buf);
        if (why) {
                note_refusal(n, call, why);
                return refuse_call(call, SD_BUS_ERROR_ACCESS_DENIED, why);
        }
        if (h->n_calls >= CALLS_MAX || h->bytes >= CALLS_BYTES_MAX)
                return refuse_call(call, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                   "Too many calls of this host wait for their answers; try again");
        r = hand_on(h, n, call);
        return r < 0 ? refuse_call(call, SD_BUS_ERROR_FAILED, "The call cannot be handed on") : 1;
}

/* ---- signals ---- */

static int tell_host(const struct host *h, const struct name *n, sd_bus_message *signal) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *outer = NULL;

        TRY(sd_bus_message_new_signal(peer_bus(h->link->peer), &outer, sd_bus_message_get_path(signal),
                                      sd_bus_message_get_interface(signal),
                                      sd_bus_message_get_member(signal)));
        if (n)
                TRY(sd_bus_message_set_destination(outer, n->local));
        TRY(message_copy(outer, signal, LINK_MESSAGE_MAX, NULL));
        return sd_bus_send(NULL, outer, NULL);
}

static bool hears(const struct host *h, const char *path) {
        struct heard *x;

        if (h->hears_all)
                return true;
        HASH_FIND_STR(h->heard, path, x);
        return x;
}

/* To the one whom it is for, or to all hosts that want it. What gets lost is asked for again. */
static int on_signal(sd_bus_message *signal, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        const char *to = sd_bus_message_get_destination(signal);
        const struct name *n = to ? name_find(m, to) : NULL;
        struct host *h, *next;
        uint8_t type;

        if (sd_bus_message_get_type(signal, &type) < 0 || type != SD_BUS_MESSAGE_SIGNAL)
                return 0;
        if (n)
                (void)tell_host(n->host, n, signal);
        HASH_ITER (hh, m->calls->hosts, h, next)
                if (!to && hears(h, sd_bus_message_get_path(signal)))
                        (void)tell_host(h, NULL, signal);
        return 1;
}

static void heard_free(struct host *h, struct heard *x) {
        HASH_DEL(h->heard, x);
        free(x->path);
        free(x);
}

/* ---- connections ---- */

static struct host *host_of(struct manager *m, struct link *l) {
        struct host *h;

        HASH_FIND_PTR(m->calls->hosts, &l, h);
        return h;
}

bool calls_welcome(const struct manager *m, const struct node *node) {
        return relay_conf_host(&m->conf.relay, node->name);
}

int calls_attach(struct link *l) {
        struct manager *m = l->manager;
        struct host *h = calloc(1, sizeof(*h));
        int r;

        if (!h)
                return -ENOMEM;
        *h = (struct host){ .manager = m, .link = l };
        r = sd_bus_add_filter(peer_bus(l->peer), &h->filter, on_message, h);
        if (r < 0) {
                free(h);
                return r;
        }
        HASH_ADD_PTR(m->calls->hosts, link, h);
        m->far = m->calls->inside;
        return 0;
}

void calls_gone(struct manager *m, struct link *l) {
        struct host *h = host_of(m, l);
        struct heard *x, *next;

        if (!h)
                return;
        while (h->names)
                name_free(h->names);
        HASH_ITER (hh, h->heard, x, next)
                heard_free(h, x);
        sd_bus_slot_unref(h->filter);
        HASH_DEL(m->calls->hosts, h);
        free(h);
        if (!m->calls->hosts)
                m->far = NULL;
}

/* A job has its callers where it has executors. */
static bool has_job(const struct node *node, uint32_t job) {
        const struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next)
                if (e->job->number == job)
                        return true;
        return false;
}

void calls_caller(struct link *l, const char *name, uint32_t uid, uint32_t job) {
        struct host *h = host_of(l->manager, l);
        struct name *n;

        if (!h || !is_local(name) || h->n_names >= CALLS_NAMES_MAX || name_of(h, name)) {
                link_noticed(l);
                return;
        }
        n = calloc(1, sizeof(*n));
        if (!n)
                return;
        *n = (struct name){ .host = h, .uid = uid };
        snprintf(n->local, sizeof(n->local), "%s", name);
        name_far(h, name, n->far);
        if (callers_far_add(l->manager->calls->callers, n->far, uid, l->node->name,
                            job > 0 && has_job(l->node, job) ? job : 0) < 0) {
                free(n); /* its calls are refused */
                return;
        }
        HASH_ADD_STR(l->manager->calls->names, far, n);
        DL_APPEND(h->names, n);
        h->n_names++;
}

void calls_caller_gone(struct link *l, const char *name) {
        struct host *h = host_of(l->manager, l);
        struct name *n = h ? name_of(h, name) : NULL;

        if (n)
                name_free(n);
}

void calls_listen(struct link *l, const char *path) {
        struct host *h = host_of(l->manager, l);
        struct heard *x;

        if (!h)
                return;
        if (!*path || HASH_COUNT(h->heard) >= CALLS_PATHS_MAX) {
                h->hears_all = true;
                return;
        }
        HASH_FIND_STR(h->heard, path, x);
        if (x || strlen(path) > PATH_MAX_BYTES)
                return;
        x = calloc(1, sizeof(*x));
        if (!x || !(x->path = strdup(path))) {
                free(x);
                h->hears_all = true;
                return;
        }
        HASH_ADD_KEYPTR(hh, h->heard, x->path, strlen(x->path), x);
}

void calls_unlisten(struct link *l, const char *path) {
        struct host *h = host_of(l->manager, l);
        struct heard *x;

        if (!h)
                return;
        if (!*path)
                h->hears_all = false;
        HASH_FIND_STR(h->heard, path, x);
        if (x)
                heard_free(h, x);
}

/* ---- the bus inside ---- */

static int open_end(struct manager *m, int fd, bool server, sd_bus **ret) {
        _cleanup_close_ int end = fd;
        sd_id128_t id;

        TRY(sd_bus_new(ret));
        TRY(sd_bus_set_description(*ret, server ? "far" : "far-callers"));
        TRY(sd_bus_set_fd(*ret, end, end));
        TAKE_FD(end);
        TRY(sd_bus_set_anonymous(*ret, true));
        TRY(sd_bus_set_trusted(*ret, true));
        TRY(sd_bus_negotiate_fds(*ret, false));
        if (server) {
                TRY(sd_id128_randomize(&id));
                TRY(sd_bus_set_server(*ret, true, id));
        }
        TRY(sd_bus_start(*ret));
        return sd_bus_attach_event(*ret, m->event, SD_EVENT_PRIORITY_NORMAL);
}

int calls_new(struct manager *m) {
        int fds[2], r;

        m->calls = calloc(1, sizeof(*m->calls));
        if (!m->calls)
                return -ENOMEM;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        r = open_end(m, fds[0], true, &m->calls->inside);
        if (r < 0) {
                close_fd(fds[1]);
                return r;
        }
        TRY(open_end(m, fds[1], false, &m->calls->outside));
        return sd_bus_add_filter(m->calls->outside, NULL, on_signal, m);
}

sd_bus *calls_bus(struct manager *m) {
        return m->calls->inside;
}

void calls_set_callers(struct manager *m, struct callers *callers) {
        m->calls->callers = callers;
}

void calls_end(struct manager *m) {
        struct host *h, *next;

        if (m->calls)
                HASH_ITER (hh, m->calls->hosts, h, next)
                        calls_gone(m, h->link);
}

void calls_free(struct manager *m) {
        if (!m->calls)
                return;
        sd_bus_close_unref(m->calls->outside);
        sd_bus_close_unref(m->calls->inside);
        free(m->calls);
        m->calls = NULL;
}
