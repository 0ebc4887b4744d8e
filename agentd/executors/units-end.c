/* SPDX-License-Identifier: Apache-2.0 */
/* How an executor ended: its record, or what can be found out where there is none. Invariant: every executor
 * that systemd has taken gets exactly one exit report. */
#include <pwd.h>
#include <signal.h>
#include <string.h>

#include "agentd/executors/units-internal.h"
#include "agentd/unit/exit-explain.h"

/* What systemd calls a success or not is one thing, what it means for a trainer another. */
static void judge_end(struct executor *e) {
        struct exit_report *x = &e->exit;

        x->stop_requested |= e->stop_requested;
        if (e->watched)
                x->stop_local = e->stop_local; /* we saw every job of the unit; primus-exit can only guess */
        else
                x->stop_local |= e->stop_local;
        if (x->stop_requested)
                x->stop_local = false;
        if (x->stop_requested && executor_overdue(e)) { /* as systemd says of those that it stops for it */
                x->stop_requested = false;
                strcpy(x->result, "timeout");
        }
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

void executor_remove_private(struct executor *e) {
        starter_tell(e->units->systemd, "RemovePrivate", "s", e->unit);
}

struct exit_report executor_blank_report(const struct executor *e) {
        return (struct exit_report){ .id = e->id,
                                     .invocation = e->invocation,
                                     .started_real = e->started_real,
                                     .ended_real = now_real(),
                                     .memory_peak = UINT64_MAX,
                                     .cpu_usec = UINT64_MAX,
                                     .io_read = UINT64_MAX,
                                     .io_write = UINT64_MAX };
}

/* The end of a unit that is gone and left no record. A start job that was canceled ran nothing; and what we
 * were told to stop, and is gone, was stopped: the last SIGKILL took primus-exit as well. */
static void own_verdict(struct executor *e) {
        e->exit = executor_blank_report(e);
        e->has_exit = true;
        if (e->canceled)
                strcpy(e->exit.result, "canceled");
        else if (e->stop_requested) {
                strcpy(e->exit.result, "signal");
                strcpy(e->exit.code, "killed");
                e->exit.status = SIGKILL;
        } else
                strcpy(e->exit.result, "no-record");
}

static void tell_end(struct executor *e) {
        struct units *u = e->units;

        e->told = u->ready && u->ops.exited && u->ops.exited(&e->exit, u->userdata) >= 0;
}

void units_registered(struct units *u) {
        struct executor *e, *next;

        HASH_ITER (hh, u->executors, e, next)
                if (e->state == EXECUTOR_ENDED && !e->told)
                        tell_end(e);
        ready_tell_all(u);
        units_tell_stuck(u);
}

void executor_report(struct executor *e) {
        struct units *u = e->units;
        char *detail;

        if (!e->has_exit)
                own_verdict(e);
        judge_end(e);
        if (u->ops.account)
                u->ops.account(&e->exit, u->userdata);
        detail = exit_explain(&e->exit, u->options.node, e->command, e->directory, e->uid);
        if (detail) {
                free(e->exit.detail);
                e->exit.detail = detail;
        }
        detail = devices_blame(e, e->exit.detail ?: "");
        if (detail) {
                free(e->exit.detail);
                e->exit.detail = detail;
        }
        executor_answer_running(e); /* it was started, however short */
        if (!e->has_verdict)        /* else it is how this end is found again */
                executor_remove_private(e);
        sd_event_source_disable_unref(TAKE_PTR(e->timer));
        sd_event_source_disable_unref(TAKE_PTR(e->kill_timer));
        sd_event_source_disable_unref(TAKE_PTR(e->stuck_timer));
        sd_event_source_disable_unref(TAKE_PTR(e->limit_timer));
        job_leave(e);
        if (u->ops.ended)
                u->ops.ended(&e->id, u->userdata);
        tell_end(e);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);

void executor_arm(struct executor *e, uint64_t usec) {
        int r;

        if (!e->timer)
                r = sd_event_add_time_relative(e->units->event, &e->timer, CLOCK_BOOTTIME, usec, 0, on_timer,
                                               e);
        else if ((r = sd_event_source_set_time_relative(e->timer, usec)) >= 0)
                r = sd_event_source_set_enabled(e->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_oom();
}

/* A unit whose user does not exist can run nothing, not even primus-exit. That is found out afterwards, in
 * the thread: a name service may take its time. */
struct diagnosis {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        uint32_t uid;
        int status; /* of systemd.exec(5); 0: not found out */
};

static void run_diagnosis(void *data) {
        struct diagnosis *d = data;
        struct passwd pw, *found = NULL;
        char buf[4096];

        if (getpwuid_r(d->uid, &pw, buf, sizeof(buf), &found) == 0 && !found)
                d->status = 217;
}

static void on_diagnosed(void *data) {
        struct diagnosis *d = data;
        struct executor *e = executor_find_unit(d->units, d->unit);

        if (e && e->state <= EXECUTOR_STOPPING) {
                if (d->status > 0) {
                        e->exit = executor_blank_report(e);
                        strcpy(e->exit.result, "exit-code");
                        strcpy(e->exit.code, "exited");
                        e->exit.status = d->status;
                        e->has_exit = true;
                }
                executor_event(e, EVENT_UNIT_GONE);
        }
        free(d);
}

static int diagnose(struct executor *e) {
        struct diagnosis *d = calloc(1, sizeof(*d));

        if (!d)
                return -ENOMEM;
        *d = (struct diagnosis){ .units = e->units, .uid = e->uid };
        strcpy(d->unit, e->unit);
        if (worker_submit(e->units->worker, run_diagnosis, on_diagnosed, d) < 0) {
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
        asked_free(v);
        if (!e || !e->submitted || e->state > EXECUTOR_STOPPING)
                return;
        if (there) {
                if (sd_bus_message_is_method_error(reply, NULL))
                        executor_verify(e);
                return;
        }
        executor_take_record(e); /* it may have come since the question was asked */
        if (e->has_exit)
                return;
        if (e->start_failed && diagnose(e) >= 0)
                return; /* EVENT_UNIT_GONE follows */
        if (!e->canceled && !e->stop_requested && executor_ask_verdict(e) >= 0)
                return; /* likewise */
        log_executor(e, e->canceled || e->stop_requested ? LOG_INFO : LOG_WARNING,
                     "%s is gone and left no exit record", e->unit);
        executor_event(e, EVENT_UNIT_GONE);
}

static void verify(struct executor *e) {
        struct asked *v = asked_new(e);

        if (v && systemd_list(e->units->systemd, e->unit, on_verified, v) >= 0)
                return;
        asked_free(v);
        log_oom();
}

/* Moves the report. */
void executor_take_exit(struct executor *e, struct exit_report *x) {
        e->exit = *x;
        e->has_exit = true;
        *x = (struct exit_report){ 0 };
}

void executor_take_record(struct executor *e) {
        struct exit_report x;
        int r;

        if (e->has_exit)
                return;
        r = exits_read(e->units->exits, e->unit, &x);
        if (r < 0)
                return;
        executor_take_exit(e, &x);
        executor_event(e, EVENT_RECORD);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        if (e->state == EXECUTOR_ENDING) {
                executor_event(e, EVENT_UNIT_GONE);
                return 0;
        }
        executor_take_record(e);
        if (e->state <= EXECUTOR_STOPPING)
                verify(e);
        return 0;
}

void executor_verify(struct executor *e) {
        executor_arm(e, VERIFY_USEC);
}

void units_committed(struct units *u, const struct executor_id *id) {
        struct executor *e = executor_find(u, id);

        if (e && e->has_exit)
                executor_event(e, EVENT_COMMITTED);
}
