/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that do not die. Invariant: one that got SIGKILL and is still there after unkillable_usec is told
 * of, with the processes that are in its way, and again to every master, until it is gone. */
#include <inttypes.h>
#include <string.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/file.h"

#define NAMED_MAX 3u /* processes that are named */

/* "pid 1234 (python3) in D state, wchan nfs_wait_bit_killable", from what the kernel says. */
static void describe_process(uint32_t pid, FILE *f) {
        _cleanup_free_ char *stat = NULL, *wchan = NULL;
        char path[64], name[32] = "?", state = '?';
        const char *open, *close;

        snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
        if (read_file(path, 4096, &stat, NULL) >= 0 && (open = strchr(stat, '(')) &&
            (close = strrchr(stat, ')'))) {
                snprintf(name, sizeof(name), "%.*s", (int)MIN(close - open - 1, 31), open + 1);
                if (close[1] == ' ')
                        state = close[2];
        }
        fprintf(f, "pid %" PRIu32 " (%s) in %c state", pid, name, state);
        snprintf(path, sizeof(path), "/proc/%" PRIu32 "/wchan", pid);
        if (read_file(path, 256, &wchan, NULL) >= 0 && *wchan && strcmp(wchan, "0") != 0)
                fprintf(f, ", wchan %s", wchan);
}

static void tell_stuck(struct executor *e) {
        struct units *u = e->units;

        if (u->ops.unkillable)
                u->ops.unkillable(&e->id, e->stuck, u->userdata);
}

static void on_processes(sd_bus_message *reply, void *userdata) {
        struct asked *a = userdata;
        struct executor *e = executor_find_unit(a->units, a->unit);
        _cleanup_free_ char *text = NULL;
        unsigned n = 0;
        uint32_t pid;
        size_t size;
        FILE *f;

        asked_free(a);
        if (!e || e->state != EXECUTOR_STOPPING || sd_bus_message_is_method_error(reply, NULL) ||
            sd_bus_message_enter_container(reply, 'a', "(sus)") < 0)
                return;
        f = open_memstream(&text, &size);
        if (!f)
                return;
        while (sd_bus_message_read(reply, "(sus)", NULL, &pid, NULL) > 0)
                if (n++ < NAMED_MAX) {
                        fputs(n > 1 ? "; " : "", f);
                        describe_process(pid, f);
                }
        if (n > NAMED_MAX)
                fprintf(f, "; and %u more", n - NAMED_MAX);
        if (fclose(f) != 0 || n == 0)
                return; /* the last one is just going */
        if (!e->stuck || strcmp(e->stuck, text) != 0)
                log_executor(e, LOG_WARNING, "%s does not die: %s", e->unit, text);
        free(e->stuck);
        e->stuck = TAKE_PTR(text);
        tell_stuck(e);
}

static int ask_processes(struct executor *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct asked *a = asked_new(e);
        int r;

        if (!a)
                return -ENOMEM;
        if ((r = systemd_message(e->units->systemd, "GetUnitProcesses", &m)) < 0 ||
            (r = sd_bus_message_append(m, "s", e->unit)) < 0 ||
            (r = systemd_call(e->units->systemd, m, false, on_processes, a)) < 0)
                asked_free(a);
        return r;
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        if (e->state != EXECUTOR_STOPPING)
                return 0;
        if (ask_processes(e) < 0)
                log_oom();
        (void)sd_event_source_set_time_relative(s, e->units->options.unkillable_usec);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

void executor_watch_kill(struct executor *e) {
        if (e->stuck_timer || e->units->options.unkillable_usec == 0)
                return;
        if (sd_event_add_time_relative(e->units->event, &e->stuck_timer, CLOCK_BOOTTIME,
                                       e->units->options.unkillable_usec, 0, on_time, e) < 0)
                log_oom();
}

void units_tell_stuck(struct units *u) {
        struct executor *e, *next;

        HASH_ITER (hh, u->executors, e, next)
                if (e->state == EXECUTOR_STOPPING && e->stuck)
                        tell_stuck(e);
}
