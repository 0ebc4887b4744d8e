/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a call to masterd and back. Invariants: a call is answered exactly once, by masterd or by a
 * sentence from here; masterd hears who somebody is before it hears anything of him, and that he has gone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <utlist.h>

#include "agentd/calls/calls-parts.h"
#include "agentd/link/link.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/wire/copy.h"

#define PATIENCE_USEC (10 * USEC_PER_SEC) /* for the connection to masterd, of a call */
#define IDLE_USEC (60 * USEC_PER_SEC)     /* without a caller, until the connection is closed */

/* ---- answers from here ---- */

static void call_free(struct call *c) {
        struct calls *q = c->caller->calls;

        DL_DELETE(q->calls, c);
        q->n_calls--;
        q->bytes -= c->bytes;
        c->caller->user->n_calls--;
        c->caller->user->bytes -= c->bytes;
        sd_bus_slot_unref(c->slot);
        sd_bus_message_unref(c->message);
        free(c);
}

void calls_refuse(sd_bus_message *call, const char *name, const char *why) {
        if (sd_bus_message_get_expect_reply(call) > 0)
                (void)sd_bus_reply_method_errorf(call, name, "%s", why);
}

static void fail_call(struct call *c, const char *name, const char *why) {
        calls_refuse(c->message, name, why);
        call_free(c);
}

/* ---- the connection to masterd ---- */

/* Link1.MEMBER(text, and what else it has, extra). */
static int begin_one_way(struct calls *q, const char *member, const char *text, sd_bus_message **ret) {
        sd_bus *bus = link_calls_bus(q->link);

        if (!bus)
                return -ENOTCONN;
        TRY(sd_bus_message_new_method_call(bus, ret, NULL, LINK_PATH, LINK_INTERFACE, member));
        return sd_bus_message_append(*ret, "s", text);
}

static int one_way(struct calls *q, const char *member, const char *text) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(begin_one_way(q, member, text, &m));
        TRY(link_append_extra_empty(m));
        return link_send(q->link, m);
}

static int tell_caller(struct calls *q, const struct caller *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(begin_one_way(q, "Caller", e->name, &m));
        if (e->job == 0)
                TRY(sd_bus_message_append(m, "ua{sv}", e->user->uid, 0));
        else
                TRY(sd_bus_message_append(m, "ua{sv}", e->user->uid, 1, "job", "u", e->job));
        return link_send(q->link, m);
}

void calls_listen(struct calls *q, const char *path) {
        struct wanted *w;

        HASH_FIND_STR(q->wanted, path, w);
        if (!w) {
                w = calloc(1, sizeof(*w));
                if (!w || !(w->path = strdup(path))) {
                        free(w);
                        return; /* it looks at the job now and then */
                }
                HASH_ADD_KEYPTR(hh, q->wanted, w->path, strlen(w->path), w);
                (void)one_way(q, "Listen", path); /* or when the connection is there */
        }
        w->n++;
        if (link_takes_calls(q->link))
                link_want_calls(q->link, true);
}

static void wanted_free(struct calls *q, struct wanted *w) {
        HASH_DEL(q->wanted, w);
        free(w->path);
        free(w);
}

void calls_unlisten(struct calls *q, const char *path) {
        struct wanted *w;

        HASH_FIND_STR(q->wanted, path, w);
        if (!w || --w->n > 0)
                return;
        (void)one_way(q, "Unlisten", path);
        wanted_free(q, w);
}

/* It is masterd's, or sd-bus's own where the connection broke. */
static int on_answer(sd_bus_message *answer, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct call *c = userdata;
        size_t bytes;

        if (message_copy_answer(c->message, answer, LINK_MESSAGE_MAX, &reply, &bytes) >= 0)
                door_answer(c->caller, reply, bytes);
        else
                calls_refuse(c->message, SD_BUS_ERROR_FAILED, "The master's answer cannot be handed back");
        call_free(c);
        return 0;
}

static int hand_on(struct calls *q, struct call *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = link_calls_bus(q->link);
        size_t bytes;

        if (!c->caller->told)
                TRY(tell_caller(q, c->caller));
        c->caller->told = true;
        TRY(sd_bus_message_new_method_call(bus, &m, NULL, sd_bus_message_get_path(c->message),
                                           sd_bus_message_get_interface(c->message),
                                           sd_bus_message_get_member(c->message)));
        TRY(sd_bus_message_set_sender(m, c->caller->name));
        TRY(message_copy(m, c->message, CALL_BYTES_MAX, &bytes));
        c->bytes = bytes;
        q->bytes += bytes;
        c->caller->user->bytes += bytes;
        if (sd_bus_message_get_expect_reply(c->message) > 0)
                return sd_bus_call_async(bus, &c->slot, m, on_answer, c, UINT64_MAX);
        TRY(sd_bus_message_set_expect_reply(m, false));
        return sd_bus_send(bus, m, NULL);
}

static void say_why(struct calls *q, struct call *c);

/* Hands on what can be. True: it waits for the connection; else the call may be gone. */
static bool advance(struct calls *q, struct call *c) {
        int r;

        if (c->slot)
                return false;
        if (c->caller->user->uid == 0) {
                fail_call(
                        c, SD_BUS_ERROR_ACCESS_DENIED,
                        "Calls of root are taken on the master's own bus alone: primusctl -H HOST, or as an "
                        "ordinary user");
                return false;
        }
        if (link_bus(q->link) && !link_takes_calls(q->link)) {
                say_why(q, c);
                return false;
        }
        link_want_calls(q->link, true);
        if (!link_calls_bus(q->link))
                return true;
        r = hand_on(q, c);
        if (r == -E2BIG)
                fail_call(c, SD_BUS_ERROR_LIMITS_EXCEEDED, "The call is larger than may be handed on");
        else if (r == -EOPNOTSUPP)
                fail_call(c, SD_BUS_ERROR_NOT_SUPPORTED,
                          "A call with descriptors cannot leave this host: primusctl -H HOST");
        else if (r < 0)
                fail_call(c, SD_BUS_ERROR_FAILED, "The call cannot be handed on");
        else if (!c->slot) /* nobody waits for an answer */
                call_free(c);
        return false;
}

static void advance_all(struct calls *q) {
        struct call *c, *next;

        DL_FOREACH_SAFE (q->calls, c, next)
                (void)advance(q, c);
}

/* ---- patience ---- */

static void say_why(struct calls *q, struct call *c) {
        char text[512];

        if (!link_takes_calls(q->link) && link_bus(q->link))
                fail_call(
                        c, SD_BUS_ERROR_ACCESS_DENIED,
                        "The master takes no calls from this host (RelayFrom= in its masterd.conf), or is older than its agent; by ssh: "
                        "primusctl -H HOST");
        else {
                snprintf(text, sizeof(text),
                         "This host's agent is not connected to the master at %.200s: systemctl status "
                         "primus-agentd says why",
                         q->master);
                q->lost = true; /* to this caller; it hears when that changes */
                fail_call(c, SD_BUS_ERROR_NO_SERVER, text);
        }
}

static void set_timer(struct calls *q, sd_event_source **s, uint64_t usec, sd_event_time_handler_t handler) {
        int r;

        if (!*s)
                r = sd_event_add_time_relative(q->event, s, CLOCK_BOOTTIME, usec, 0, handler, q);
        else if ((r = sd_event_source_set_time_relative(*s, usec)) >= 0)
                r = sd_event_source_set_enabled(*s, SD_EVENT_ONESHOT);
        if (r < 0)
                log_warning_errno(r, "Cannot set a timer for calls of this host");
}

static int on_patience(sd_event_source *s, uint64_t usec, void *userdata);

static void be_patient(struct calls *q, uint64_t usec) {
        q->patient = true;
        set_timer(q, &q->patience, usec, on_patience);
}

static int on_patience(sd_event_source *s, uint64_t usec, void *userdata) {
        struct calls *q = userdata;
        uint64_t now = now_boot(), first = UINT64_MAX;
        struct call *c, *next;

        q->patient = false;
        DL_FOREACH_SAFE (q->calls, c, next) {
                if (c->slot)
                        continue;
                if (now >= usec_add(c->since, PATIENCE_USEC))
                        say_why(q, c);
                else
                        first = MIN(first, c->since);
        }
        if (first != UINT64_MAX)
                be_patient(q, usec_sub(usec_add(first, PATIENCE_USEC), now));
        return 0;
}

static int on_idle(sd_event_source *s, uint64_t usec, void *userdata) {
        struct calls *q = userdata;

        if (!q->callers)
                link_want_calls(q->link, false);
        return 0;
}

/* ---- callers ---- */

void calls_caller_gone(struct caller *e) {
        struct calls *q = e->calls;
        struct call *c, *next;

        DL_FOREACH_SAFE (q->calls, c, next)
                if (c->caller == e)
                        call_free(c);
        if (e->told)
                (void)one_way(q, "CallerGone", e->name);
        if (q->n_callers <= 1)
                set_timer(q, &q->idle, IDLE_USEC, on_idle);
}

/* Those that wait for the connection are few. */
static unsigned waiting_of(const struct calls *q, const struct user *u) {
        const struct call *c;
        unsigned n = 0;

        DL_FOREACH (q->calls, c)
                n += c->caller->user == u && !c->slot;
        return n;
}

static bool has_room(const struct calls *q, struct user *u) {
        return burst_admit(&u->calls, now_boot(), USEC_PER_SEC, CALLS_PER_USER_A_SECOND) &&
               q->n_calls < CALLS_MAX && q->bytes < CALLS_BYTES_MAX && u->n_calls < CALLS_PER_USER_MAX &&
               u->bytes < CALLS_BYTES_PER_USER_MAX &&
               (link_calls_bus(q->link) || waiting_of(q, u) < CALLS_WAITING_PER_USER_MAX);
}

void calls_take(struct caller *e, sd_bus_message *call) {
        struct calls *q = e->calls;
        struct call *c = has_room(q, e->user) ? calloc(1, sizeof(*c)) : NULL;

        if (!c) {
                calls_refuse(call, SD_BUS_ERROR_LIMITS_EXCEEDED,
                             "Too many of your calls, or of this host's, come at once; try again");
                return;
        }
        *c = (struct call){ .caller = e, .message = sd_bus_message_ref(call), .since = now_boot() };
        DL_APPEND(q->calls, c);
        q->n_calls++;
        e->user->n_calls++;
        if (advance(q, c) && !q->patient)
                be_patient(q, PATIENCE_USEC);
}

/* ---- signals ---- */

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *to = sd_bus_message_get_destination(m);
        struct calls *q = userdata;
        struct caller *e = NULL;
        uint8_t type;

        if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_SIGNAL ||
            strcmp(sd_bus_message_get_path(m), "/org/freedesktop/DBus/Local") == 0)
                return 0;
        if (to)
                DL_FOREACH (q->callers, e)
                        if (strcmp(e->name, to) == 0)
                                break;
        if (e || !to)
                door_signal(q, e, m);
        return 1;
}

/* Whether the master takes calls is known by now. */
void calls_registered(struct calls *q) {
        if (q)
                advance_all(q);
}

void calls_up(struct calls *q) {
        struct wanted *w, *next;

        if (!q)
                return;
        if (sd_bus_add_filter(link_calls_bus(q->link), &q->filter, on_signal, q) < 0)
                log_oom(); /* who waits asks again */
        HASH_ITER (hh, q->wanted, w, next)
                (void)one_way(q, "Listen", w->path);
        if (q->lost)
                door_owner(q, true);
        q->lost = false;
        advance_all(q);
}

/* Whoever waits for a signal looks anew then, as behind a masterd that was started again; what comes
 * meanwhile waits for the connection. */
void calls_down(struct calls *q) {
        struct caller *e;
        bool any = false;

        if (!q)
                return;
        q->filter = sd_bus_slot_unref(q->filter);
        DL_FOREACH (q->callers, e) {
                any |= e->told;
                e->told = false;
        }
        if (q->lost || (!any && !q->wanted))
                return;
        q->lost = true;
        door_owner(q, false);
}

/* ---- the rest ---- */

void calls_set_link(struct calls *q, struct link *link) {
        if (q)
                q->link = link;
}

int calls_new(sd_event *event, const char *path, const char *master, calls_job_of job_of, void *userdata,
              struct calls **ret) {
        _cleanup_(calls_free_p) struct calls *q = calloc(1, sizeof(*q));

        if (!q)
                return -ENOMEM;
        *q = (struct calls){ .event = sd_event_ref(event),
                             .master = master,
                             .path = path,
                             .job_of = job_of,
                             .userdata = userdata,
                             .fd = -EBADF };
        TRY(door_open(q));
        *ret = TAKE_PTR(q);
        return 0;
}

struct calls *calls_free(struct calls *q) {
        struct wanted *w, *next;

        if (!q)
                return NULL;
        q->link = NULL;
        door_close(q);
        HASH_ITER (hh, q->wanted, w, next)
                wanted_free(q, w);
        sd_event_source_disable_unref(q->patience);
        sd_event_source_disable_unref(q->idle);
        sd_bus_slot_unref(q->filter);
        sd_event_unref(q->event);
        free(q);
        return NULL;
}
