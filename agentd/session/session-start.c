/* SPDX-License-Identifier: Apache-2.0 */
/* From SessionOpen to a process in the executor's cgroup: systemd is asked what the executor's unit is like,
 * a unit like it is started with one end of a socket pair as standard input, primus-enter moves its process
 * (units/session-enter.conf.in), and only then is it told to begin. */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include "agentd/session/sessions-internal.h"
#include "agentd/unit/systemd.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"

void session_refuse(struct session *s, const char *error, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        char clean[512];
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        if (s->opening)
                (void)sd_bus_reply_method_errorf(s->opening, error, "%s",
                                                 text ? utf8_clean(text, strlen(text), clean, sizeof(clean))
                                                      : "out of memory");
        s->opening = sd_bus_message_unref(s->opening);
        session_free(s);
}

static struct question *question_new(struct session *s, unsigned what) {
        struct question *q = calloc(1, sizeof(*q));

        if (!q)
                return NULL;
        *q = (struct question){ .sessions = s->sessions, .number = s->number, .what = what };
        DL_APPEND(s->sessions->questions, q);
        return q;
}

static struct session *question_done(struct question *q) {
        struct session *s = session_find(q->sessions, q->number);

        DL_DELETE(q->sessions->questions, q);
        free(q);
        return s && s->opening ? s : NULL;
}

/* ---- the unit ---- */

static void on_submitted(sd_bus_message *reply, void *userdata) {
        struct session *s = question_done(userdata);
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (s && e && s->artifacts)
                session_refuse(s, strncmp(e->name, "org.primus.Error.", 17) == 0 ? e->name : LINK_ERROR_START,
                               "%s", e->message ?: e->name);
        else if (s && e)
                session_refuse(s, LINK_ERROR_START, "systemd did not start the session: %s",
                               e->message ?: e->name);
}

static int append_start(struct session *s, sd_bus_message *m, int theirs) {
        if (s->artifacts) {
                TRY(sd_bus_message_append(m, "u", s->id.job));
                TRY(sd_bus_message_append_array(m, 'y', &s->id.job_uid, sizeof(s->id.job_uid)));
                return sd_bus_message_append(m, "uuh", s->uid, s->number, theirs);
        }
        TRY(executor_id_append(m, &s->id));
        TRY(sd_bus_message_append(m, "uu", s->number, s->uid));
        TRY(sd_bus_message_append_strv(m, s->environment));
        return sd_bus_message_append(m, "bth", (int)!s->no_new_privileges, s->memlock, theirs);
}

int session_submit(struct session *s) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct systemd *systemd = units_systemd(s->sessions->units);
        _cleanup_close_ int theirs = -EBADF;
        struct question *q;
        int fds[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        s->fd = fds[0];
        theirs = fds[1];
        if (fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        TRY(starter_message(systemd, s->artifacts ? "StartGet" : "StartSession", &m));
        TRY(append_start(s, m, theirs));
        q = question_new(s, 0);
        if (!q)
                return -ENOMEM;
        r = systemd_call_job(systemd, s->uid, s->unit, m, on_submitted, q);
        if (r < 0)
                (void)question_done(q);
        else
                s->submitted = true;
        return r;
}

void session_started(struct session *s, const char *result) {
        struct unit_facts facts;
        char unit[UNIT_NAME_MAX];
        int r;

        if (!s->opening || !s->submitted)
                return;
        executor_unit_name(s->id.job, s->id.role, s->id.index, s->id.attempt, unit);
        if (s->artifacts && strcmp(result, "done") != 0) {
                session_refuse(s, LINK_ERROR_START, "host %s cannot read the artifacts of job %u: %s",
                               s->sessions->node, s->id.job, result);
                return;
        }
        if (!s->artifacts &&
            (strcmp(result, "done") != 0 || units_find(s->sessions->units, unit, &facts) < 0 ||
             facts.state != EXECUTOR_RUNNING)) {
                session_refuse(s, LINK_ERROR_NOT_FOUND, "%s/%u does not run on %s any more", s->id.role,
                               s->id.index, s->sessions->node);
                return;
        }
        r = session_begin(s);
        if (r < 0)
                session_refuse(s, LINK_ERROR_START, "cannot speak to the session's process: %s",
                               strerror(-r));
}

/* ---- what the executor's unit is like ---- */

enum {
        ASK_ENVIRONMENT,
        ASK_DIRECTORY,
        ASK_PRIVILEGES,
        ASK_MEMLOCK,
        N_ASKED
};

static const char *const properties[N_ASKED] = {
        [ASK_ENVIRONMENT] = "Environment",
        [ASK_DIRECTORY] = "WorkingDirectory",
        [ASK_PRIVILEGES] = "NoNewPrivileges",
        [ASK_MEMLOCK] = "LimitMEMLOCK",
};

static int read_property(struct session *s, unsigned what, sd_bus_message *reply) {
        const char *text;
        int r, yes;

        if (sd_bus_message_is_method_error(reply, NULL))
                return -sd_bus_message_get_errno(reply);
        switch (what) {
        case ASK_ENVIRONMENT:
                r = sd_bus_message_enter_container(reply, 'v', "as");
                return r < 0 ? r : sd_bus_message_read_strv(reply, &s->environment);
        case ASK_DIRECTORY:
                r = sd_bus_message_read(reply, "v", "s", &text);
                if (r >= 0 && !(s->directory = strdup(text)))
                        r = -ENOMEM;
                return r;
        case ASK_PRIVILEGES:
                r = sd_bus_message_read(reply, "v", "b", &yes);
                if (r >= 0)
                        s->no_new_privileges = yes;
                return r;
        default:
                return sd_bus_message_read(reply, "v", "t", &s->memlock);
        }
}

/* An executor that an earlier agentd started has its directory in the unit, and not in its private
 * environment, from which primus-session has it otherwise. */
static int tell_directory(struct session *s) {
        struct session_start head;
        _cleanup_free_ char *text = NULL;
        uint8_t *bigger;
        int n;

        if (!*s->directory || strcmp(s->directory, "/") == 0)
                return 0;
        n = asprintf(&text, "PRIMUS_DIRECTORY=%s", s->directory);
        if (n < 0) {
                text = NULL;
                return -ENOMEM;
        }
        if (s->start_size + (size_t)n + 1 > SESSION_PACKET_MAX)
                return -E2BIG;
        bigger = realloc(s->start, s->start_size + (size_t)n + 1);
        if (!bigger)
                return -ENOMEM;
        memcpy(bigger + s->start_size, text, (size_t)n + 1);
        memcpy(&head, bigger + 1, sizeof(head));
        head.n_environment++;
        memcpy(bigger + 1, &head, sizeof(head));
        s->start = bigger;
        s->start_size += (size_t)n + 1;
        return 0;
}

static void on_property(sd_bus_message *reply, void *userdata) {
        struct question *q = userdata;
        unsigned what = q->what;
        struct session *s = question_done(q);
        int r;

        if (!s)
                return;
        r = read_property(s, what, reply);
        if (r < 0 && s->failed >= 0)
                s->failed = r;
        if (--s->questions > 0)
                return;
        if (s->failed < 0 || !s->directory || !s->environment) {
                session_refuse(s, LINK_ERROR_NOT_FOUND, "%s/%u does not run on %s any more", s->id.role,
                               s->id.index, s->sessions->node);
                return;
        }
        r = tell_directory(s);
        if (r >= 0)
                r = session_submit(s);
        if (r < 0)
                session_refuse(s, LINK_ERROR_START, "cannot start the session: %s", strerror(-r));
}

int session_ask(struct session *s) {
        struct systemd *systemd = units_systemd(s->sessions->units);
        _cleanup_free_ char *path = NULL;
        char unit[UNIT_NAME_MAX];
        int r;

        executor_unit_name(s->id.job, s->id.role, s->id.index, s->id.attempt, unit);
        r = sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &path);
        for (unsigned i = 0; r >= 0 && i < N_ASKED; i++) {
                struct question *q = question_new(s, i);

                if (!q)
                        return -ENOMEM;
                r = systemd_get(systemd, path, "Service", properties[i], on_property, q);
                if (r < 0)
                        (void)question_done(q);
                else
                        s->questions++;
        }
        return r;
}
