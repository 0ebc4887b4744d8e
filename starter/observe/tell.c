/* SPDX-License-Identifier: Apache-2.0 */
/* A signal for the program of an executor. Invariant: only a process of the unit gets it, and only one that
 * has a handler for it: nothing ends because it was told something. */
#include "starter/observe/tell.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define PROC_TEXT_MAX (64u << 10)

bool signal_allowed(int signal) {
        /* Those below SIGRTMIN are the C library's own. */
        return ((signal >= 1 && signal <= SIGSYS) || (signal >= SIGRTMIN && signal <= SIGRTMAX)) &&
               signal != SIGKILL && signal != SIGSTOP;
}

static char *process_file(const char *proc, pid_t pid, const char *name) {
        char path[128], *text = NULL;

        snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name);
        return read_file(path, PROC_TEXT_MAX, &text, NULL) < 0 ? NULL : text;
}

/* "SigCgt:	0000000000000200" of /proc/PID/status: bit N - 1 is signal N. */
static bool catches(const char *proc, pid_t pid, int signal) {
        _cleanup_free_ char *text = process_file(proc, pid, "status");
        const char *line = text ? strstr(text, "\nSigCgt:") : NULL;

        return line && strtoull(line + strlen("\nSigCgt:"), NULL, 16) >> (signal - 1) & 1;
}

/* Its number may have gone to another process since the list was read. */
static bool is_of(const char *proc, pid_t pid, const char *unit) {
        _cleanup_free_ char *text = process_file(proc, pid, "cgroup");
        size_t n = strlen(unit);

        for (const char *p = text ? strstr(text, unit) : NULL; p; p = strstr(p + n, unit))
                if (p > text && p[-1] == '/' && (p[n] == '\n' || p[n] == '/' || !p[n]))
                        return true;
        return false;
}

bool signal_process(const char *proc, pid_t pid, const char *unit, int signal) {
        _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);

        return fd >= 0 && is_of(proc, pid, unit) && catches(proc, pid, signal) &&
               syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
}
