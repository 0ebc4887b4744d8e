/* SPDX-License-Identifier: Apache-2.0 */
/* The executors' life. Invariant: every change of an executor's state goes through executor_event() and the
 * table of executor-state.c; every start_handler is called exactly once. */
#include "agentd/unit/units.h"

#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "agentd/unit/units-internal.h"

/* ---- the set
 * -------------------------------------------------------------------------------------------------------- */

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

/* ---- stopping
 * ------------------------------------------------------------------------------------------------------- */

/* A call to systemd about a unit, whose executor may be gone when the answer comes. */
struct asked {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        int signal;
};

static struct asked *asked_new(const struct executor *e) {
        struct asked *a = calloc(1, sizeof(*a));

        if (!a)
                return NULL;
        a->units = e->units;
        strcpy(a->unit, e->unit);
        return a;
}

static void begin_grace(struct executor *e) {
        if (e && e->state == EXECUTOR_STOPPING)
                executor_limit_grace(e, e->stop_grace > 0 ? e->stop_grace : KILL_AGAIN_USEC);
}

/* The grace begins when systemd has passed the signal on: with a thousand executors to stop, or a host that
 * is short of CPU, that may be long after it was asked. */
static void on_stop_reply(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        struct asked *a = userdata;

        begin_grace(executor_find_unit(a->units, a->unit));
        free(a);
        /* NoSuchUnit: it ended meanwhile; its record says how. */
        if (error && !sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit"))
                log_warning("systemd did not stop a unit: %s", error->message);
}

static void on_sub_state(sd_bus_message *reply, void *userdata) {
        static const char *const ending[] = { "stop-post",     "final-watchdog", "final-sigterm",
                                              "final-sigkill", "dead",           "failed" };
        struct asked *a = userdata;
        const char *state;
        bool known = !sd_bus_message_is_method_error(reply, NULL) &&
                     sd_bus_message_read(reply, "v", "s", &state) >= 0;
        bool kill = known;

        for (size_t i = 0; kill && i < ELEMENTSOF(ending); i++)
                kill = strcmp(state, ending[i]) != 0;
        if (kill && systemd_kill(a->units->systemd, a->unit, a->signal, on_stop_reply, a) >= 0)
                return;
        if (kill)
                log_oom();
        if (kill || !known)
                begin_grace(executor_find_unit(a->units, a->unit)); /* tried again after it */
        free(a);
}

/* Signals all processes of a unit, but none of one that is past them: that would hit primus-exit. */
static int signal_unit(struct executor *e, int signal) {
        _cleanup_free_ char *path = NULL;
        struct asked *a;
        int r;

        r = sd_bus_path_encode("/org/freedesktop/systemd1/unit", e->unit, &path);
        if (r < 0)
                return r;
        a = asked_new(e);
        if (!a)
                return -ENOMEM;
        a->signal = signal;
        r = systemd_get(e->units->systemd, path, "Unit", "SubState", on_sub_state, a);
        if (r < 0)
                free(a);
        return r;
}

static int on_grace_over(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        if (e->state == EXECUTOR_STOPPING && signal_unit(e, SIGKILL) < 0)
                log_oom();
        return 0;
}

void executor_limit_grace(struct executor *e, uint64_t grace_usec) {
        int r;

        if (!e->kill_timer)
                r = sd_event_add_time_relative(e->units->event, &e->kill_timer, CLOCK_BOOTTIME, grace_usec, 0,
                                               on_grace_over, e);
        else if ((r = sd_event_source_set_time_relative(e->kill_timer, grace_usec)) >= 0)
                r = sd_event_source_set_enabled(e->kill_timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_oom();
}

/* A unit that runs is stopped by a signal to all of its processes, not by StopUnit: that would be a job, of
 * which only so many may be under way, for as long as the grace lasts; a thousand executors are to be told at
 * once. When the main process has ended, systemd ends the unit as it always does. A unit that is only about
 * to start is stopped by a job, against its start job. */
static void stop(struct executor *e) {
        struct units *u = e->units;
        struct asked *a;
        int r;

        e->stop_requested = true;
        r = private_mark_stop(u->options.root, e->unit, "order");
        if (r < 0 && r != -ENOENT)
                log_executor(e, LOG_WARNING, "Cannot mark the stop of %s: %s", e->unit, strerror(-r));
        if (!e->submitted)
                return; /* done when systemd has taken it */
        if (e->started)
                r = signal_unit(e, e->stop_grace > 0 ? SIGTERM : SIGKILL);
        else if (!(a = asked_new(e)))
                r = -ENOMEM;
        else if ((r = systemd_stop(u->systemd, e->unit, on_stop_reply, a)) < 0)
                free(a);
        if (r >= 0)
                return;
        log_oom();
        begin_grace(e);
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
                executor_answer(e, &(struct start_result){ .error = LINK_ERROR_START,
                                                           .message = "stopped before it was started" });
        executor_event(e, EVENT_STOP);
        return 0;
}

unsigned units_stop_partitioned(struct units *u) {
        struct executor *e, *next;
        unsigned n = 0;

        HASH_ITER (hh, u->executors, e, next)
                if (e->on_partition == ON_PARTITION_STOP && e->state <= EXECUTOR_STOPPING) {
                        e->stop_grace = 0;
                        executor_event(e, EVENT_STOP);
                        n++;
                }
        return n;
}

/* ---- ending
 * ---------------------------------------------------------------------------------------------------------
 */

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
        /* SIGTERM, SIGINT, SIGHUP and SIGPIPE are clean ends of a service, but not of a program that nobody
         * stopped. */
        if (strcmp(x->result, "success") == 0 && strcmp(x->code, "killed") == 0 && !x->stop_requested &&
            !x->stop_local)
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
                e->exit = (struct exit_report){ .id = e->id,
                                                .result = "no-record",
                                                .invocation = e->invocation,
                                                .started_real = e->started_real,
                                                .ended_real = now_real(),
                                                .memory_peak = UINT64_MAX,
                                                .cpu_usec = UINT64_MAX,
                                                .io_read = UINT64_MAX,
                                                .io_write = UINT64_MAX };
                e->has_exit = true;
        }
        judge(e);
        detail = exit_explain(&e->exit, u->options.node, e->command, e->directory, e->uid);
        if (detail) {
                free(e->exit.detail);
                e->exit.detail = detail;
        }
        executor_answer_running(e); /* it was started, however short */
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
                r = sd_event_add_time_relative(e->units->event, &e->timer, CLOCK_BOOTTIME, usec, 0, on_timer,
                                               e);
        else if ((r = sd_event_source_set_time_relative(e->timer, usec)) >= 0)
                r = sd_event_source_set_enabled(e->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_oom();
}

/* A unit whose directory or user does not exist can run nothing, not even primus-exit. What was missing is
 * found out afterwards, in the thread: the directory may be on a file system that hangs. */
struct diagnosis {
        struct units *units;
        char unit[UNIT_NAME_MAX], *directory;
        uint32_t uid;
        int status; /* of systemd.exec(5); 0: not found out */
};

static void run_diagnosis(void *data) {
        struct diagnosis *d = data;
        struct passwd pw, *found = NULL;
        char buf[4096];
        struct stat st;

        if (stat(d->directory, &st) < 0 ? errno == ENOENT || errno == ENOTDIR : !S_ISDIR(st.st_mode))
                d->status = 200;
        else if (getpwuid_r(d->uid, &pw, buf, sizeof(buf), &found) == 0 && !found)
                d->status = 217;
}

static void on_diagnosed(void *data) {
        struct diagnosis *d = data;
        struct executor *e = executor_find_unit(d->units, d->unit);

        if (e && e->state <= EXECUTOR_STOPPING) {
                if (d->status > 0) {
                        e->exit = (struct exit_report){ .id = e->id,
                                                        .result = "exit-code",
                                                        .code = "exited",
                                                        .status = d->status,
                                                        .started_real = e->started_real,
                                                        .ended_real = now_real(),
                                                        .memory_peak = UINT64_MAX,
                                                        .cpu_usec = UINT64_MAX,
                                                        .io_read = UINT64_MAX,
                                                        .io_write = UINT64_MAX };
                        e->has_exit = true;
                }
                executor_event(e, EVENT_UNIT_GONE);
        }
        free(d->directory);
        free(d);
}

static int diagnose(struct executor *e) {
        struct diagnosis *d = calloc(1, sizeof(*d));

        if (!d)
                return -ENOMEM;
        *d = (struct diagnosis){ .units = e->units, .uid = e->uid, .directory = strdup(e->directory ?: "/") };
        strcpy(d->unit, e->unit);
        if (!d->directory || worker_submit(e->units->worker, run_diagnosis, on_diagnosed, d) < 0) {
                free(d->directory);
                free(d);
                return -ENOMEM;
        }
        return 0;
}

static void on_verified(sd_bus_message *reply, void *userdata) {
        struct asked *v = userdata;
        struct executor *e = executor_find_unit(v->units, v->unit);
        bool there = sd_bus_message_is_method_error(reply, NULL) || systemd_list_enter(reply) < 0;
        struct systemd_unit row;

        while (!there && systemd_list_next(reply, &row) > 0)
                there = strcmp(row.active_state, "inactive") != 0 && strcmp(row.active_state, "failed") != 0;
        free(v);
        if (!e || there || !e->submitted || e->state > EXECUTOR_STOPPING)
                return;
        if (e->start_failed && diagnose(e) >= 0)
                return; /* EVENT_UNIT_GONE follows */
        log_executor(e, LOG_WARNING, "%s is gone and left no exit record", e->unit);
        executor_event(e, EVENT_UNIT_GONE);
}

static void verify(struct executor *e) {
        struct asked *v = asked_new(e);

        if (v && systemd_list(e->units->systemd, e->unit, on_verified, v) >= 0)
                return;
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

/* ---- the table's actions
 * -------------------------------------------------------------------------------------------- */

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
                (void)exits_delete(e->units->exits, e->unit);
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

/* ---- what systemd and primus-exit say
 * ------------------------------------------------------------------------------- */

static void on_job_removed(const char *unit, const char *job, const char *result, void *userdata) {
        struct units *u = userdata;
        struct executor *e = executor_find_unit(u, unit);

        if (!e)
                return;
        if (e->start_job && strcmp(job, e->start_job) == 0) {
                /* "failed" also ran: its exit record says how it ended. Other results (canceled, dependency):
                 * no process. */
                if (strcmp(result, "done") == 0)
                        executor_event(e, EVENT_STARTED);
                else if (strcmp(result, "failed") == 0)
                        e->start_failed = true;
                else
                        executor_verify(e);
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

        if (!e || !e->submitted)
                return;
        if (e->state <= EXECUTOR_STOPPING)
                take_record(e); /* the file is there before the unit goes, whichever of the two we hear of
                                   first */
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
                take_exit(e, x);
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
        take_exit(e, x);
        executor_event(e, EVENT_RECORD);
}

/* ---- registration and the rest
 * -------------------------------------------------------------------------------------- */

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
        HASH_ITER (hh, u->executors, e, next)
                if (!e->has_exit && e->state <= EXECUTOR_STOPPING) {
                        const struct unit_report x = { .id = e->id,
                                                       .state = reported_states[e->state],
                                                       .invocation = e->invocation,
                                                       .started_real = e->started_real,
                                                       .stop_requested = e->stop_requested };
                        r = unit_report_append(m, &x);
                        if (r < 0)
                                return r;
                }
        if ((r = sd_bus_message_close_container(m)) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "((ayusuu)ayssibbttttttts)")) < 0)
                return r;
        HASH_ITER (hh, u->executors, e, next)
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
        *ret = (struct unit_facts){ .id = e->id,
                                    .uid = e->uid,
                                    .kind = e->kind,
                                    .ack = e->ack,
                                    .pipe_size = e->pipe_size,
                                    .state = e->state,
                                    .started_real = e->started_real,
                                    .invocation = e->invocation };
        return 0;
}

int units_visit(struct units *u, units_visitor f, void *userdata) {
        struct executor *e, *next;
        int r;

        HASH_ITER (hh, u->executors, e, next)
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

int units_new(sd_bus *bus, struct worker *worker, const struct units_options *options,
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
        HASH_ITER (hh, u->executors, e, next) {
                e->job = NULL; /* the jobs go below, without touching systemd */
                if (e->preparing)
                        executor_drop_start(e); /* systemd and the bundles are gone: nobody else does */
                executor_free(e);
        }
        HASH_ITER (hh, u->jobs, j, next_job)
                job_free(j);
        free(u->slices);
        exits_free(u->exits);
        sd_bus_unref(u->bus);
        sd_event_unref(u->event);
        free(u);
}
