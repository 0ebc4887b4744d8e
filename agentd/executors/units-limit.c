/* SPDX-License-Identifier: Apache-2.0 */
/* The time that an executor may take to start, and to run. systemd keeps both, but a program whose messages
 * it takes (sd_notify) puts them off as long as it likes with EXTEND_TIMEOUT_USEC=; it cannot put off agentd.
 * Invariant: whoever has a limit and lives has a timer here, or a question to systemd is under way. */
#include <time.h>

#include "agentd/executors/units-internal.h"

/* systemd comes first, where it is left to. */
#define SLACK_USEC (2 * USEC_PER_SEC)
#define AGAIN_USEC (5 * USEC_PER_SEC)
#define OVERDUE_FILE "overdue"

static uint64_t now_monotonic(void) {
        struct timespec t;

        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t limit_of(const struct executor *e) {
        return e->state == EXECUTOR_STARTING  ? e->start_max_usec
               : e->state == EXECUTOR_RUNNING ? e->runtime_max_usec
                                              : 0;
}

static int on_limit(sd_event_source *s, uint64_t usec, void *userdata);

static void arm_limit(struct executor *e, uint64_t usec) {
        int r;

        if (!e->limit_timer)
                r = sd_event_add_time_relative(e->units->event, &e->limit_timer, CLOCK_MONOTONIC, usec, 0,
                                               on_limit, e);
        else if ((r = sd_event_source_set_time_relative(e->limit_timer, usec)) >= 0)
                r = sd_event_source_set_enabled(e->limit_timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_oom();
}

bool executor_overdue(const struct executor *e) {
        return private_has(e->units->options.root, e->unit, OVERDUE_FILE);
}

/* From here on it is stopped like any other, but that its end is called by its cause. */
static void stop_late(struct executor *e) {
        starter_tell(e->units->systemd, "Put", "ssay", e->unit, OVERDUE_FILE, 0);
        log_executor(e, LOG_NOTICE, "Stopping %s: the time limit was over, and it put systemd off", e->unit);
        e->stop_grace = e->grace_usec;
        executor_event(e, EVENT_STOP);
}

/* By the clock that systemd's own timers go by. */
static void on_since(sd_bus_message *reply, void *userdata) {
        struct asked *a = userdata;
        struct executor *e = executor_find_unit(a->units, a->unit);
        uint64_t since = 0, due, limit = e ? limit_of(e) : 0;

        asked_free(a);
        if (limit == 0)
                return;
        if (sd_bus_message_is_method_error(reply, NULL) ||
            sd_bus_message_read(reply, "v", "t", &since) <= 0) {
                arm_limit(e, AGAIN_USEC);
                return;
        }
        if (since == 0) { /* it waits for its turn */
                arm_limit(e, AGAIN_USEC);
                return;
        }
        due = usec_add(usec_add(since, limit), SLACK_USEC);
        if (now_monotonic() < due)
                arm_limit(e, due - now_monotonic());
        else
                stop_late(e);
}

static int on_limit(sd_event_source *s, uint64_t usec, void *userdata) {
        executor_watch_limit(userdata);
        return 0;
}

void executor_watch_limit(struct executor *e) {
        _cleanup_free_ char *path = NULL;
        struct asked *a;

        if (limit_of(e) == 0)
                return;
        a = sd_bus_path_encode("/org/freedesktop/systemd1/unit", e->unit, &path) < 0 ? NULL : asked_new(e);
        if (a && systemd_get(e->units->systemd, path, "Unit",
                             e->state == EXECUTOR_STARTING ? "InactiveExitTimestampMonotonic"
                                                           : "ActiveEnterTimestampMonotonic",
                             on_since, a) >= 0)
                return;
        asked_free(a);
        arm_limit(e, AGAIN_USEC);
}
