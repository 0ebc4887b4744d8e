/* SPDX-License-Identifier: Apache-2.0 */
/* A signal for the program of an executor. Invariant: only a process of the unit gets it, and only one that
 * has a handler for it: nothing ends because it was told something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "agentd/unit/units-internal.h"
#include "lib/base/cgroup-unit.h"
#include "lib/base/file.h"

#define PROC_TEXT_MAX (64u << 10)

/* "SigCgt:	0000000000000200" of /proc/PID/status: bit N - 1 is signal N. */
static bool catches(pid_t pid, int signal) {
        _cleanup_free_ char *text = NULL;
        char path[64], *line;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        if (read_file(path, PROC_TEXT_MAX, &text, NULL) < 0)
                return false;
        line = strstr(text, "\nSigCgt:");
        return line && strtoull(line + strlen("\nSigCgt:"), NULL, 16) >> (signal - 1) & 1;
}

/* Its number may have gone to another process since systemd named it. */
static bool is_of(pid_t pid, const char *unit) {
        char found[UNIT_NAME_MAX];

        return cgroup_unit_of(pid, found, sizeof(found)) >= 0 && strcmp(found, unit) == 0;
}

bool process_signal(pid_t pid, const char *unit, int signal) {
        _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);

        return fd >= 0 && is_of(pid, unit) && catches(pid, signal) &&
               syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
}

static void on_processes(sd_bus_message *reply, void *userdata) {
        struct asked *a = userdata;
        struct executor *e = executor_find_unit(a->units, a->unit);
        unsigned told = 0, seen = 0;
        uint32_t pid;
        int r = sd_bus_message_is_method_error(reply, NULL)
                        ? -ESRCH
                        : sd_bus_message_enter_container(reply, 'a', "(sus)");

        while (r >= 0 && (r = sd_bus_message_read(reply, "(sus)", NULL, &pid, NULL)) > 0) {
                seen++;
                told += pid > 1 && process_signal((pid_t)pid, a->unit, a->signal);
        }
        if (e)
                log_executor(e, LOG_INFO, "SIG%s for %s: %u of %u processes catch it",
                             sigabbrev_np(a->signal) ?: "RT", a->unit, told, seen);
        asked_free(a);
}

/* Asks for the executor's processes; handler gets a, which has a signal or who asked. */
static int ask_processes(struct units *u, const struct executor_id *id, const struct asked *what,
                         systemd_reply_handler handler) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct executor *e = executor_find(u, id);
        struct asked *a;
        int r;

        if (!e || !e->started || e->state > EXECUTOR_STOPPING)
                return -ENOENT;
        r = systemd_message(u->systemd, "GetUnitProcesses", &m);
        if (r >= 0)
                r = sd_bus_message_append(m, "s", e->unit);
        if (r < 0)
                return r;
        a = asked_new(e);
        if (!a)
                return -ENOMEM;
        a->signal = what->signal;
        a->processes = what->processes;
        a->userdata = what->userdata;
        r = systemd_call(u->systemd, m, true, handler, a);
        if (r < 0)
                asked_free(a);
        return r;
}

int units_signal(struct units *u, const struct executor_id *id, int signal) {
        struct executor *e = executor_find(u, id);

        if (!e || e->state >= EXECUTOR_STOPPING)
                return -ENOENT;
        return ask_processes(u, id, &(struct asked){ .signal = signal }, on_processes);
}

static void on_list(sd_bus_message *reply, void *userdata) {
        struct asked *a = userdata;
        _cleanup_free_ pid_t *pids = calloc(UNIT_PROCESSES_MAX, sizeof(*pids));
        processes_handler handler = a->processes;
        void *data = a->userdata;
        uint32_t pid;
        size_t n = 0;
        int r = !pids ? -ENOMEM
                : sd_bus_message_is_method_error(reply, NULL)
                        ? -ESRCH
                        : sd_bus_message_enter_container(reply, 'a', "(sus)");

        while (r >= 0 && n < UNIT_PROCESSES_MAX &&
               (r = sd_bus_message_read(reply, "(sus)", NULL, &pid, NULL)) > 0)
                if (pid > 1)
                        pids[n++] = (pid_t)pid;
        asked_free(a);
        handler(MIN(r, 0), pids, n, data);
}

int units_processes(struct units *u, const struct executor_id *id, processes_handler handler,
                    void *userdata) {
        return ask_processes(u, id, &(struct asked){ .processes = handler, .userdata = userdata }, on_list);
}
