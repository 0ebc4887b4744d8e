/* SPDX-License-Identifier: Apache-2.0 */
/* Ends without a record: primus-exit was killed, for want of memory in the unit's own limit, by a kill of all
 * that is in the unit, or could not be started. What systemd has said of the unit's end is asked for then, in
 * the thread, of the journal. Units that are gone and that no executor here is of (agentd was not there) are
 * known by their private directories, which stay until the end is committed. Invariant: what systemd never
 * began is no end. */
#include <string.h>
#include <sys/stat.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/clock.h"
#include "lib/unit/files.h"

#define LEFT_MAX 4096u

struct left {
        char unit[UNIT_NAME_MAX];
        struct unit_identity identity;
        struct unit_verdict verdict;
        int found; /* 1: verdict */
};

struct inquiry {
        struct units *units;
        struct left *left;
        size_t n;
};

static void inquiry_free(struct inquiry *q) {
        free(q->left);
        free(q);
}
DEFINE_CLEANUP(struct inquiry *, inquiry_free)

/* Its environment file is made just before it is, and not changed. */
static uint64_t made_at(const char *root, const char *unit) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s/env", root, unit) < 0) {
                path = NULL;
                return 0;
        }
        return lstat(path, &st) < 0 || st.st_mtim.tv_sec <= 0
                       ? 0
                       : (uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec / 1000;
}

/* In the thread. Where its private directory is gone, so is what is known of the unit. */
static void ask_verdict(const struct units *u, struct left *l) {
        const uint64_t since = made_at(u->options.root, l->unit);

        l->found = since == 0 ? 0 : u->options.verdict(l->unit, since, &l->verdict);
}

static void run_inquiry(void *data) {
        struct inquiry *q = data;

        for (size_t i = 0; i < q->n; i++)
                ask_verdict(q->units, q->left + i);
}

static void take_verdict(struct executor *e, const struct unit_verdict *v) {
        e->exit = executor_blank_report(e);
        strcpy(e->exit.result, v->result);
        strcpy(e->exit.code, v->code);
        e->exit.status = v->status;
        e->exit.ended_real = v->ended_real;
        e->exit.stop_local = v->stopped && !e->stop_requested;
        e->exit.stop_requested = e->stop_requested;
        e->has_exit = e->has_verdict = true;
}

/* ---- of an executor that we have seen ---- */

static void on_asked(void *data) {
        _cleanup_(inquiry_free_p) struct inquiry *q = data;
        struct executor *e = executor_find_unit(q->units, q->left->unit);

        if (!e || e->state > EXECUTOR_STOPPING)
                return;
        executor_take_record(e); /* it may have come all the same */
        if (e->has_exit)
                return;
        if (q->left->found > 0)
                take_verdict(e, &q->left->verdict);
        log_executor(e, LOG_WARNING, "%s is gone and left no exit record; %s%s", e->unit,
                     e->has_exit ? "systemd says how it ended: "
                                 : "systemd's journal does not say how it ended",
                     e->has_exit ? e->exit.result : "");
        executor_event(e, EVENT_UNIT_GONE);
}

int executor_ask_verdict(struct executor *e) {
        _cleanup_(inquiry_free_p) struct inquiry *q = NULL;
        int r;

        if (!e->units->options.verdict)
                return -EOPNOTSUPP;
        q = calloc(1, sizeof(*q));
        if (!q || !(q->left = calloc(1, sizeof(*q->left))))
                return -ENOMEM;
        q->units = e->units;
        q->n = 1;
        strcpy(q->left->unit, e->unit);
        r = worker_submit(e->units->worker, run_inquiry, on_asked, q);
        if (r < 0)
                return r;
        TAKE_PTR(q);
        return 0;
}

/* ---- of those that ended while we were away ---- */

static int read_identity(const char *root, const char *unit, struct unit_identity *ret) {
        _cleanup_free_ char *text = NULL;
        char name[UNIT_NAME_MAX];
        int r = private_get(root, unit, PRIVATE_IDENTITY, IDENTITY_TEXT_MAX, &text);

        if (r < 0 || (r = identity_text_parse(text, ret)) < 0)
                return r;
        executor_unit_name(ret->id.job, ret->id.role, ret->id.index, ret->id.attempt, name);
        return strcmp(name, unit) == 0 ? 0 : -EBADMSG;
}

static int add_left(struct inquiry *q, const char *unit, const struct unit_identity *identity) {
        struct left *more = reallocarray(q->left, q->n + 1, sizeof(*more));

        if (!more)
                return -ENOMEM;
        q->left = more;
        q->left[q->n] = (struct left){ .identity = *identity };
        strcpy(q->left[q->n++].unit, unit);
        return 0;
}

/* The starter's list of private directories, which are not ours to list. */
static int collect_units(struct inquiry *q, sd_bus_message *reply) {
        struct units *u = q->units;
        const char *unit;
        int r;

        if (sd_bus_message_is_method_error(reply, NULL))
                return -sd_bus_message_get_errno(reply);
        r = sd_bus_message_enter_container(reply, 'a', "(stu)");
        while (r >= 0 && q->n < LEFT_MAX &&
               (r = sd_bus_message_read(reply, "(stu)", &unit, NULL, NULL)) > 0) {
                struct unit_identity identity;

                if (executor_unit_name_valid(unit) && !executor_find_unit(u, unit) &&
                    !exits_present(u->exits, unit) && read_identity(u->options.root, unit, &identity) >= 0)
                        r = add_left(q, unit, &identity);
        }
        return r;
}

static void report_left(struct units *u, const struct left *l) {
        struct executor *e = executor_find_unit(u, l->unit);

        if (e)
                return;
        if (l->found <= 0) { /* it was never begun, or nobody knows any more */
                starter_tell(u->systemd, "RemovePrivate", "s", l->unit);
                return;
        }
        e = executor_new(u, &l->identity.id);
        if (!e) {
                log_oom();
                return;
        }
        e->kind = l->identity.kind;
        e->uid = l->identity.uid;
        e->submitted = true;
        e->state = EXECUTOR_ENDING;
        e->stop_requested = private_stop_marked(u->options.root, e->unit);
        take_verdict(e, &l->verdict);
        log_executor(
                e, LOG_WARNING,
                "%s ended while primus-agentd was not there, and left no exit record; systemd says how it "
                "ended: %s",
                e->unit, e->exit.result);
        executor_event(e, EVENT_UNIT_GONE);
}

static void on_all_asked(void *data) {
        _cleanup_(inquiry_free_p) struct inquiry *q = data;

        for (size_t i = 0; i < q->n; i++)
                report_left(q->units, q->left + i);
        units_all_known(q->units);
}

static void on_listed(sd_bus_message *reply, void *userdata) {
        struct units *u = userdata;
        _cleanup_(inquiry_free_p) struct inquiry *q = calloc(1, sizeof(*q));
        int r = -ENOMEM;

        if (q) {
                q->units = u;
                r = collect_units(q, reply);
        }
        if (r < 0)
                log_warning_errno(r, "Cannot find out which executors left no exit record");
        if (q && q->n > 0 && worker_submit(u->worker, run_inquiry, on_all_asked, q) >= 0)
                TAKE_PTR(q);
        else
                units_all_known(u);
}

bool units_ask_left(struct units *u) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        return u->options.verdict && starter_message(u->systemd, "Usage", &m) >= 0 &&
               systemd_call(u->systemd, m, false, on_listed, u) >= 0;
}
