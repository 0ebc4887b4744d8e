/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping an executor: the signals, the grace. Invariant: while an executor is STOPPING and systemd has its
 * unit, either a call to systemd is under way or the grace's timer is set. */
#include <signal.h>
#include <string.h>

#include "agentd/executors/units-internal.h"

static void look_again(struct executor *e, uint64_t usec) {
        if (e && e->state == EXECUTOR_STOPPING)
                executor_limit_grace(e, usec);
}

static uint64_t grace_of(const struct executor *e) {
        return e->stop_grace > 0 ? e->stop_grace : KILL_AGAIN_USEC;
}

/* The grace begins when systemd has passed the signal on: with a thousand executors to stop, or a host that
 * is short of CPU, that may be long after it was asked. */
static void on_stop_reply(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        struct asked *a = userdata;

        look_again(executor_find_unit(a->units, a->unit), a->again_usec);
        if (!error && a->signal != SIGKILL)
                starter_tell(a->units->systemd, "Put", "ssay", a->unit, STOP_TOLD_FILE, 0);
        asked_free(a);
        /* It ended meanwhile; its record says how. */
        if (error && !sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit") &&
            !sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchProcess"))
                log_warning("systemd did not stop a unit: %s", error->message);
}

/* Whom a signal may go to, by the unit's SubState. primus-exit, which runs in the unit when all others have
 * ended, must not get one. Between the question and the kill the unit may go on to that point; SIGKILL
 * therefore goes to the main process first, which primus-exit never is: systemd then tells the others to end,
 * and only who does not is killed with the whole unit, a moment later. */
static const struct {
        const char *state, *term, *kill;
} whom[] = {
        { "start-pre", "all", "all" },    { "start", "all", "main" },       { "running", "all", "main" },
        { "reload", "all", "main" },      { "stop", "all", "all" },         { "stop-watchdog", "all", "all" },
        { "stop-sigterm", "all", "all" }, { "stop-sigkill", "all", "all" },
};

static const char *signal_whom(const char *state, int signal) {
        for (size_t i = 0; i < ELEMENTSOF(whom); i++)
                if (strcmp(whom[i].state, state) == 0)
                        return signal == SIGKILL ? whom[i].kill : whom[i].term;
        return NULL; /* it is past them */
}

static void on_sub_state(sd_bus_message *reply, void *userdata) {
        struct asked *a = userdata;
        struct executor *e = executor_find_unit(a->units, a->unit);
        const char *state, *target;
        int r;

        if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_read(reply, "v", "s", &state) <= 0)
                look_again(e, a->again_usec);
        else if (a->signal == SIGTERM && strcmp(state, "stop-sigterm") == 0)
                look_again(e,
                           a->again_usec); /* systemd has told them; a second time would be a harsher word */
        else if ((target = signal_whom(state, a->signal))) {
                if (strcmp(target, "main") == 0)
                        a->again_usec = KILL_REST_USEC;
                r = systemd_kill(a->units->systemd, a->unit, target, a->signal, on_stop_reply, a);
                if (r >= 0)
                        return;
                log_oom();
                look_again(e, a->again_usec);
        }
        asked_free(a);
}

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
        a->again_usec = grace_of(e);
        if (signal == SIGKILL)
                executor_watch_kill(e);
        r = systemd_get(e->units->systemd, path, "Unit", "SubState", on_sub_state, a);
        if (r < 0)
                asked_free(a);
        return r;
}

static int on_grace_over(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        e->grace_guessed = false; /* too late for another one */
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
static void tell_stopping(struct executor *e) {
        struct units *u = e->units;
        struct asked *a;
        int r;

        executor_thaw(e);
        if (e->started)
                r = signal_unit(e, e->stop_grace > 0 ? SIGTERM : SIGKILL);
        else if (!(a = asked_new(e)))
                r = -ENOMEM;
        else {
                a->again_usec = grace_of(e);
                r = systemd_stop(u->systemd, e->unit, on_stop_reply, a);
                if (r < 0)
                        asked_free(a);
        }
        if (r >= 0)
                return;
        log_oom();
        look_again(e, grace_of(e));
}

void executor_stop(struct executor *e) {
        e->stop_requested = true;
        starter_tell(e->units->systemd, "Put", "ssay", e->unit, "stop", 5, 'o', 'r', 'd', 'e', 'r');
        if (e->submitted) /* else done when systemd has taken it */
                tell_stopping(e);
}

void executor_stop_again(struct executor *e) {
        if (!private_has(e->units->options.root, e->unit, STOP_TOLD_FILE))
                tell_stopping(e);
}

int units_stop(struct units *u, const struct executor_id *id, uint64_t grace_usec, const char *reason) {
        struct executor *e = executor_find(u, id);

        if (!e)
                return -ENOENT;
        log_executor(e, LOG_INFO, "Stopping %s: %s", e->unit, reason);
        if (e->state == EXECUTOR_STOPPING && e->submitted && grace_usec >= e->stop_grace) {
                if (e->grace_guessed && grace_usec > e->stop_grace) {
                        e->stop_grace = grace_usec;
                        executor_limit_grace(e, grace_usec);
                }
                e->grace_guessed = false;
                return 0;
        }
        e->grace_guessed = false;
        e->stop_grace = grace_usec;
        if (e->state == EXECUTOR_PREPARING)
                executor_answer(e, &(struct start_result){ .error = LINK_ERROR_START,
                                                           .message = "stopped before it was started" });
        executor_event(e, EVENT_STOP);
        return 0;
}

static void on_killed_for(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e && !sd_bus_error_has_name(e, "org.freedesktop.systemd1.NoSuchUnit"))
                log_warning("systemd did not kill an executor: %s", e->message);
}

int units_kill_for(struct units *u, const struct executor_id *id, const char *why) {
        struct executor *e = executor_find(u, id);
        char *text;

        if (!e || e->state >= EXECUTOR_ENDED)
                return -ENOENT;
        text = strdup(why);
        if (!text)
                return -ENOMEM;
        free(e->fault);
        e->fault = text;
        log_executor(e, LOG_WARNING, "%s is killed: %s", e->unit, why);
        executor_watch_kill(e);
        return systemd_kill(u->systemd, e->unit, "all", SIGKILL, on_killed_for, NULL);
}

unsigned units_stop_all(struct units *u, uint64_t grace_usec) {
        struct executor *e, *next;
        unsigned n = 0;

        HASH_ITER (hh, u->executors, e, next)
                if (e->state < EXECUTOR_STOPPING) {
                        e->stop_grace = grace_usec;
                        executor_event(e, EVENT_STOP);
                        n++;
                }
        return n;
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
