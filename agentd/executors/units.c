/* SPDX-License-Identifier: Apache-2.0 */
/* The executors' life. Invariant: every change of an executor's state goes through executor_event() and the
 * table of executor-state.c; every start_handler is called exactly once. */
#include "agentd/executors/units.h"

#include <string.h>
#include <sys/stat.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/try.h"

/* ---- the set ---- */

struct executor *executor_find_unit(struct units *u, const char *unit) {
        struct executor *e;

        HASH_FIND_STR(u->executors, unit, e);
        return e;
}

struct executor *executor_find(struct units *u, const struct executor_id *id) {
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

struct asked *asked_new(const struct executor *e) {
        struct asked *a = calloc(1, sizeof(*a));

        if (!a)
                return NULL;
        a->units = e->units;
        strcpy(a->unit, e->unit);
        DL_APPEND(e->units->asked, a);
        return a;
}

void asked_free(struct asked *a) {
        if (!a)
                return;
        DL_DELETE(a->units->asked, a);
        free(a);
}

void executor_answer(struct executor *e, const struct start_result *result) {
        struct waiter *w;

        while ((w = e->waiters)) {
                e->waiters = w->next;
                w->handler(result, w->userdata);
                free(w);
        }
}

static void executor_free(struct executor *e) {
        executor_abandon_start(e);
        executor_answer(
                e, &(struct start_result){ .error = LINK_ERROR_START, .message = "the executor is gone" });
        HASH_DEL(e->units->executors, e);
        if (!e->units->closing && e->submitted)
                starter_tell(e->units->systemd, "RemoveFields", "s", e->unit);
        cpus_leave(e);
        job_leave(e);
        sd_event_source_disable_unref(e->timer);
        sd_event_source_disable_unref(e->kill_timer);
        sd_event_source_disable_unref(e->stuck_timer);
        sd_event_source_disable_unref(e->limit_timer);
        free(e->stuck);
        exit_report_done(&e->exit);
        ready_check_free(e->check);
        free(e->start_job);
        free(e->stop_job);
        free(e->gpus);
        free(e->open_gpus);
        free(e->fault);
        free(e->command);
        free(e->directory);
        free(e);
}

/* systemd exports a unit's invocation as a link, for journald; its time is when the unit's first process was
 * started. */
void executor_read_start(struct executor *e) {
        char path[sizeof("/run/systemd/units/invocation:") + UNIT_NAME_MAX], text[SD_ID128_STRING_MAX] = "";
        struct stat st;

        snprintf(path, sizeof(path), "/run/systemd/units/invocation:%s", e->unit);
        if (readlink(path, text, sizeof(text) - 1) == SD_ID128_STRING_MAX - 1)
                (void)sd_id128_from_string(text, &e->invocation);
        if (lstat(path, &st) >= 0)
                e->started_real =
                        (uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec / 1000;
        else
                e->started_real = now_real();
}

void executor_answer_running(struct executor *e) {
        const bool ended = e->has_exit && sd_id128_is_null(e->invocation);

        executor_answer(e,
                        &(struct start_result){ .invocation = ended ? e->exit.invocation : e->invocation,
                                                .started_real = e->started_real > 0 ? e->started_real
                                                                                    : e->exit.started_real });
}

/* ---- the table's actions ---- */

void executor_event(struct executor *e, enum executor_event event) {
        enum executor_state before = e->state;
        int action = executor_step(&e->state, event);

        if (action < 0) {
                log_executor(e, LOG_WARNING, "%s: nothing is defined for event '%s' in state '%s'; ignored",
                             e->unit, executor_event_to_string(event), executor_state_to_string(before));
                return;
        }
        log_executor(e, LOG_DEBUG, "%s: %s -> %s", e->unit, executor_state_to_string(before),
                     executor_state_to_string(e->state));
        switch ((enum executor_action)action) {
        case ACTION_SUBMIT:
                executor_submit(e); /* may end in EVENT_REFUSED and the end of e */
                return;
        case ACTION_ANSWER:
                e->started = true;
                executor_read_start(e);
                executor_answer_running(e);
                ready_watch(e);
                executor_watch_limit(e);
                break;
        case ACTION_STOP:
                executor_stop(e);
                break;
        case ACTION_SETTLE:
                executor_arm(e, SETTLE_USEC);
                break;
        case ACTION_REPORT:
                executor_report(e);
                break;
        case ACTION_FORGET:
                if (before == EXECUTOR_ENDING || e->has_verdict)
                        executor_remove_private(e);
                if (e->units->ops.forgotten)
                        e->units->ops.forgotten(&e->id, e->units->userdata);
                starter_tell(e->units->systemd, "RemoveRecord", "s", e->unit);
                break;
        case ACTION_REFUSE:
                executor_remove_private(e);
                if (e->units->ops.ended)
                        e->units->ops.ended(&e->id, e->units->userdata);
                break;
        case ACTION_NONE:
                break;
        }
        if (e->state == EXECUTOR_GONE)
                executor_free(e);
}

/* ---- what systemd and primus-exit say ---- */

static void on_job_removed(const char *unit, const char *job, const char *result, void *userdata) {
        struct units *u = userdata;
        struct executor *e = executor_find_unit(u, unit);

        if (!e) {
                if (!hooks_job_removed(u->hooks, unit, result) && !job_shm_changed(u, unit, result) &&
                    u->ops.other_job)
                        u->ops.other_job(unit, result, u->userdata);
                return;
        }
        if (e->start_job && strcmp(job, e->start_job) == 0) {
                /* "failed" also ran: its exit record says how it ended. Other results (canceled, dependency):
                 * no process. */
                if (strcmp(result, "done") == 0)
                        executor_event(e, EVENT_STARTED);
                else if (strcmp(result, "failed") == 0)
                        e->start_failed = true;
                else if (strcmp(result, "dependency") == 0)
                        executor_refuse_shm(e);
                else {
                        e->canceled = strcmp(result, "canceled") == 0;
                        e->stop_local |= e->canceled && !e->stop_requested;
                        executor_verify(e);
                }
                return;
        }
        /* Not our start. Our own stop is marked; any other job that is over when the record is there is
         * somebody's `systemctl stop` or the shutdown. */
        if (!e->stop_requested && e->submitted && exits_present(u->exits, unit)) {
                e->stop_local = true;
                log_executor(e, LOG_INFO, "%s was stopped on this host, not by masterd", e->unit);
        }
}

static void on_unit_removed(const char *unit, void *userdata) {
        struct units *u = userdata;
        struct executor *e = executor_find_unit(u, unit);

        if (!e && u->ops.other_removed)
                u->ops.other_removed(unit, u->userdata);
        if (!e || !e->submitted)
                return;
        if (e->state <= EXECUTOR_STOPPING)
                executor_take_record(e); /* the file is there before the unit goes, whichever of the two we
                                   hear of first */
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
                (void)sd_event_exit(u->event, EXIT_FAILURE);
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
                executor_take_exit(e, x);
                executor_event(e, EVENT_UNIT_GONE);
                return;
        }
        if (!executor_id_equal(&e->id, &x->id)) {
                log_executor(e, LOG_WARNING,
                             "Ignoring the exit record of %s, which is of another job of that number", unit);
                return;
        }
        if (e->has_exit)
                return;
        executor_take_exit(e, x);
        executor_event(e, EVENT_RECORD);
}

/* ---- registration and the rest ---- */

static const enum unit_state reported_states[_EXECUTOR_STATE_MAX] = {
        [EXECUTOR_PREPARING] = UNIT_STARTING, [EXECUTOR_STARTING] = UNIT_STARTING,
        [EXECUTOR_RUNNING] = UNIT_RUNNING,    [EXECUTOR_STOPPING] = UNIT_STOPPING,
        [EXECUTOR_ENDING] = UNIT_STOPPING, /* how it ended is judged in a moment */
};

int units_append(struct units *u, sd_bus_message *m) {
        struct executor *e, *next;
        int r = sd_bus_message_open_container(m, 'a', "((ayusuu)saytb)");

        if (r < 0)
                return r;
        HASH_ITER (hh, u->executors, e, next)
                if (e->state <= EXECUTOR_ENDING) {
                        const struct unit_report x = { .id = e->id,
                                                       .state = reported_states[e->state],
                                                       .invocation = e->invocation,
                                                       .started_real = e->started_real,
                                                       .stop_requested = e->stop_requested };
                        r = unit_report_append(m, &x);
                        if (r < 0)
                                return r;
                }
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_open_container(m, 'a', "((ayusuu)ayssibbttttttts)"));
        HASH_ITER (hh, u->executors, e, next)
                if (e->state == EXECUTOR_ENDED) {
                        r = exit_report_append(m, &e->exit);
                        if (r < 0)
                                return r;
                        e->told = true;
                }
        return sd_bus_message_close_container(m);
}

int units_visit_exits(struct units *u, int (*f)(const struct exit_report *x, void *userdata),
                      void *userdata) {
        struct executor *e, *next;

        HASH_ITER (hh, u->executors, e, next) {
                int r = e->has_exit ? f(&e->exit, userdata) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

bool units_known(struct units *u, const char *unit) {
        return executor_find_unit(u, unit) || exits_present(u->exits, unit);
}

int units_find(struct units *u, const char *unit, struct unit_facts *ret) {
        struct executor *e = executor_find_unit(u, unit);

        if (!e || e->state >= EXECUTOR_ENDED)
                return -ENOENT;
        *ret = (struct unit_facts){ .id = e->id,
                                    .uid = e->uid,
                                    .kind = e->kind,
                                    .ack = e->ack,
                                    .pipe_size = e->pipe_size,
                                    .state = e->state,
                                    .started_real = e->started_real,
                                    .invocation = e->invocation,
                                    .frozen = e->frozen,
                                    .gpus = e->gpus };
        return 0;
}

int units_visit(struct units *u, units_visitor f, void *userdata) {
        struct executor *e, *next;

        HASH_ITER (hh, u->executors, e, next)
                if (e->state <= EXECUTOR_ENDING) {
                        struct unit_facts facts;
                        TRY(units_find(u, e->unit, &facts));
                        TRY(f(e->unit, &facts, userdata));
                }
        return 0;
}

struct systemd *units_systemd(struct units *u) {
        return u->systemd;
}

int units_run_hook(struct units *u, const char *name, char *const *env, hook_handler handler,
                   void *userdata) {
        return hooks_run(u->hooks, name, "host", env, 0, handler, userdata);
}

size_t units_count(const struct units *u) {
        return HASH_COUNT(u->executors);
}

int units_new(sd_bus *bus, sd_bus *starter, struct worker *worker, const struct units_options *options,
              const struct units_ops *ops, void *userdata, struct units **ret) {
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
                return log_error_errno(r, "Cannot watch " EXITS_DIR "%s",
                                       r == -EMFILE ? " (is fs.inotify.max_user_instances enough?)" : "");
        u->listing = false;
        TRY(systemd_new(bus, starter, &handlers, u, &u->systemd));
        TRY(hooks_new(u->event, u->systemd, options->hook_usec, &u->hooks));
        *ret = TAKE_PTR(u);
        return 0;
}

void units_free(struct units *u) {
        struct executor *e, *next;
        struct job *j, *next_job;

        if (!u)
                return;
        u->ops = (struct units_ops){ 0 };
        u->closing = true;
        systemd_free(u->systemd);
        hooks_free(u->hooks);
        while (u->asked)
                asked_free(u->asked);
        discoveries_free(u);
        freezings_free(u);
        ready_looks_free(u);
        limitings_free(u);
        HASH_ITER (hh, u->executors, e, next) {
                e->job = NULL; /* the jobs go below, without touching systemd */
                if (e->preparing)
                        executor_drop_start(e); /* systemd and the bundles are gone: nobody else does */
                executor_free(e);
        }
        HASH_ITER (hh, u->jobs, j, next_job)
                job_free(j);
        sd_event_source_disable_unref(u->sweep);
        sd_event_source_disable_unref(u->look);
        free(u->slices);
        exits_free(u->exits);
        sd_bus_unref(u->bus);
        sd_event_unref(u->event);
        free(u);
}
