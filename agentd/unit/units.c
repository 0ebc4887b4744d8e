/* SPDX-License-Identifier: Apache-2.0 */
/* The executors' life. Invariant: every change of an executor's state goes through executor_event() and the table of
 * executor-state.c; every start_handler is called exactly once. */
#include "agentd/unit/units.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "agentd/unit/admission.h"
#include "agentd/unit/units-internal.h"

/* ---- the set -------------------------------------------------------------------------------------------------------- */

struct executor *executor_find_unit(struct units *u, const char *unit) {
        struct executor *e;

        HASH_FIND_STR(u->executors, unit, e);
        return e;
}

static struct executor *executor_find(struct units *u, const struct executor_id *id) {
        char unit[UNIT_NAME_MAX];
        struct executor *e;

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        e = executor_find_unit(u, unit);
        return e && executor_id_equal(&e->id, id) ? e : NULL;
}

struct executor *executor_new(struct units *u, const struct executor_id *id) {
        struct executor *e = calloc(1, sizeof(*e));

        if (!e)
                return NULL;
        e->units = u;
        e->id = *id;
        executor_unit_name(id->job, id->role, id->index, id->attempt, e->unit);
        HASH_ADD_STR(u->executors, unit, e);
        return e;
}

static void preparing_forget(struct executor *e);

static void answer(struct executor *e, const struct start_result *result) {
        struct waiter *w;

        while ((w = e->waiters)) {
                e->waiters = w->next;
                w->handler(result, w->userdata);
                free(w);
        }
}

static void executor_free(struct executor *e) {
        preparing_forget(e);
        answer(e, &(struct start_result){ .error = LINK_ERROR_START, .message = "the executor is gone" });
        HASH_DEL(e->units->executors, e);
        job_leave(e);
        sd_event_source_disable_unref(e->timer);
        sd_event_source_disable_unref(e->kill_timer);
        exit_report_done(&e->exit);
        free(e->start_job);
        free(e->stop_job);
        free(e->command);
        free(e->directory);
        free(e);
}

#define log_executor(e, level, ...)                                                                          \
        log_full(level, 0, &(struct log_fields){ .job = (e)->id.job, .unit = (e)->unit, .role = (e)->id.role }, __VA_ARGS__)

/* systemd exports a unit's invocation as a link, for journald; its time is when the unit's first process was started. */
void executor_read_start(struct executor *e) {
        char path[sizeof("/run/systemd/units/invocation:") + UNIT_NAME_MAX], text[SD_ID128_STRING_MAX] = "";
        struct stat st;

        snprintf(path, sizeof(path), "/run/systemd/units/invocation:%s", e->unit);
        if (readlink(path, text, sizeof(text) - 1) == SD_ID128_STRING_MAX - 1)
                (void) sd_id128_from_string(text, &e->invocation);
        if (lstat(path, &st) >= 0)
                e->started_real = (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t) st.st_mtim.tv_nsec / 1000;
        else
                e->started_real = now_real();
}

/* ---- starting ------------------------------------------------------------------------------------------------------- */

/* What a start needs until systemd has it. The executor may go before it does: then executor is NULL. */
struct preparing {
        struct units *units;
        struct executor *executor;
        struct start_order order;
        uint64_t term;
        char *bundle, *work, *why;
};

static void preparing_free(struct preparing *p) {
        if (p->executor)
                p->executor->preparing = NULL;
        start_order_done(&p->order);
        free(p->bundle);
        free(p->work);
        free(p->why);
        free(p);
}

/* Whoever works on it (the thread, the bundle's transfer) frees it when done. */
static void preparing_forget(struct executor *e) {
        if (e->preparing)
                e->preparing->executor = NULL;
        e->preparing = NULL;
}

static void refuse(struct executor *e, const char *why) {
        answer(e, &(struct start_result){ .error = LINK_ERROR_START, .message = why });
        executor_event(e, EVENT_REFUSED);
}

static void on_start_reply(sd_bus_message *reply, void *userdata) {
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *job;

        if (e && error)
                refuse(e, error->message ?: error->name);
        else if (e) {
                e->submitted = true;
                if (sd_bus_message_read(reply, "o", &job) >= 0)
                        e->start_job = strdup(job);
                if (e->state == EXECUTOR_STOPPING)
                        executor_event(e, EVENT_STOP); /* it came while the start waited */
        }
        preparing_free(p);
}

static int write_private(struct preparing *p, const struct unit_context *context) {
        _cleanup_free_ char *text = NULL;
        const char *bad = NULL;
        char **environment;
        size_t size;
        int r = unit_environment(&p->order, context, &environment);

        if (r < 0)
                return r;
        r = environment_format(environment, &text, &size, &bad);
        if (r == -EINVAL) {
                int l = (int) strcspn(bad, "=");
                if (asprintf(&p->why, "environment variable %.*s has no valid name or its value is not UTF-8, which systemd cannot take",
                             MIN(l, 100), bad) < 0)
                        p->why = NULL;
        }
        strings_free(environment);
        if (r < 0)
                return r;
        return private_create(p->units->options.root, p->executor->unit, p->order.uid, text, size, p->order.secrets,
                              p->order.n_secrets);
}

static int submit_unit(struct preparing *p) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct units *u = p->units;
        const struct unit_context context = {
                .node = u->options.node,
                .term = p->term,
                .inventory = u->options.inventory,
                .directory = p->executor->directory,
                .work = p->work,
                .bundle = p->bundle,
        };
        int r;

        if ((r = systemd_message(u->systemd, "StartTransientUnit", &m)) < 0 ||
            (r = unit_build(m, &p->order, &context, &p->why)) < 0)
                return r;
        if ((r = write_private(p, &context)) < 0 || (r = job_make_slice(p->executor->job)) < 0)
                return r;
        if (u->ops.starting)
                u->ops.starting(&p->order, u->userdata);
        return systemd_call(u->systemd, m, false, on_start_reply, p);
}

static void submit(struct executor *e) {
        struct preparing *p = e->preparing;
        int r = submit_unit(p);

        if (r >= 0)
                return; /* on_start_reply() goes on */
        char why[512];
        snprintf(why, sizeof(why), "%s", p->why ?: strerror(-r));
        preparing_free(p);
        refuse(e, why);
}

static void on_bundle(void *userdata, int r, const char *text, const char *path) {
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        char why[512];

        if (!e) {
                preparing_free(p);
                return;
        }
        if (r >= 0) {
                p->bundle = strdup(path);
                if (p->bundle) {
                        executor_event(e, EVENT_PREPARED);
                        return;
                }
                text = strerror(ENOMEM);
        }
        snprintf(why, sizeof(why), "cannot fetch the job's files: %s", text && *text ? text : strerror(-r));
        preparing_free(p);
        refuse(e, why);
}

static int prepare(struct executor *e, uint64_t term, struct start_order *order, char **ret_why) {
        struct units *u = e->units;
        struct preparing *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        *p = (struct preparing){ .units = u, .executor = e, .order = *order, .term = term };
        *order = (struct start_order){ 0 };
        e->preparing = p;
        order = &p->order;
        e->kind = order->kind;
        e->uid = order->uid;
        e->on_partition = order->on_partition;
        e->ack = order->ack;
        e->pipe_size = order->pipe_size;
        e->watched = true;
        e->state = EXECUTOR_PREPARING;
        e->command = strdup(order->argv && *order->argv ? *order->argv : "");
        p->work = work_path(u->options.root, e->id.job, e->id.job_uid);
        if (!e->command || !p->work)
                return -ENOMEM;
        e->directory = strdup(order->cwd && *order->cwd ? order->cwd : p->work);
        if (!e->directory)
                return -ENOMEM;
        if ((r = job_enter(u, e, order->job_memory_max)) < 0 ||
            (r = work_create(u->options.root, e->id.job, e->id.job_uid, e->uid)) < 0)
                return r;
        if (!*order->bundle)
                executor_event(e, EVENT_PREPARED);
        else if (!u->ops.bundle)
                return asprintf(ret_why, "this agent was built without the transfer of files") < 0 ? -ENOMEM : -EOPNOTSUPP;
        else
                return u->ops.bundle(order->uid, order->bundle, on_bundle, p, u->userdata);
        return 0;
}

static void answer_running(struct executor *e) {
        const bool ended = e->has_exit && sd_id128_is_null(e->invocation);

        answer(e, &(struct start_result){ .invocation = ended ? e->exit.invocation : e->invocation,
                                          .started_real = e->started_real > 0 ? e->started_real : e->exit.started_real });
}

void units_start(struct units *u, uint64_t term, struct start_order *order, start_handler handler, void *userdata) {
        struct start_result refused = { .error = LINK_ERROR_START };
        _cleanup_free_ char *why = NULL;
        char unit[UNIT_NAME_MAX], text[96];
        struct executor *e;
        struct waiter *w;
        uint16_t port;
        int r;

        executor_unit_name(order->id.job, order->id.role, order->id.index, order->id.attempt, unit);
        e = executor_find_unit(u, unit);
        if (e && (e->state >= EXECUTOR_ENDING || !executor_id_equal(&e->id, &order->id))) {
                refused.error = LINK_ERROR_ALREADY_RAN;
                refused.message = "an executor of that name has run on this host; its exit record waits to be committed";
                handler(&refused, userdata);
                return;
        }
        if (!e && exits_present(u->exits, unit)) {
                refused.error = LINK_ERROR_ALREADY_RAN;
                refused.message = "there is an exit record of that name on this host";
                handler(&refused, userdata);
                return;
        }
        if (!e && (port = ports_taken(order->ports, order->n_ports))) {
                snprintf(text, sizeof(text), "port %u is in use on host %s", port, u->options.node);
                refused.error = LINK_ERROR_PORT_TAKEN;
                refused.message = text;
                handler(&refused, userdata);
                return;
        }
        w = calloc(1, sizeof(*w));
        if (w && !e)
                e = executor_new(u, &order->id);
        if (!w || !e) {
                free(w);
                refused.message = "out of memory";
                handler(&refused, userdata);
                return;
        }
        *w = (struct waiter){ .handler = handler, .userdata = userdata, .next = e->waiters };
        e->waiters = w;
        if (e->preparing || e->state != EXECUTOR_PREPARING) {
                if (e->state == EXECUTOR_RUNNING || e->state == EXECUTOR_STOPPING)
                        answer_running(e);
                return;
        }
        r = prepare(e, term, order, &why);
        if (r >= 0)
                return;
        if (e->preparing)
                preparing_free(e->preparing);
        if (r == -EPERM && !why && asprintf(&why, "the job's work directory on host %s belongs to another user", u->options.node) < 0)
                why = NULL;
        refuse(e, why ?: strerror(-r));
}

/* ---- stopping ------------------------------------------------------------------------------------------------------- */

static int on_grace_over(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        if (e->state == EXECUTOR_STOPPING)
                (void) systemd_kill(e->units->systemd, e->unit, SIGKILL, NULL, NULL);
        return 0;
}

static void on_stop_reply(sd_bus_message *reply, void *userdata) {
        struct units *u = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        /* NoSuchUnit: it ended meanwhile; its record says how. */
        if (error && !sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit"))
                log_warning("systemd did not stop a unit (%zu known): %s", units_count(u), error->message);
}

static void stop(struct executor *e) {
        struct units *u = e->units;
        uint64_t grace = e->stop_grace;
        int r;

        e->stop_requested = true;
        r = private_mark_stop(u->options.root, e->unit, "order");
        if (r < 0 && r != -ENOENT)
                log_executor(e, LOG_WARNING, "Cannot mark the stop of %s: %s", e->unit, strerror(-r));
        if (!e->submitted)
                return; /* done when systemd has taken it */
        if (grace == 0)
                (void) systemd_kill(u->systemd, e->unit, SIGKILL, NULL, NULL);
        if (systemd_stop(u->systemd, e->unit, on_stop_reply, u) < 0)
                log_oom();
        if (grace == 0)
                return;
        if (!e->kill_timer)
                r = sd_event_add_time_relative(u->event, &e->kill_timer, CLOCK_BOOTTIME, grace, 0, on_grace_over, e);
        else if ((r = sd_event_source_set_time_relative(e->kill_timer, grace)) >= 0)
                r = sd_event_source_set_enabled(e->kill_timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_oom();
}

int units_stop(struct units *u, const struct executor_id *id, uint64_t grace_usec, const char *reason) {
        struct executor *e = executor_find(u, id);

        if (!e)
                return -ENOENT;
        log_executor(e, LOG_INFO, "Stopping %s: %s", e->unit, reason);
        if (e->state == EXECUTOR_STOPPING && e->submitted && grace_usec >= e->stop_grace)
                return 0;
        e->stop_grace = grace_usec;
        if (e->state == EXECUTOR_PREPARING)
                answer(e, &(struct start_result){ .error = LINK_ERROR_START, .message = "stopped before it was started" });
        executor_event(e, EVENT_STOP);
        return 0;
}

unsigned units_stop_partitioned(struct units *u) {
        struct executor *e, *next;
        unsigned n = 0;

        HASH_ITER(hh, u->executors, e, next)
                if (e->on_partition == ON_PARTITION_STOP && e->state <= EXECUTOR_STOPPING) {
                        e->stop_grace = 0;
                        executor_event(e, EVENT_STOP);
                        n++;
                }
        return n;
}

/* ---- ending --------------------------------------------------------------------------------------------------------- */

/* What systemd calls a success or not is one thing, what it means for a trainer another. */
static void judge(struct executor *e) {
        struct exit_report *x = &e->exit;

        x->stop_requested |= e->stop_requested;
        if (e->watched)
                x->stop_local = e->stop_local; /* we saw every job of the unit; primus-exit can only guess */
        else
                x->stop_local |= e->stop_local;
        if (x->stop_requested)
                x->stop_local = false;
        /* SIGTERM, SIGINT, SIGHUP and SIGPIPE are clean ends of a service, but not of a program that nobody stopped. */
        if (strcmp(x->result, "success") == 0 && strcmp(x->code, "killed") == 0 && !x->stop_requested && !x->stop_local)
                strcpy(x->result, "signal");
        if (sd_id128_is_null(x->invocation))
                x->invocation = e->invocation;
        if (x->started_real == 0)
                x->started_real = e->started_real;
}

static void remove_private(struct executor *e) {
        char *path;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s", e->units->options.root, e->unit) >= 0)
                remove_later(e->units, path);
}

static void report(struct executor *e) {
        struct units *u = e->units;
        char *detail;

        if (!e->has_exit) {
                e->exit = (struct exit_report){ .id = e->id, .result = "no-record", .invocation = e->invocation,
                                                .started_real = e->started_real, .ended_real = now_real(),
                                                .memory_peak = UINT64_MAX, .cpu_usec = UINT64_MAX,
                                                .io_read = UINT64_MAX, .io_write = UINT64_MAX };
                e->has_exit = true;
        }
        judge(e);
        detail = exit_explain(&e->exit, u->options.node, e->command, e->directory, e->uid);
        if (detail) {
                free(e->exit.detail);
                e->exit.detail = detail;
        }
        answer_running(e); /* it was started, however short */
        remove_private(e);
        sd_event_source_disable_unref(TAKE_PTR(e->timer));
        sd_event_source_disable_unref(TAKE_PTR(e->kill_timer));
        job_leave(e);
        if (u->ops.ended)
                u->ops.ended(&e->id, u->userdata);
        if (u->ready && u->ops.exited)
                u->ops.exited(&e->exit, u->userdata);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);

static void arm(struct executor *e, uint64_t usec) {
        int r;

        if (!e->timer)
                r = sd_event_add_time_relative(e->units->event, &e->timer, CLOCK_BOOTTIME, usec, 0, on_timer, e);
        else if ((r = sd_event_source_set_time_relative(e->timer, usec)) >= 0)
                r = sd_event_source_set_enabled(e->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_oom();
}

struct verification {
        struct units *units;
        char unit[UNIT_NAME_MAX];
};

static void on_verified(sd_bus_message *reply, void *userdata) {
        struct verification *v = userdata;
        struct executor *e = executor_find_unit(v->units, v->unit);
        bool there = sd_bus_message_is_method_error(reply, NULL) || systemd_list_enter(reply) < 0;
        struct systemd_unit row;

        while (!there && systemd_list_next(reply, &row) > 0)
                there = strcmp(row.active_state, "inactive") != 0 && strcmp(row.active_state, "failed") != 0;
        if (e && !there && e->submitted && e->state <= EXECUTOR_STOPPING) {
                log_executor(e, LOG_WARNING, "%s is gone and left no exit record", e->unit);
                executor_event(e, EVENT_UNIT_GONE);
        }
        free(v);
}

static void verify(struct executor *e) {
        struct verification *v = malloc(sizeof(*v));

        if (v) {
                v->units = e->units;
                strcpy(v->unit, e->unit);
                if (systemd_list(e->units->systemd, e->unit, on_verified, v) >= 0)
                        return;
        }
        free(v);
        log_oom();
}

/* Moves the report. */
static void take_exit(struct executor *e, struct exit_report *x) {
        e->exit = *x;
        e->has_exit = true;
        *x = (struct exit_report){ 0 };
}

static void take_record(struct executor *e) {
        struct exit_report x;
        int r;

        if (e->has_exit)
                return;
        r = exits_read(e->units->exits, e->unit, &x);
        if (r < 0)
                return;
        take_exit(e, &x);
        executor_event(e, EVENT_RECORD);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        if (e->state == EXECUTOR_ENDING) {
                executor_event(e, EVENT_UNIT_GONE);
                return 0;
        }
        take_record(e);
        if (e->state <= EXECUTOR_STOPPING)
                verify(e);
        return 0;
}

void executor_verify(struct executor *e) {
        arm(e, VERIFY_USEC);
}

void units_committed(struct units *u, const struct executor_id *id) {
        struct executor *e = executor_find(u, id);

        if (e && e->has_exit)
                executor_event(e, EVENT_COMMITTED);
}

/* ---- the table's actions -------------------------------------------------------------------------------------------- */

void executor_event(struct executor *e, enum executor_event event) {
        enum executor_state before = e->state;
        int action = executor_step(&e->state, event);

        if (action < 0) {
                log_executor(e, LOG_WARNING, "%s: nothing is defined for event '%s' in state '%s'; ignored", e->unit,
                             executor_event_to_string(event), executor_state_to_string(before));
                return;
        }
        log_executor(e, LOG_DEBUG, "%s: %s -> %s", e->unit, executor_state_to_string(before),
                     executor_state_to_string(e->state));
        switch ((enum executor_action) action) {
        case ACTION_SUBMIT:
                submit(e); /* may end in EVENT_REFUSED and the end of e */
                return;
        case ACTION_ANSWER:
                executor_read_start(e);
                answer_running(e);
                break;
        case ACTION_STOP:
                stop(e);
                break;
        case ACTION_SETTLE:
                arm(e, SETTLE_USEC);
                break;
        case ACTION_REPORT:
                report(e);
                break;
        case ACTION_FORGET:
                if (before == EXECUTOR_ENDING)
                        remove_private(e);
                (void) exits_delete(e->units->exits, e->unit);
                break;
        case ACTION_REFUSE:
                remove_private(e);
                if (e->units->ops.ended)
                        e->units->ops.ended(&e->id, e->units->userdata);
                break;
        case ACTION_NONE:
                break;
        }
        if (e->state == EXECUTOR_GONE)
                executor_free(e);
}

/* ---- what systemd and primus-exit say ------------------------------------------------------------------------------- */

static void on_job_removed(const char *unit, const char *job, const char *result, void *userdata) {
        struct units *u = userdata;
        struct executor *e = executor_find_unit(u, unit);

        if (!e)
                return;
        if (e->start_job && strcmp(job, e->start_job) == 0) {
                /* "failed" also ran: its exit record says how it ended. Other results (canceled, dependency): no process. */
                if (strcmp(result, "done") == 0)
                        executor_event(e, EVENT_STARTED);
                else if (strcmp(result, "failed") != 0)
                        executor_verify(e);
                return;
        }
        /* Not our start. Our own stop is marked; any other job that is over when the record is there is somebody's
         * `systemctl stop` or the shutdown. */
        if (!e->stop_requested && e->submitted && exits_present(u->exits, unit)) {
                e->stop_local = true;
                log_executor(e, LOG_INFO, "%s was stopped on this host, not by masterd", e->unit);
        }
}

static void on_unit_removed(const char *unit, void *userdata) {
        struct units *u = userdata;
        struct executor *e = executor_find_unit(u, unit);

        if (!e || !e->submitted)
                return;
        if (e->state <= EXECUTOR_STOPPING)
                take_record(e); /* the file is there before the unit goes, whichever of the two we hear of first */
        if (e->state == EXECUTOR_ENDING)
                executor_event(e, EVENT_UNIT_GONE);
        else if (e->state <= EXECUTOR_STOPPING)
                executor_verify(e); /* a daemon-reload drops units as well, for a moment */
}

static void on_reloaded(void *userdata) {
        if (units_list(userdata) < 0)
                log_oom();
}

static void on_ready(int r, void *userdata) {
        struct units *u = userdata;

        if (r >= 0)
                r = units_list(u);
        if (r < 0) {
                log_error_errno(r, "Cannot follow systemd on the system bus");
                (void) sd_event_exit(u->event, EXIT_FAILURE);
        }
}

static void on_record(const char *unit, struct exit_report *x, void *userdata) {
        struct units *u = userdata;
        struct executor *e = executor_find_unit(u, unit);

        if (!e) {
                if (u->listing || u->discovering > 0)
                        return; /* read by the scan that follows the listing */
                e = executor_new(u, &x->id);
                if (!e) {
                        log_oom();
                        return;
                }
                /* The unit went while nobody watched. */
                e->state = EXECUTOR_ENDING;
                e->submitted = true;
                take_exit(e, x);
                executor_event(e, EVENT_UNIT_GONE);
                return;
        }
        if (!executor_id_equal(&e->id, &x->id)) {
                log_executor(e, LOG_WARNING, "Ignoring the exit record of %s, which is of another job of that number", unit);
                return;
        }
        if (e->has_exit)
                return;
        take_exit(e, x);
        executor_event(e, EVENT_RECORD);
}

/* ---- registration and the rest -------------------------------------------------------------------------------------- */

static const enum unit_state reported_states[_EXECUTOR_STATE_MAX] = {
        [EXECUTOR_PREPARING] = UNIT_STARTING,
        [EXECUTOR_STARTING] = UNIT_STARTING,
        [EXECUTOR_RUNNING] = UNIT_RUNNING,
        [EXECUTOR_STOPPING] = UNIT_STOPPING,
};

int units_append(struct units *u, sd_bus_message *m) {
        struct executor *e, *next;
        int r = sd_bus_message_open_container(m, 'a', "((ayusuu)saytb)");

        if (r < 0)
                return r;
        HASH_ITER(hh, u->executors, e, next)
                if (!e->has_exit && e->state <= EXECUTOR_STOPPING) {
                        const struct unit_report x = { .id = e->id, .state = reported_states[e->state],
                                                       .invocation = e->invocation, .started_real = e->started_real,
                                                       .stop_requested = e->stop_requested };
                        r = unit_report_append(m, &x);
                        if (r < 0)
                                return r;
                }
        if ((r = sd_bus_message_close_container(m)) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "((ayusuu)ayssibbttttttts)")) < 0)
                return r;
        HASH_ITER(hh, u->executors, e, next)
                if (e->has_exit) {
                        r = exit_report_append(m, &e->exit);
                        if (r < 0)
                                return r;
                }
        return sd_bus_message_close_container(m);
}

int units_find(struct units *u, const char *unit, struct unit_facts *ret) {
        struct executor *e = executor_find_unit(u, unit);

        if (!e || e->state >= EXECUTOR_ENDED)
                return -ENOENT;
        *ret = (struct unit_facts){ .id = e->id, .uid = e->uid, .kind = e->kind, .ack = e->ack, .pipe_size = e->pipe_size,
                                    .state = e->state, .started_real = e->started_real, .invocation = e->invocation };
        return 0;
}

int units_visit(struct units *u, units_visitor f, void *userdata) {
        struct executor *e, *next;
        int r;

        HASH_ITER(hh, u->executors, e, next)
                if (e->state <= EXECUTOR_ENDING) {
                        struct unit_facts facts;
                        r = units_find(u, e->unit, &facts);
                        if (r >= 0)
                                r = f(e->unit, &facts, userdata);
                        if (r < 0)
                                return r;
                }
        return 0;
}

size_t units_count(const struct units *u) {
        return HASH_COUNT(u->executors);
}

int units_new(sd_bus *bus, struct worker *worker, const struct units_options *options, const struct units_ops *ops,
              void *userdata, struct units **ret) {
        static const struct systemd_handlers handlers = {
                .ready = on_ready,
                .job_removed = on_job_removed,
                .unit_removed = on_unit_removed,
                .reloaded = on_reloaded,
        };
        _cleanup_(units_free_p) struct units *u = calloc(1, sizeof(*u));
        int r;

        if (!u)
                return -ENOMEM;
        u->event = sd_event_ref(sd_bus_get_event(bus));
        u->bus = sd_bus_ref(bus);
        u->worker = worker;
        u->options = *options;
        u->ops = *ops;
        u->userdata = userdata;
        u->listing = true; /* until systemd is ready */
        r = exits_new(u->event, options->root, on_record, u, &u->exits);
        if (r < 0)
                return log_error_errno(r, "Cannot watch " EXITS_DIR);
        u->listing = false;
        r = systemd_new(bus, &handlers, u, &u->systemd);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(u);
        return 0;
}

void units_free(struct units *u) {
        struct executor *e, *next;
        struct job *j, *next_job;

        if (!u)
                return;
        u->ops = (struct units_ops){ 0 };
        systemd_free(u->systemd);
        HASH_ITER(hh, u->executors, e, next) {
                e->job = NULL; /* the jobs go below, without touching systemd */
                if (e->preparing)
                        preparing_free(e->preparing); /* systemd and the worker are gone: nobody else does */
                executor_free(e);
        }
        HASH_ITER(hh, u->jobs, j, next_job)
                job_free(j);
        exits_free(u->exits);
        sd_bus_unref(u->bus);
        sd_event_unref(u->event);
        free(u);
}
