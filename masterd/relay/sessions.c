/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, between people and agents. Invariant: each call that is passed on is in the list of its session
 * until it is answered, and a session goes only when that list is empty. */
#include "masterd/relay/sessions.h"

#include <string.h>
#include <sys/random.h>
#include <uthash.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "lib/wire/session.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/relay/relay-parts.h"

#define SESSIONS_MAX 1024u
#define SESSIONS_PER_USER_MAX 128u
/* Commands of one user that are begun on one host: others' starts stand beside them. */
#define SESSIONS_OPENING_MAX 8u
#define CALLS_MAX 16u /* of one session under way */
#define WAIT_MAX (20 * USEC_PER_SEC)
#define ANSWER_USEC (10 * USEC_PER_SEC)
#define OPEN_USEC (20 * USEC_PER_SEC)
/* Input waits for as long as the session does not read. */
#define WRITE_USEC (UINT64_C(24) * 3600 * USEC_PER_SEC)

/* A call that is with the agent. */
struct relay {
        struct session *session;
        sd_bus_message *call;
        sd_bus_slot *slot;
        struct relay *next, *prev;
};

struct session {
        struct manager *manager;
        uint32_t number, job;
        char *owner;  /* unique name on the bus */
        uint32_t uid; /* whose that is: one may have many */
        char node[65];
        bool command, open, over;
        struct relay *relays;
        unsigned n_relays;
        UT_hash_handle hh; /* by number */
};

struct sessions {
        struct session *list;
};

static struct session *find(struct sessions *s, uint32_t number) {
        struct session *found;

        HASH_FIND(hh, s->list, &number, sizeof(number), found);
        return found;
}

static void session_free(struct session *s) {
        HASH_DEL(s->manager->relay->sessions->list, s);
        free(s->owner);
        free(s);
}

static void session_collect(struct session *s) {
        if (s->over && !s->relays)
                session_free(s);
}

static sd_bus *agent_bus(const struct session *s) {
        struct node *node = nodes_get(&s->manager->nodes, s->node);

        return node && node->bulk ? peer_bus(node->bulk->peer) : NULL;
}

/* ---- passing on ---- */

static void relay_free(struct relay *r) {
        DL_DELETE(r->session->relays, r);
        r->session->n_relays--;
        sd_bus_slot_unref(r->slot);
        sd_bus_message_unref(r->call);
        free(r);
}

static int agent_message(struct session *s, const char *method, sd_bus_message **ret) {
        sd_bus *bus = agent_bus(s);

        return bus ? sd_bus_message_new_method_call(bus, ret, NULL, LINK_PATH, LINK_INTERFACE, method)
                   : -ENOTCONN;
}

/* Sends m for the call. */
static int pass_on_whole(struct session *s, sd_bus_message *m, sd_bus_message *call,
                         sd_bus_message_handler_t answered, uint64_t timeout) {
        struct relay *r;
        int error;

        if (s->n_relays >= CALLS_MAX)
                return -EBUSY;
        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        *r = (struct relay){ .session = s, .call = sd_bus_message_ref(call) };
        DL_APPEND(s->relays, r);
        s->n_relays++;
        error = sd_bus_call_async(sd_bus_message_get_bus(m), &r->slot, m, answered, r, timeout);
        if (error < 0) {
                relay_free(r);
                return error;
        }
        return 1;
}

/* The same with a message whose dictionary is still to come. */
static int pass_on(struct session *s, sd_bus_message *m, sd_bus_message *call,
                   sd_bus_message_handler_t answered, uint64_t timeout) {
        int r = link_append_extra_empty(m);

        return r < 0 ? r : pass_on_whole(s, m, call, answered, timeout);
}

/* Tells the agent that nobody listens any more. */
static void close_agent(struct session *s) {
        sd_bus_message *m = NULL;

        if (agent_message(s, "SessionClose", &m) >= 0 && sd_bus_message_append(m, "u", s->number) >= 0 &&
            link_append_extra_empty(m) >= 0 && sd_bus_message_set_expect_reply(m, false) >= 0)
                (void)sd_bus_send(NULL, m, NULL);
        sd_bus_message_unref(m);
}

static int pass_error(struct relay *r, const sd_bus_error *e) {
        char clean[512];
        const char *text = e->message ? e->message : e->name;

        if (strcmp(e->name, SD_BUS_ERROR_UNKNOWN_METHOD) == 0)
                return reply_errorf(r->call, ERROR_NOT_FOUND,
                                    "the agent of %s is older and cannot do this: upgrade it",
                                    r->session->node);
        if (!error_is_primus(e->name) && strcmp(e->name, SD_BUS_ERROR_INVALID_ARGS) != 0)
                return reply_errorf(r->call, ERROR_NOT_FOUND, "%s does not answer: %s", r->session->node,
                                    utf8_clean(text, strlen(text), clean, sizeof(clean)));
        return reply_errorf(r->call, e->name, "%s", utf8_clean(text, strlen(text), clean, sizeof(clean)));
}

/* ---- OpenSession ---- */

static int on_opened(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct relay *r = userdata;
        struct session *s = r->session;
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e) {
                (void)pass_error(r, e);
                if (sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY))
                        close_agent(s); /* it may still be opened */
                s->over = true;
        } else if (s->over)
                close_agent(s); /* who opened it has gone meanwhile */
        else {
                s->open = true;
                (void)reply_return(r->call, "u", s->number);
        }
        relay_free(r);
        session_collect(s);
        return 0;
}

static int session_admit(const struct sessions *list, uint32_t uid, bool command, const char *node,
                         sd_bus_error *error) {
        const struct session *s, *next;
        unsigned own = 0, opening = 0;

        HASH_ITER (hh, list->list, s, next)
                if (s->uid == uid) {
                        own++;
                        opening += s->command && !s->open && strcmp(s->node, node) == 0;
                }
        if (command && opening >= SESSIONS_OPENING_MAX)
                return sd_bus_error_setf(error, ERROR_BUSY,
                                         "%u commands of yours are being begun on %s; try again in a moment",
                                         opening, node);
        if (own >= SESSIONS_PER_USER_MAX || HASH_COUNT(list->list) >= SESSIONS_MAX)
                return sd_bus_error_setf(
                        error, ERROR_BUSY,
                        "Too many sessions are open (at most %u, %u of one user): close one, or "
                        "try again later",
                        SESSIONS_MAX, SESSIONS_PER_USER_MAX);
        return 0;
}

static int session_new(struct manager *m, const struct job *j, const struct node *node,
                       const struct session_request *q, sd_bus_message *call, struct session **ret,
                       sd_bus_error *error) {
        const char *owner = sd_bus_message_get_sender(call);
        bool command = strcmp(q->kind, "command") == 0;
        struct session *s;
        int r;

        if (!owner)
                return -EINVAL;
        r = session_admit(m->relay->sessions, q->uid, command, node->name, error);
        if (r < 0)
                return r;
        s = calloc(1, sizeof(*s));
        if (!s || !(s->owner = strdup(owner))) {
                free(s);
                return -ENOMEM;
        }
        s->manager = m;
        s->uid = q->uid;
        s->command = command;
        s->job = j->number;
        snprintf(s->node, sizeof(s->node), "%s", node->name);
        /* Not counted: an agent may still have one of a master before. */
        do
                if (getrandom(&s->number, sizeof(s->number), 0) != sizeof(s->number))
                        s->number++;
        while (s->number == 0 || find(m->relay->sessions, s->number));
        HASH_ADD(hh, m->relay->sessions->list, number, sizeof(s->number), s);
        *ret = s;
        return 0;
}

static int append_environment(sd_bus_message *m, char **environment) {
        int r = sd_bus_message_open_container(m, 'a', "ay");

        for (char **e = environment; r >= 0 && e && *e; e++)
                r = sd_bus_message_append_array(m, 'y', *e, strlen(*e));
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* r: how the order went out. A session that nobody opens is forgotten. */
static int opening(struct session *s, int r, sd_bus_error *error) {
        if (r >= 0)
                return r;
        if (r == -ENOTCONN)
                r = sd_bus_error_setf(error, ERROR_NOT_FOUND, "%s is not connected at the moment", s->node);
        s->over = true;
        session_collect(s);
        return r;
}

int sessions_open(struct manager *m, struct executor *e, const struct session_request *q,
                  sd_bus_message *call, sd_bus_error *error) {
        sd_bus_message *order = NULL;
        struct executor_id id = executor_id_of(e);
        struct session *s = NULL;
        int r;

        r = session_new(m, e->job, e->node, q, call, &s, error);
        if (r < 0)
                return r;
        if ((r = agent_message(s, "SessionOpen", &order)) >= 0 &&
            (r = sd_bus_message_append(order, "tt", m->term, e->node->epoch)) >= 0 &&
            (r = executor_id_append(order, &id)) >= 0 &&
            (r = sd_bus_message_append(order, "usbqqq", s->number, q->kind, (int)q->pty, q->rows, q->columns,
                                       q->port)) >= 0 &&
            (r = sd_bus_message_copy(order, q->strings, false)) >= 0 &&
            (r = append_environment(order, q->environment)) >= 0 &&
            (r = sd_bus_message_append(order, "a{sv}", 1, "caller", "u", q->uid)) >= 0)
                r = pass_on_whole(s, order, call, on_opened, OPEN_USEC);
        r = opening(s, r, error);
        sd_bus_message_unref(order);
        return r;
}

int sessions_open_artifacts(struct manager *m, const struct job *j, const struct node *node,
                            const struct session_request *q, sd_bus_message *call, sd_bus_error *error) {
        sd_bus_message *order = NULL;
        struct session *s = NULL;
        int r = session_new(m, j, node, q, call, &s, error);

        if (r < 0)
                return r;
        if ((r = agent_message(s, "ArtifactsOpen", &order)) >= 0 &&
            (r = sd_bus_message_append(order, "ttu", m->term, node->epoch, j->number)) >= 0 &&
            (r = sd_bus_message_append_array(order, 'y', &j->uid, sizeof(j->uid))) >= 0 &&
            (r = sd_bus_message_append(order, "uu", j->owner, s->number)) >= 0 &&
            (r = sd_bus_message_copy(order, q->strings, false)) >= 0 &&
            (r = sd_bus_message_append(order, "a{sv}", 1, "caller", "u", q->uid)) >= 0)
                r = pass_on_whole(s, order, call, on_opened, OPEN_USEC);
        r = opening(s, r, error);
        sd_bus_message_unref(order);
        return r;
}

/* ---- the other calls ---- */

/* The session of the caller's that a call is about. */
static int session_of(struct manager *m, const struct job *j, sd_bus_message *call, struct session **ret,
                      sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(call);
        struct session *s = NULL;
        uint32_t number;
        int r = sd_bus_message_read_basic(call, 'u', &number);

        if (r < 0)
                return r;
        s = find(m->relay->sessions, number);
        if (!s || !s->open || s->over || s->job != j->number || !sender || strcmp(sender, s->owner) != 0)
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "You have no session %u in job %u", number,
                                         j->number);
        *ret = s;
        return 0;
}

static int answer_end(sd_bus_message *call, const char *why) {
        return reply_return(call, "a(yay)bis", 0, 1, SESSION_STATUS_BROKEN, why);
}

static int on_read(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct relay *r = userdata;
        struct session *s = r->session;
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        sd_bus_message *answer = NULL;
        const char *why;
        int status, q, end = 0;

        if (e) {
                char clean[512];
                const char *text = e->message ? e->message : "the host does not answer";
                (void)answer_end(r->call, utf8_clean(text, strlen(text), clean, sizeof(clean)));
                close_agent(s); /* nobody reads it any more */
                s->over = true;
        } else if ((q = sd_bus_message_new_method_return(r->call, &answer)) >= 0 &&
                   (q = sd_bus_message_copy(answer, reply, false)) >= 0 &&
                   (q = sd_bus_message_read(reply, "bis", &end, &status, &why)) >= 0 &&
                   (q = sd_bus_message_append(answer, "bis", end, status, why)) >= 0)
                (void)reply_send(answer);
        else {
                (void)answer_end(r->call, "the host's answer is not usable");
                close_agent(s);
                end = true;
        }
        sd_bus_message_unref(answer);
        s->over |= end;
        relay_free(r);
        session_collect(s);
        return 0;
}

int sessions_read(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error) {
        sd_bus_message *order = NULL;
        struct session *s = NULL;
        uint64_t wait;
        int r;

        if ((r = session_of(m, j, call, &s, error)) < 0 ||
            (r = sd_bus_message_read_basic(call, 't', &wait)) < 0)
                return r;
        wait = MIN(wait, WAIT_MAX);
        r = agent_message(s, "SessionRead", &order);
        if (r >= 0)
                r = sd_bus_message_append(order, "ut", s->number, wait);
        if (r >= 0)
                r = pass_on(s, order, call, on_read, wait * CALLS_MAX + ANSWER_USEC);
        sd_bus_message_unref(order);
        return r;
}

static int on_written(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct relay *r = userdata;
        struct session *s = r->session;

        /* Input of a session that has ended goes nowhere; who reads is told of the end. */
        (void)reply_return(r->call, NULL);
        relay_free(r);
        session_collect(s);
        return 0;
}

int sessions_write(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error) {
        sd_bus_message *order = NULL;
        const void *data;
        struct session *s = NULL;
        size_t size;
        int r, end;

        if ((r = session_of(m, j, call, &s, error)) < 0 ||
            (r = sd_bus_message_read_array(call, 'y', &data, &size)) < 0 ||
            (r = sd_bus_message_read_basic(call, 'b', &end)) < 0)
                return r;
        if (size > LINK_CHUNK_MAX)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "data: at most %u bytes at once",
                                         LINK_CHUNK_MAX);
        r = agent_message(s, "SessionWrite", &order);
        if (r >= 0)
                r = sd_bus_message_append(order, "u", s->number);
        if (r >= 0)
                r = sd_bus_message_append_array(order, 'y', data, size);
        if (r >= 0)
                r = sd_bus_message_append(order, "b", end);
        if (r >= 0)
                r = pass_on(s, order, call, on_written, WRITE_USEC);
        sd_bus_message_unref(order);
        return r;
}

int sessions_resize(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error) {
        sd_bus_message *order = NULL;
        uint16_t rows, columns;
        struct session *s = NULL;
        int r;

        if ((r = session_of(m, j, call, &s, error)) < 0 ||
            (r = sd_bus_message_read(call, "qq", &rows, &columns)) < 0)
                return r;
        r = agent_message(s, "SessionResize", &order);
        if (r >= 0)
                r = sd_bus_message_append(order, "uqq", s->number, rows, columns);
        if (r >= 0)
                r = link_append_extra_empty(order);
        if (r >= 0)
                r = sd_bus_message_set_expect_reply(order, false);
        if (r >= 0)
                r = sd_bus_send(NULL, order, NULL);
        sd_bus_message_unref(order);
        return r < 0 ? r : reply_return(call, NULL);
}

/* The end of a session for all who wait in it. It may be gone afterwards. */
static void end_session(struct session *s, const char *why) {
        struct relay *r, *next;

        s->over = true;
        DL_FOREACH_SAFE (s->relays, r, next) {
                if (!s->open)
                        (void)reply_errorf(r->call, ERROR_NOT_FOUND, "%s", why);
                else if (sd_bus_message_is_method_call(r->call, NULL, "ReadSession") > 0)
                        (void)answer_end(r->call, why);
                else
                        (void)reply_return(r->call, NULL);
                relay_free(r);
        }
        session_collect(s);
}

int sessions_close(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error) {
        struct session *s = NULL;
        int r = session_of(m, j, call, &s, error);

        if (r < 0)
                return r;
        close_agent(s);
        end_session(s, "the session was closed");
        return reply_return(call, NULL);
}

/* ---- the rest ---- */

void sessions_node_gone(struct manager *m, const struct node *node) {
        struct session *s, *next;
        char why[160];

        if (!m->relay->sessions)
                return;
        snprintf(why, sizeof(why), "the connection to %s broke", node->name);
        HASH_ITER (hh, m->relay->sessions->list, s, next)
                if (strcmp(s->node, node->name) == 0)
                        end_session(s, why);
}

void sessions_caller_gone(struct manager *m, const char *name) {
        struct session *s, *next;

        if (!m->relay->sessions)
                return;
        HASH_ITER (hh, m->relay->sessions->list, s, next)
                if (strcmp(s->owner, name) == 0 && !s->over) {
                        if (s->open) {
                                close_agent(s);
                                end_session(s, "its caller is gone");
                        } else
                                s->over = true; /* closed when the agent has opened it */
                }
}

int sessions_new(struct manager *m, struct sessions **ret) {
        struct sessions *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        *ret = s;
        return 0;
}

void sessions_free(struct sessions *all) {
        struct session *s, *next;
        struct relay *r, *r_next;

        if (!all)
                return;
        HASH_ITER (hh, all->list, s, next) {
                DL_FOREACH_SAFE (s->relays, r, r_next)
                        relay_free(r);
                session_free(s);
        }
        free(all);
}
