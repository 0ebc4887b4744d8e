/* SPDX-License-Identifier: Apache-2.0 */
/* The window onto systemd. Invariant: pending <= SYSTEMD_WINDOW, jobs <= SYSTEMD_JOBS, and while something
 * waits one of the two is reached. */
#include "agentd/unit/systemd.h"

#include <stdarg.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

#define SERVICE "org.freedesktop.systemd1"
#define OBJECT "/org/freedesktop/systemd1"
#define STARTER_PATH "/org/primus/Starter1"
#define STARTER_UNITS "org.primus.Starter1.Units"
#define MANAGER "org.freedesktop.systemd1.Manager"
/* PID 1 may be busy for long (a herd of units, a reload). */
#define CALL_USEC (UINT64_C(120) * USEC_PER_SEC)

struct call {
        struct systemd *systemd;
        sd_bus_message *message;
        sd_bus_slot *slot; /* under way */
        bool job;
        systemd_reply_handler handler;
        void *userdata;
        struct call *next, *prev;
};

/* A job of ours in systemd's queue. */
struct job_path {
        UT_hash_handle hh;
        char path[];
};

struct systemd {
        sd_bus *bus, *starter;
        struct systemd_handlers handlers;
        void *userdata;
        struct call *urgent, *waiting, *waiting_jobs, *under_way;
        unsigned pending;
        struct job_path *job_paths;
        unsigned jobs; /* asked for or in the queue */
        sd_bus_slot *matches[3];
        unsigned matches_ready;
        bool pumping;
};

static void call_free(struct call *c) {
        sd_bus_slot_unref(c->slot);
        sd_bus_message_unref(c->message);
        free(c);
}

static void pump(struct systemd *s);

static void forget_job(struct systemd *s, struct job_path *j) {
        HASH_DEL(s->job_paths, j);
        s->jobs--;
        free(j);
}

/* The answer to a call for a job: it counts until JobRemoved. */
static void note_job(struct systemd *s, sd_bus_message *reply) {
        struct job_path *j, *known;
        const char *path;

        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "o", &path) > 0 &&
            (j = malloc(sizeof(*j) + strlen(path) + 1))) {
                strcpy(j->path, path);
                HASH_FIND_STR(s->job_paths, path, known);
                if (!known) {
                        HASH_ADD_STR(s->job_paths, path, j);
                        (void)sd_bus_message_rewind(reply, true);
                        return;
                }
                free(j); /* it was merged into one that is there */
        }
        s->jobs--;
        (void)sd_bus_message_rewind(reply, true);
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct call *c = userdata;
        struct systemd *s = c->systemd;

        DL_DELETE(s->under_way, c);
        s->pending--;
        if (c->job)
                note_job(s, reply);
        if (c->handler)
                c->handler(reply, c->userdata);
        call_free(c);
        pump(s);
        return 0;
}

static void send_call(struct systemd *s, struct call *c) {
        sd_bus_message *failure = NULL;
        int r = sd_bus_call_async(sd_bus_message_get_bus(c->message), &c->slot, c->message, on_reply, c, CALL_USEC);

        if (r >= 0) {
                c->message = sd_bus_message_unref(c->message);
                DL_APPEND(s->under_way, c);
                s->pending++;
                s->jobs += c->job;
                return;
        }
        /* The bus is going, which ends the loop; whoever waits still hears of it. */
        if (c->handler && sd_bus_message_new_method_errno(c->message, &failure, r, NULL) >= 0)
                c->handler(failure, c->userdata);
        sd_bus_message_unref(failure);
        call_free(c);
}

static void pump(struct systemd *s) {
        struct call *c;

        if (s->pumping)
                return; /* a failing call's handler queued another */
        s->pumping = true;
        while (s->pending < SYSTEMD_WINDOW && (c = s->urgent)) {
                DL_DELETE(s->urgent, c);
                send_call(s, c);
        }
        while (s->pending < SYSTEMD_WINDOW && (c = s->waiting)) {
                DL_DELETE(s->waiting, c);
                send_call(s, c);
        }
        while (s->pending < SYSTEMD_WINDOW && s->jobs < SYSTEMD_JOBS && (c = s->waiting_jobs)) {
                DL_DELETE(s->waiting_jobs, c);
                send_call(s, c);
        }
        s->pumping = false;
}

static struct call *call_new(struct systemd *s, sd_bus_message *m, systemd_reply_handler handler,
                             void *userdata) {
        struct call *c = malloc(sizeof(*c));

        if (c)
                *c = (struct call){ .systemd = s,
                                    .message = sd_bus_message_ref(m),
                                    .handler = handler,
                                    .userdata = userdata };
        return c;
}

int systemd_call(struct systemd *s, sd_bus_message *m, bool urgent, systemd_reply_handler handler,
                 void *userdata) {
        struct call *c = call_new(s, m, handler, userdata);

        if (!c)
                return -ENOMEM;
        if (urgent) /* in their order: SIGTERM before the SIGKILL that follows it */
                DL_APPEND(s->urgent, c);
        else
                DL_APPEND(s->waiting, c);
        pump(s);
        return 0;
}

int systemd_call_job(struct systemd *s, sd_bus_message *m, systemd_reply_handler handler, void *userdata) {
        struct call *c = call_new(s, m, handler, userdata);

        if (!c)
                return -ENOMEM;
        c->job = true;
        DL_APPEND(s->waiting_jobs, c);
        pump(s);
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

int starter_send(struct systemd *s, sd_bus_message *m) {
        return sd_bus_call_async(s->starter, NULL, m, on_told, NULL, CALL_USEC);
}

int systemd_stop(struct systemd *s, const char *unit, systemd_reply_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = starter_message(s, "Stop", &m);

        if (r < 0 || (r = sd_bus_message_append(m, "s", unit)) < 0)
                return r;
        return systemd_call_job(s, m, handler, userdata);
}

int systemd_kill(struct systemd *s, const char *unit, const char *whom, int signal,
                 systemd_reply_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = starter_message(s, "Kill", &m);

        if (r < 0 || (r = sd_bus_message_append(m, "ssi", unit, whom, (int32_t)signal)) < 0)
                return r;
        return systemd_call(s, m, true, handler, userdata);
}

int systemd_list(struct systemd *s, const char *pattern, systemd_reply_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = systemd_message(s, "ListUnitsByPatterns", &m);

        if (r < 0 || (r = sd_bus_message_append(m, "asas", 0, 1, pattern)) < 0)
                return r;
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
        int r;

        r = sd_bus_message_new_method_call(s->bus, &m, SERVICE, path, "org.freedesktop.DBus.Properties",
                                           "Get");
        snprintf(name, sizeof(name), SERVICE ".%s", interface);
        if (r < 0 || (r = sd_bus_message_append(m, "ss", name, property)) < 0)
                return r;
        return systemd_call(s, m, false, handler, userdata);
}

unsigned systemd_pending(const struct systemd *s) {
        return s->pending;
}

unsigned systemd_jobs(const struct systemd *s) {
        return s->jobs;
}

/* ---- signals
 * -------------------------------------------------------------------------------------------------------- */

/* Executors, sessions, hooks; and mounts of theirs (agentd/unit/shm.h). */
static bool is_ours(const char *unit) {
        return strncmp(unit, "primus-", 7) == 0 || strncmp(unit, "run-primus-", 11) == 0;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;
        const char *job, *unit, *result;
        struct job_path *j;

        if (sd_bus_message_read(m, "uoss", NULL, &job, &unit, &result) < 0)
                return 0;
        HASH_FIND_STR(s->job_paths, job, j);
        if (j) {
                forget_job(s, j);
                pump(s);
        }
        if (is_ours(unit))
                s->handlers.job_removed(unit, job, result, s->userdata);
        return 0;
}

static int on_unit_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;
        const char *unit;

        if (sd_bus_message_read(m, "so", &unit, NULL) >= 0 && is_ours(unit))
                s->handlers.unit_removed(unit, s->userdata);
        return 0;
}

static int on_reloading(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;
        int active;

        if (sd_bus_message_read(m, "b", &active) < 0 || active)
                return 0;
        /* A reload may swallow JobRemoved; better a few jobs too many than a window that stays shut. */
        for (struct job_path *j = s->job_paths, *next; j; j = next) {
                next = j->hh.next;
                forget_job(s, j);
        }
        pump(s);
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

static int on_match_installed(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct systemd *s = userdata;
        int r = 0;

        if (sd_bus_message_is_method_error(reply, NULL))
                r = -sd_bus_message_get_errno(reply);
        else if (++s->matches_ready < ELEMENTSOF(s->matches))
                return 0;
        else if ((r = systemd_message(s, "Subscribe", &m)) >= 0)
                r = systemd_call(s, m, false, on_subscribed, s);
        if (r < 0)
                s->handlers.ready(r, s->userdata);
        return 0;
}

int systemd_new(sd_bus *bus, sd_bus *starter, const struct systemd_handlers *handlers, void *userdata, struct systemd **ret) {
        static const struct {
                const char *member;
                sd_bus_message_handler_t handler;
        } signals[] = {
                { "JobRemoved", on_job_removed },
                { "UnitRemoved", on_unit_removed },
                { "Reloading", on_reloading },
        };
        _cleanup_(systemd_free_p) struct systemd *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->bus = sd_bus_ref(bus);
        s->starter = sd_bus_ref(starter);
        s->handlers = *handlers;
        s->userdata = userdata;
        r = sd_bus_set_exit_on_disconnect(bus, true);
        for (size_t i = 0; i < ELEMENTSOF(signals) && r >= 0; i++)
                r = sd_bus_match_signal_async(bus, &s->matches[i], SERVICE, OBJECT, MANAGER,
                                              signals[i].member, signals[i].handler, on_match_installed, s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

void systemd_free(struct systemd *s) {
        struct call *c, *next;

        if (!s)
                return;
        for (size_t i = 0; i < ELEMENTSOF(s->matches); i++)
                sd_bus_slot_unref(s->matches[i]);
        DL_FOREACH_SAFE (s->urgent, c, next)
                call_free(c);
        DL_FOREACH_SAFE (s->waiting, c, next)
                call_free(c);
        DL_FOREACH_SAFE (s->waiting_jobs, c, next)
                call_free(c);
        DL_FOREACH_SAFE (s->under_way, c, next)
                call_free(c);
        for (struct job_path *j = s->job_paths, *next_path; j; j = next_path) {
                next_path = j->hh.next;
                forget_job(s, j);
        }
        sd_bus_unref(s->bus);
        sd_bus_unref(s->starter);
        free(s);
}
