/* SPDX-License-Identifier: Apache-2.0 */
/* The window onto systemd. Invariant: pending <= SYSTEMD_WINDOW; whoever was sent for in turn holds a place
 * from then until systemd runs his job or it is over; and while something waits, a bound is reached. */
#include "agentd/unit/systemd.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/turns.h"
#include "lib/wire/bus-owner.h"
#include "lib/wire/skip.h"
#include "lib/wire/starter.h"

#define SERVICE "org.freedesktop.systemd1"
#define OBJECT "/org/freedesktop/systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"
#define JOBS OBJECT "/job"
/* PID 1 may be busy for long (a herd of units, a reload). */
#define CALL_USEC (UINT64_C(120) * USEC_PER_SEC)

/* A signal about the unit of a call that is under way: calls go by way of the starter, signals come from
 * systemd itself, so PID 1 may have answered first; whoever asked is to hear things in their order. */
struct early {
        sd_bus_message *signal;
        sd_bus_message_handler_t handler;
        struct early *next, *prev;
};

struct call {
        struct turn turn; /* first; while it waits for one, and in it until the answer */
        struct systemd *systemd;
        sd_bus_message *message;
        sd_bus_slot *slot;        /* under way */
        bool job;                 /* its answer is the path of one */
        struct turns_user *place; /* that it holds */
        struct early *early;
        systemd_reply_handler handler;
        void *userdata;
        struct call *next, *prev;
        char unit[]; /* whose job it asks for, or "" */
};

/* A job of ours in systemd's queue. */
struct job_path {
        UT_hash_handle hh;
        bool ours;                /* else: said to run before we know whose it is */
        struct turns_user *place; /* while it waits in systemd */
        char path[];
};

struct systemd {
        sd_bus *bus, *starter;
        struct systemd_handlers handlers;
        void *userdata;
        struct call *urgent, *stops, *waiting, *under_way;
        struct turns turns;
        unsigned pending, asking; /* calls under way; for jobs */
        struct job_path *job_paths;
        struct bus_owner *owner; /* of systemd's name: signals of others are none */
        sd_bus_slot *matches[4];
        unsigned matches_ready;
        bool pumping;
};

static void call_free(struct call *c) {
        struct early *e;

        while ((e = c->early)) {
                DL_DELETE(c->early, e);
                sd_bus_message_unref(e->signal);
                free(e);
        }
        sd_bus_slot_unref(c->slot);
        sd_bus_message_unref(c->message);
        free(c);
}

static void pump_calls(struct systemd *s);

/* ---- jobs ---- */

/* systemd runs it, or has done with it. */
static void job_leave_place(struct systemd *s, struct job_path *j) {
        if (j->place)
                turns_give_back(&s->turns, TAKE_PTR(j->place));
}

static void forget_job(struct systemd *s, struct job_path *j) {
        HASH_DEL(s->job_paths, j);
        job_leave_place(s, j);
        free(j);
}

static struct job_path *find_job(struct systemd *s, const char *path) {
        struct job_path *j;

        HASH_FIND_STR(s->job_paths, path, j);
        return j;
}

static struct job_path *add_job(struct systemd *s, const char *path) {
        struct job_path *j = calloc(1, sizeof(*j) + strlen(path) + 1);

        if (!j)
                return NULL;
        strcpy(j->path, path);
        HASH_ADD_STR(s->job_paths, path, j);
        return j;
}

/* The answer to a call for a job: it holds the call's place until it runs. */
static void note_job(struct systemd *s, struct call *c, sd_bus_message *reply) {
        struct job_path *j;
        const char *path;

        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "o", &path) > 0) {
                j = find_job(s, path);
                if (!j && (j = add_job(s, path)))
                        j->place = TAKE_PTR(c->place);
                if (j) /* else it was merged into one that is there */
                        j->ours = true;
        }
        if (c->place)
                turns_give_back(&s->turns, TAKE_PTR(c->place));
        (void)sd_bus_message_rewind(reply, true);
}

/* ---- calls ---- */

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct call *c = userdata;
        struct systemd *s = c->systemd;

        assert(s->pending > 0 && (!c->job || s->asking > 0));
        DL_DELETE(s->under_way, c);
        s->pending--;
        if (c->job) {
                note_job(s, c, reply);
                s->asking--;
        }
        if (c->handler)
                c->handler(reply, c->userdata);
        for (struct early *e = c->early; e; e = e->next)
                (void)e->handler(e->signal, s, NULL);
        call_free(c);
        pump_calls(s);
        return 0;
}

static void send_call(struct systemd *s, struct call *c) {
        sd_bus_message *failure = NULL;
        int r = sd_bus_call_async(sd_bus_message_get_bus(c->message), &c->slot, c->message, on_reply, c,
                                  CALL_USEC);

        if (r >= 0) {
                c->message = sd_bus_message_unref(c->message);
                DL_APPEND(s->under_way, c);
                s->pending++;
                s->asking += c->job;
                assert(s->pending <= SYSTEMD_WINDOW);
                return;
        }
        if (c->place)
                turns_give_back(&s->turns, TAKE_PTR(c->place));
        /* The bus is going, which ends the loop; whoever waits still hears of it. */
        if (c->handler && sd_bus_message_new_method_errno(c->message, &failure, r, NULL) >= 0)
                c->handler(failure, c->userdata);
        sd_bus_message_unref(failure);
        call_free(c);
}

static void pump_calls(struct systemd *s) {
        struct turn *turn;
        struct call *c;

        if (s->pumping)
                return; /* a failing call's handler queued another */
        s->pumping = true;
        while (s->pending < SYSTEMD_WINDOW && (c = s->urgent)) {
                DL_DELETE(s->urgent, c);
                send_call(s, c);
        }
        while (s->pending < SYSTEMD_WINDOW && (c = s->stops)) {
                DL_DELETE(s->stops, c);
                send_call(s, c);
        }
        while (s->pending < SYSTEMD_WINDOW && (c = s->waiting)) {
                DL_DELETE(s->waiting, c);
                send_call(s, c);
        }
        while (s->pending < SYSTEMD_WINDOW && turns_may_go(&s->turns) && (turn = turns_next(&s->turns))) {
                c = (struct call *)turn;
                c->place = turn->user;
                send_call(s, c);
        }
        s->pumping = false;
}

static struct call *call_new(struct systemd *s, const char *unit, sd_bus_message *m,
                             systemd_reply_handler handler, void *userdata) {
        size_t size = strlen(unit) + 1;
        struct call *c = malloc(sizeof(*c) + size);

        if (!c)
                return NULL;
        *c = (struct call){
                .systemd = s, .message = sd_bus_message_ref(m), .handler = handler, .userdata = userdata
        };
        memcpy(c->unit, unit, size);
        return c;
}

int systemd_call(struct systemd *s, sd_bus_message *m, bool urgent, systemd_reply_handler handler,
                 void *userdata) {
        struct call *c = call_new(s, "", m, handler, userdata);

        if (!c)
                return -ENOMEM;
        if (urgent) /* in their order: SIGTERM before the SIGKILL that follows it */
                DL_APPEND(s->urgent, c);
        else
                DL_APPEND(s->waiting, c);
        pump_calls(s);
        return 0;
}

int systemd_call_job(struct systemd *s, uint32_t uid, const char *unit, sd_bus_message *m,
                     systemd_reply_handler handler, void *userdata) {
        struct call *c = call_new(s, unit, m, handler, userdata);
        int r;

        if (c)
                c->job = true;
        r = c ? turns_wait(&s->turns, uid, &c->turn) : -ENOMEM;

        if (r < 0) {
                if (c)
                        call_free(c);
                return r;
        }
        pump_calls(s);
        return 0;
}

int systemd_message(struct systemd *s, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(s->bus, ret, SERVICE, OBJECT, MANAGER, member);
}

int starter_message(struct systemd *s, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(s->starter, ret, NULL, STARTER_PATH, STARTER_UNITS, member);
}

static int on_told(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e)
                log_warning("primus-starter did not do as it was asked: %s", e->message ?: e->name);
        return 0;
}

void starter_tell(struct systemd *s, const char *member, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = starter_message(s, member, &m);
        va_list ap;

        va_start(ap, types);
        if (r >= 0)
                r = sd_bus_message_appendv(m, types, ap);
        va_end(ap);
        if (r >= 0)
                r = starter_send(s, m);
        if (r < 0)
                log_warning_errno(r, "Cannot ask primus-starter for %s", member);
}

int systemd_ask_written(struct systemd *s, const char *unit, sd_bus_slot **ret,
                        sd_bus_message_handler_t handler, void *userdata) {
        return sd_bus_call_method_async(s->starter, ret, NULL, STARTER_PATH, STARTER_OBSERVE, "Written",
                                        handler, userdata, "s", unit);
}

int starter_send(struct systemd *s, sd_bus_message *m) {
        return sd_bus_call_async(s->starter, NULL, m, on_told, NULL, CALL_USEC);
}

static int stop_message(struct systemd *s, const char *unit, sd_bus_message **ret) {
        int r = starter_message(s, "Stop", ret);

        return r < 0 ? r : sd_bus_message_append(*ret, "s", unit);
}

int systemd_stop(struct systemd *s, const char *unit, systemd_reply_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct call *c;
        int r = stop_message(s, unit, &m);

        if (r < 0)
                return r;
        c = call_new(s, unit, m, handler, userdata);
        if (!c)
                return -ENOMEM;
        c->job = true;
        DL_APPEND(s->stops, c);
        pump_calls(s);
        return 0;
}

int systemd_stop_in_turn(struct systemd *s, uint32_t uid, const char *unit) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = stop_message(s, unit, &m);

        return r < 0 ? r : systemd_call_job(s, uid, unit, m, NULL, NULL);
}

int systemd_kill(struct systemd *s, const char *unit, const char *whom, int signal,
                 systemd_reply_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(starter_message(s, "Kill", &m));
        TRY(sd_bus_message_append(m, "ssi", unit, whom, (int32_t)signal));
        return systemd_call(s, m, true, handler, userdata);
}

int systemd_list(struct systemd *s, const char *pattern, systemd_reply_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(systemd_message(s, "ListUnitsByPatterns", &m));
        TRY(sd_bus_message_append(m, "asas", 0, 1, pattern));
        return systemd_call(s, m, false, handler, userdata);
}

int systemd_list_enter(sd_bus_message *m) {
        int r = sd_bus_message_enter_container(m, 'a', "(ssssssouso)");

        return r == 0 ? -EBADMSG : r;
}

int systemd_list_next(sd_bus_message *m, struct systemd_unit *ret) {
        struct systemd_unit u;
        int r = sd_bus_message_read(m, "(ssssssouso)", &u.name, NULL, NULL, &u.active_state, &u.sub_state,
                                    NULL, &u.path, NULL, NULL, NULL);

        if (r <= 0)
                return r;
        *ret = u;
        return 1;
}

int systemd_get(struct systemd *s, const char *path, const char *interface, const char *property,
                systemd_reply_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        char name[64];

        snprintf(name, sizeof(name), SERVICE ".%s", interface);
        TRY(sd_bus_message_new_method_call(s->bus, &m, SERVICE, path, "org.freedesktop.DBus.Properties",
                                           "Get"));
        TRY(sd_bus_message_append(m, "ss", name, property));
        return systemd_call(s, m, false, handler, userdata);
}

unsigned systemd_pending(const struct systemd *s) {
        return s->pending;
}

unsigned systemd_jobs(const struct systemd *s) {
        return s->turns.held;
}

/* ---- signals ---- */

/* Executors, sessions, hooks; and mounts of theirs (lib/unit/shm.h). */
static bool is_ours(const char *unit) {
        return strncmp(unit, "primus-", 7) == 0 || strncmp(unit, "run-primus-", 11) == 0;
}

/* Kept until the call is answered that is under way for that unit. */
static bool keep_early(struct systemd *s, const char *unit, sd_bus_message *signal,
                       sd_bus_message_handler_t handler) {
        struct early *e;
        struct call *c;

        DL_FOREACH (s->under_way, c) {
                if (!c->job || strcmp(c->unit, unit) != 0)
                        continue;
                e = malloc(sizeof(*e));
                if (!e)
                        return false;
                *e = (struct early){ .signal = sd_bus_message_ref(signal), .handler = handler };
                DL_APPEND(c->early, e);
                return true;
        }
        return false;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;
        const char *job, *unit, *result;
        struct job_path *j;

        if (!bus_owner_sent(s->owner, m) || sd_bus_message_rewind(m, true) < 0 ||
            sd_bus_message_read(m, "uoss", NULL, &job, &unit, &result) < 0)
                return 0;
        if (is_ours(unit) && keep_early(s, unit, m, on_job_removed))
                return 0;
        j = find_job(s, job);
        if (j) {
                forget_job(s, j);
                pump_calls(s);
        }
        if (is_ours(unit))
                s->handlers.job_removed(unit, job, result, s->userdata);
        return 0;
}

/* 1: the State in the a{sv} of PropertiesChanged is "running". */
static int read_running(sd_bus_message *m) {
        const char *interface, *key, *state;
        int r;

        TRY(sd_bus_message_read(m, "s", &interface));
        if (strcmp(interface, SERVICE ".Job") != 0)
                return 0;
        TRY(sd_bus_message_enter_container(m, 'a', "{sv}"));
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                TRY(sd_bus_message_read(m, "s", &key));
                if (strcmp(key, "State") == 0) {
                        TRY(sd_bus_message_read(m, "v", "s", &state));
                        return strcmp(state, "running") == 0;
                }
                TRY(message_skip(m, "v"));
                TRY(sd_bus_message_exit_container(m));
        }
        return r;
}

static int on_job_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *path = sd_bus_message_get_path(m);
        struct systemd *s = userdata;
        struct job_path *j;

        if (!path || !bus_owner_sent(s->owner, m) || read_running(m) <= 0)
                return 0;
        j = find_job(s, path);
        if (j)
                job_leave_place(s, j);
        else if (s->asking > 0)         /* whose answer may come later than what is said of it */
                (void)add_job(s, path); /* if it is none of ours, its end is the end of this too */
        pump_calls(s);
        return 0;
}

static int on_unit_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;
        const char *unit;

        if (bus_owner_sent(s->owner, m) && sd_bus_message_rewind(m, true) >= 0 &&
            sd_bus_message_read(m, "so", &unit, NULL) >= 0 && is_ours(unit) &&
            !keep_early(s, unit, m, on_unit_removed))
                s->handlers.unit_removed(unit, s->userdata);
        return 0;
}

static int on_reloading(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;
        int active;

        if (!bus_owner_sent(s->owner, m) || sd_bus_message_read(m, "b", &active) < 0 || active)
                return 0;
        /* A reload may swallow what is said of jobs; better a few jobs too many than a window that stays
         * shut. */
        for (struct job_path *j = s->job_paths, *next; j; j = next) {
                next = j->hh.next;
                forget_job(s, j);
        }
        pump_calls(s);
        s->handlers.reloaded(s->userdata);
        return 0;
}

static void on_subscribed(sd_bus_message *reply, void *userdata) {
        struct systemd *s = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e && !sd_bus_error_has_name(e, SERVICE ".AlreadySubscribed"))
                s->handlers.ready(-sd_bus_message_get_errno(reply), s->userdata);
        else
                s->handlers.ready(0, s->userdata);
}

/* One thing more that has to be there before the first job is asked for. */
static void one_more_ready(struct systemd *s, int failed) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = failed;

        if (r >= 0 && ++s->matches_ready < ELEMENTSOF(s->matches) + 1) /* and the owner */
                return;
        r = r < 0 ? r : systemd_message(s, "Subscribe", &m);
        r = r < 0 ? r : systemd_call(s, m, false, on_subscribed, s);
        if (r < 0)
                s->handlers.ready(r, s->userdata);
}

static int on_match_installed(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        one_more_ready(userdata,
                       sd_bus_message_is_method_error(reply, NULL) ? -sd_bus_message_get_errno(reply) : 0);
        return 0;
}

static void on_owner_known(void *userdata) {
        one_more_ready(userdata, 0);
}

int systemd_new(sd_bus *bus, sd_bus *starter, const struct systemd_handlers *handlers, void *userdata,
                struct systemd **ret) {
        static const struct {
                const char *member;
                sd_bus_message_handler_t handler;
        } signals[] = {
                { "JobRemoved", on_job_removed },
                { "UnitRemoved", on_unit_removed },
                { "Reloading", on_reloading },
        };
        _cleanup_(systemd_free_p) struct systemd *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->bus = sd_bus_ref(bus);
        s->starter = sd_bus_ref(starter);
        s->handlers = *handlers;
        s->userdata = userdata;
        s->turns = (struct turns){ .places = SYSTEMD_JOBS, .share = SYSTEMD_SHARE };
        TRY(sd_bus_set_exit_on_disconnect(bus, true));
        TRY(bus_owner_new(bus, SERVICE, on_owner_known, s, &s->owner));
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                TRY(sd_bus_match_signal_async(bus, &s->matches[i], SERVICE, OBJECT, MANAGER,
                                              signals[i].member, signals[i].handler, on_match_installed, s));
        TRY(sd_bus_add_match_async(bus, &s->matches[ELEMENTSOF(signals)],
                                   "type='signal',sender='" SERVICE "',path_namespace='" JOBS
                                   "',interface='org.freedesktop.DBus.Properties',"
                                   "member='PropertiesChanged',arg0='" SERVICE ".Job'",
                                   on_job_changed, on_match_installed, s));
        *ret = TAKE_PTR(s);
        return 0;
}

void systemd_free(struct systemd *s) {
        struct call *c, *next;
        struct turn *t;

        if (!s)
                return;
        for (size_t i = 0; i < ELEMENTSOF(s->matches); i++)
                sd_bus_slot_unref(s->matches[i]);
        bus_owner_free(s->owner);
        DL_FOREACH_SAFE (s->urgent, c, next)
                call_free(c);
        DL_FOREACH_SAFE (s->stops, c, next)
                call_free(c);
        DL_FOREACH_SAFE (s->waiting, c, next)
                call_free(c);
        while ((t = turns_drop(&s->turns)))
                call_free((struct call *)t);
        DL_FOREACH_SAFE (s->under_way, c, next) {
                if (c->place)
                        turns_give_back(&s->turns, c->place);
                call_free(c);
        }
        for (struct job_path *j = s->job_paths, *next_path; j; j = next_path) {
                next_path = j->hh.next;
                forget_job(s, j);
        }
        sd_bus_unref(s->bus);
        sd_bus_unref(s->starter);
        free(s);
}
