/* SPDX-License-Identifier: Apache-2.0 */
/* ArtifactsOpen: a session that is of no executor: a process of the job's user reads what the job has left on
 * this host (primus-executor --collect), and what it says is passed on as a session's output is. */
#include <string.h>

#include "agentd/session/sessions-internal.h"
#include "agentd/unit/systemd.h"
#include "lib/base/audit.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/skip.h"

/* Beside each other for one user: each is a process. */
#define PER_USER_MAX 8u
/* A unit is stopped after five seconds whatever its process does. */
#define AGAIN_USEC (30 * USEC_PER_SEC)

static int read_extra(sd_bus_message *call, const char *key, void *userdata) {
        uint32_t *caller = userdata;

        return strcmp(key, "caller") == 0 ? sd_bus_message_read(call, "v", "u", caller)
                                          : message_skip(call, "v");
}

/* ---- units whose session is over ---- */

static void on_stopped(sd_bus_message *reply, void *userdata) {
        struct question *q = userdata;
        struct leaving *l;

        DL_SEARCH_SCALAR(q->sessions->leaving, l, number, q->number);
        if (l &&
            sd_bus_error_has_name(sd_bus_message_get_error(reply), "org.freedesktop.systemd1.NoSuchUnit")) {
                DL_DELETE(q->sessions->leaving, l);
                free(l);
        }
        DL_DELETE(q->sessions->questions, q);
        free(q);
}

/* in_turn: behind its start, which may not have been asked for yet. */
static int stop_unit(struct sessions *all, struct leaving *l, bool in_turn) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct systemd *systemd = units_systemd(all->units);
        struct question *q = calloc(1, sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct question){ .sessions = all, .number = l->number };
        DL_APPEND(all->questions, q);
        l->asked_boot = now_boot();
        if (!in_turn)
                r = systemd_stop(systemd, l->unit, on_stopped, q);
        else if ((r = starter_message(systemd, "Stop", &m)) >= 0 &&
                 (r = sd_bus_message_append(m, "s", l->unit)) >= 0)
                r = systemd_call_job(systemd, l->uid, l->unit, m, on_stopped, q);
        if (r < 0) {
                DL_DELETE(all->questions, q);
                free(q);
        }
        return r;
}

void session_stop_reader(const struct session *s) {
        struct leaving *l = calloc(1, sizeof(*l));
        int r = -ENOMEM;

        if (l) {
                l->uid = s->uid;
                l->number = s->number;
                memcpy(l->unit, s->unit, sizeof(l->unit));
                DL_APPEND(s->sessions->leaving, l);
                r = stop_unit(s->sessions, l, s->opening);
        }
        if (r < 0)
                log_warning_errno(r, "Cannot stop %s", s->unit);
}

void sessions_unit_gone(struct sessions *all, const char *unit) {
        struct leaving *l, *next;

        DL_FOREACH_SAFE (all->leaving, l, next)
                if (strcmp(l->unit, unit) == 0) {
                        DL_DELETE(all->leaving, l);
                        free(l);
                }
}

static bool has_room(struct sessions *all, uint32_t uid) {
        const struct session *s, *next;
        struct leaving *l;
        unsigned n = 0;

        HASH_ITER (hh, all->list, s, next)
                n += s->artifacts && s->uid == uid;
        DL_FOREACH (all->leaving, l) {
                if (l->uid != uid)
                        continue;
                n++;
                /* What was said of its end may have been lost. */
                if (l->asked_boot + AGAIN_USEC < now_boot() && stop_unit(all, l, false) < 0)
                        log_oom();
        }
        return n < PER_USER_MAX;
}

/* ---- ArtifactsOpen ---- */

int sessions_open_artifacts(struct sessions *all, sd_bus_message *call, sd_bus_error *error) {
        struct session_start start = { .version = SESSION_VERSION, .kind = SESSION_COMMAND };
        struct unit_facts facts = { .id.index = 0 };
        uint32_t number, caller = AUDIT_NO_UID;
        size_t n, size = 1 + sizeof(start);
        struct session *s = NULL;
        const void *bytes;
        int r;

        if (sd_bus_message_read(call, "u", &facts.id.job) <= 0 ||
            sd_bus_message_read_array(call, 'y', &bytes, &n) <= 0 || n != sizeof(facts.id.job_uid.bytes) ||
            sd_bus_message_read(call, "uu", &facts.uid, &number) <= 0)
                return -EBADMSG;
        memcpy(facts.id.job_uid.bytes, bytes, n);
        r = session_read_strings(call, all->buffer, &size, &start.n_arguments);
        if (r == -E2BIG)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "the arguments are more than %u bytes, or hold a NUL byte",
                                         SESSION_DATA_MAX);
        if (r < 0 || link_read_entries(call, read_extra, &caller) < 0)
                return -EBADMSG;
        all->buffer[0] = SESSION_START;
        memcpy(all->buffer + 1, &start, sizeof(start));
        r = session_admit(all, number, facts.uid, error);
        if (r < 0)
                return r;
        if (!has_room(all, facts.uid))
                return sd_bus_error_setf(error, LINK_ERROR_BUSY,
                                         "host %s sends artifacts to %u readers of this user already",
                                         all->node, PER_USER_MAX);
        r = session_new(all, number, &facts, call, size, &s);
        if (r < 0)
                return r;
        s->artifacts = true;
        s->caller = caller;
        get_unit_name(s->id.job, number, s->unit);
        r = session_submit(s);
        if (r < 0)
                session_refuse(s, LINK_ERROR_START, "cannot read the artifacts: %s", strerror(-r));
        return 1;
}
