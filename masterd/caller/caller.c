/* SPDX-License-Identifier: Apache-2.0 */
/* Unique name -> uid. Invariants: a name is known only while the bus has not said that it is gone
 * (NameOwnerChanged, one match for all, made before the first question and so effective before its answer); a
 * call waits in at most one place and is answered or handed on exactly once. */
#include "masterd/caller/caller.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/wire/bus-owner.h"
#include "lib/wire/skip.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/polkit.h"
#include "masterd/caller/reply.h"

#define QUESTIONS_MAX 6u

struct waiter {
        sd_bus_message *message;
        caller_handler handler;
        void *userdata;
        void (*destroy)(void *userdata);
        struct waiter *next;
};

struct caller {
        struct callers *callers;
        UT_hash_handle hh; /* by name; the one heard last is last */
        char *name;
        char *unit; /* NULL: not known */
        char *host; /* of a far one */
        uint32_t uid, pid, job;
        bool known, gone;
        sd_bus_slot *question; /* until known */
        unsigned asked;        /* so often */
        struct waiter *waiters;
        size_t n_waiters;
};

struct callers {
        sd_bus *bus;
        sd_bus_slot *match;
        struct caller *by_name;
        size_t n_waiting;
        unsigned n_far;
        struct polkit *polkit;
        void (*gone)(const char *name, void *userdata);
        void *gone_userdata;
};

static void waiter_free(struct callers *c, struct waiter *w) {
        c->n_waiting--;
        if (w->destroy)
                w->destroy(w->userdata);
        sd_bus_message_unref(w->message);
        free(w);
}

static void caller_free(struct caller *e) {
        struct waiter *w, *next;

        LL_FOREACH_SAFE (e->waiters, w, next)
                waiter_free(e->callers, w);
        HASH_DEL(e->callers->by_name, e);
        e->callers->n_far -= e->host != NULL;
        sd_bus_slot_unref(e->question);
        free(e->host);
        free(e->unit);
        free(e->name);
        free(e);
}

/* One name went away: arg2, its new owner, is empty. */
static int on_name_gone(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct callers *c = userdata;
        struct caller *e;
        const char *name;

        if (!bus_itself_sent(m) || sd_bus_message_read(m, "s", &name) < 0)
                return 0;
        if (c->gone && *name == ':')
                c->gone(name, c->gone_userdata);
        HASH_FIND_STR(c->by_name, name, e);
        if (!e)
                return 0;
        if (e->known)
                caller_free(e);
        else
                e->gone = true; /* the answer to the question is under way */
        return 0;
}

int callers_new(sd_bus *bus, struct callers **ret) {
        _cleanup_(callers_free_p) struct callers *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->bus = sd_bus_ref(bus);
        r = polkit_new(bus, &c->polkit);
        if (r < 0)
                return r;
        r = sd_bus_add_match_async(bus, &c->match,
                                   "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                                   "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''",
                                   on_name_gone, NULL, c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

void callers_on_gone(struct callers *c, void (*f)(const char *name, void *userdata), void *userdata) {
        c->gone = f;
        c->gone_userdata = userdata;
}

struct callers *callers_free(struct callers *c) {
        struct caller *e, *next;

        if (!c)
                return NULL;
        HASH_ITER (hh, c->by_name, e, next)
                caller_free(e);
        polkit_free(c->polkit);
        sd_bus_slot_unref(c->match);
        sd_bus_unref(c->bus);
        free(c);
        return NULL;
}

struct polkit *callers_polkit(struct callers *c) {
        return c->polkit;
}

size_t callers_waiting(const struct callers *c) {
        return c->n_waiting;
}

size_t callers_known(const struct callers *c) {
        return HASH_COUNT(c->by_name);
}

static struct caller *callers_find(struct callers *c, const char *name) {
        struct caller *e = NULL;

        if (name)
                HASH_FIND_STR(c->by_name, name, e);
        return e && e->known ? e : NULL;
}

const char *callers_unit(struct callers *c, const char *name) {
        const struct caller *e = callers_find(c, name);

        return e ? e->unit : NULL;
}

void callers_set_unit(struct callers *c, const char *name, const char *unit) {
        struct caller *e = callers_find(c, name);
        char *copy = e ? strdup(unit) : NULL;

        if (!copy)
                return;
        free(e->unit);
        e->unit = copy;
}

bool caller_is_far(sd_bus_message *m) {
        const char *sender = sd_bus_message_get_sender(m);

        return sender && strncmp(sender, CALLER_FAR, strlen(CALLER_FAR)) == 0;
}

int callers_far_add(struct callers *c, const char *name, uint32_t uid, const char *host, uint32_t job) {
        struct caller *e;

        if (c->n_far >= CALLERS_FAR_MAX)
                return -EBUSY;
        HASH_FIND_STR(c->by_name, name, e);
        if (e)
                return -EEXIST;
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        *e = (struct caller){ .callers = c,
                              .name = strdup(name),
                              .host = strdup(host),
                              .uid = uid,
                              .job = job,
                              .known = true };
        if (!e->name || !e->host) {
                free(e->name);
                free(e->host);
                free(e);
                return -ENOMEM;
        }
        HASH_ADD_KEYPTR(hh, c->by_name, e->name, strlen(e->name), e);
        c->n_far++;
        return 0;
}

void callers_far_gone(struct callers *c, const char *name) {
        struct caller *e = callers_find(c, name);

        if (!e || !e->host)
                return;
        if (c->gone)
                c->gone(name, c->gone_userdata);
        caller_free(e);
}

const char *callers_host(struct callers *c, const char *name) {
        const struct caller *e = callers_find(c, name);

        return e ? e->host : NULL;
}

uint32_t callers_job(struct callers *c, const char *name) {
        const struct caller *e = callers_find(c, name);

        return e ? e->job : 0;
}

int caller_explain(int r, sd_bus_error *error) {
        if (r == -ENXIO && !sd_bus_error_is_set(error))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "An option has a value of another type than it should have; the "
                                        "interface's description says which.");
        return r;
}

void caller_answer(sd_bus_message *m, int r, const sd_bus_error *error) {
        /* A reply that cannot be sent has nobody who waits for it. */
        if (sd_bus_error_is_set(error) || r < 0)
                (void)reply_failed(m, r, error);
}

/* Takes "UnixUserID" from the a{sv} that GetConnectionCredentials answers; and "ProcessID", 0 where it has
 * none. */
static int read_credentials(sd_bus_message *m, uint32_t *ret_uid, uint32_t *ret_pid) {
        bool found = false;
        uint32_t uid = 0, pid = 0;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *key;
                r = sd_bus_message_read(m, "s", &key);
                if (r < 0)
                        return r;
                if (strcmp(key, "UnixUserID") == 0) {
                        r = sd_bus_message_read(m, "v", "u", &uid);
                        found = r >= 0;
                } else if (strcmp(key, "ProcessID") == 0)
                        r = sd_bus_message_read(m, "v", "u", &pid);
                else
                        r = message_skip(m, "v");
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if (!found)
                return -ENODATA;
        *ret_uid = uid;
        *ret_pid = pid;
        return 0;
}

static void run_waiter(struct waiter *w, int r, uint32_t uid, uint32_t pid) {
        sd_bus_error error = SD_BUS_ERROR_NULL;

        if (r >= 0) {
                audit_identified(w->message, uid, pid);
                r = caller_explain(w->handler(w->message, uid, w->userdata, &error), &error);
        } else
                r = sd_bus_error_set(&error, SD_BUS_ERROR_ACCESS_DENIED,
                                     "The message bus does not say who you are; try again.");
        caller_answer(w->message, r, &error);
        sd_bus_error_free(&error);
}

static int on_credentials(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error);

/* The bus drops its own answers, without a word, while it holds too much for us (max_outgoing_bytes), which
 * anybody can bring about: so the question is repeated, after 1 s, 2 s, 4 s ... a minute in all. */
static int ask_bus(struct caller *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *question = NULL;
        int r = sd_bus_message_new_method_call(e->callers->bus, &question, "org.freedesktop.DBus",
                                               "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                               "GetConnectionCredentials");

        if (r >= 0)
                r = sd_bus_message_append(question, "s", e->name);
        e->question = sd_bus_slot_unref(e->question);
        return r < 0 ? r
                     : sd_bus_call_async(e->callers->bus, &e->question, question, on_credentials, e,
                                         USEC_PER_SEC << e->asked++);
}

static int on_credentials(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        struct caller *e = userdata;
        struct callers *c = e->callers;
        struct waiter *waiters = e->waiters, *w, *next;
        uint32_t uid = 0, pid = 0;
        int r = 0;

        if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) && e->asked < QUESTIONS_MAX &&
            ask_bus(e) >= 0)
                return 0;
        if (sd_bus_message_is_method_error(reply, NULL))
                r = -sd_bus_message_get_errno(reply);
        else
                r = read_credentials(reply, &uid, &pid);
        e->waiters = NULL;
        e->n_waiters = 0;
        e->question = sd_bus_slot_unref(e->question);
        e->known = r >= 0;
        e->uid = uid;
        e->pid = pid;
        if (r < 0 || e->gone)
                caller_free(e);
        LL_FOREACH_SAFE (waiters, w, next) {
                run_waiter(w, r, uid, pid);
                waiter_free(c, w);
        }
        return 0;
}

/* Makes room by forgetting the known name that was heard of longest ago. */
static void callers_trim(struct callers *c) {
        struct caller *e, *next;

        if (HASH_COUNT(c->by_name) - c->n_far < CALLERS_MAX)
                return;
        HASH_ITER (hh, c->by_name, e, next)
                if (e->known && !e->host) {
                        caller_free(e);
                        return;
                }
}

/* Adds an entry for the name and asks the bus. */
static int callers_ask(struct callers *c, const char *name, struct caller **ret) {
        struct caller *e;
        int r;

        callers_trim(c);
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        e->callers = c;
        e->name = strdup(name);
        if (!e->name) {
                free(e);
                return -ENOMEM;
        }
        HASH_ADD_KEYPTR(hh, c->by_name, e->name, strlen(e->name), e);
        r = ask_bus(e);
        if (r < 0) {
                caller_free(e);
                return r;
        }
        *ret = e;
        return 0;
}

static int caller_wait(struct callers *c, struct caller *e, sd_bus_message *m, caller_handler handler,
                       void *userdata, void (*destroy)(void *), sd_bus_error *ret_error) {
        struct waiter *w;

        if (c->n_waiting >= CALLERS_WAITING_MAX || e->n_waiters >= CALLERS_WAITING_PER_NAME)
                return sd_bus_error_set(ret_error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                        "Too many calls wait for the message bus; try again.");
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        *w = (struct waiter){
                .message = sd_bus_message_ref(m), .handler = handler, .userdata = userdata, .destroy = destroy
        };
        c->n_waiting++;
        e->n_waiters++;
        LL_APPEND(e->waiters, w);
        return 1;
}

int caller_identify_full(struct callers *c, sd_bus_message *m, caller_handler handler, void *userdata,
                         void (*destroy)(void *userdata), sd_bus_error *ret_error) {
        const char *sender = sd_bus_message_get_sender(m);
        struct caller *e = NULL;
        int r = 0;

        if (!sender || *sender != ':')
                r = sd_bus_error_set(ret_error, SD_BUS_ERROR_ACCESS_DENIED, "The call has no sender.");
        if (r >= 0) {
                HASH_FIND_STR(c->by_name, sender, e);
                if (!e && caller_is_far(m))
                        r = sd_bus_error_set(ret_error, SD_BUS_ERROR_ACCESS_DENIED, "The caller is gone.");
                else if (!e)
                        r = callers_ask(c, sender, &e);
        }
        if (r >= 0 && e->known) {
                HASH_DEL(c->by_name, e); /* heard last, so the last to be forgotten */
                HASH_ADD_KEYPTR(hh, c->by_name, e->name, strlen(e->name), e);
                audit_identified(m, e->uid, e->pid);
                r = handler(m, e->uid, userdata, ret_error); /* e may be gone afterwards */
        } else if (r >= 0) {
                r = caller_wait(c, e, m, handler, userdata, destroy, ret_error);
                if (r > 0)
                        return r;
        }
        if (destroy)
                destroy(userdata);
        return r;
}

int caller_identify(struct callers *c, sd_bus_message *m, caller_handler handler, void *userdata,
                    sd_bus_error *ret_error) {
        return caller_identify_full(c, m, handler, userdata, NULL, ret_error);
}
