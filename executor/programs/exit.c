/* SPDX-License-Identifier: Apache-2.0 */
/* primus-exit UNIT: writes the exit record of a unit. It runs as ExecStopPost=+ in the unit's own cgroup
 * after every end, with the environment of the user's processes but as root. Therefore it is linked
 * statically (no LD_PRELOAD reaches it), uses libc alone, and takes the unit's name from its argument.
 * Invariant: a record appears whole or not at all. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "executor/programs/oom.h"

#define EXITS_DIR "/run/primus/exits"
#define PRIVATE_DIR "/run/primus/x"
#define RECORD_MAX 4096

static struct {
        char text[RECORD_MAX];
        size_t size;
} record;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...) {
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(record.text + record.size, sizeof(record.text) - record.size, format, ap);
        va_end(ap);
        if (n > 0 && record.size + (size_t)n < sizeof(record.text))
                record.size += (size_t)n; /* a line that does not fit is left out whole */
        else
                record.text[record.size] = 0;
}

/* The first size - 1 bytes of a file; pseudo files give them in one read. */
static bool read_start(const char *path, char *buf, size_t size) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return false;
        n = read(fd, buf, size - 1);
        (void)close(fd);
        if (n < 0)
                return false;
        buf[n] = 0;
        return true;
}

static const char *const cgroup_roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

static bool read_cgroup(const char *cgroup, const char *file, char *buf, size_t size) {
        char path[1024];

        for (size_t i = 0; i < sizeof(cgroup_roots) / sizeof(cgroup_roots[0]); i++) {
                if (snprintf(path, sizeof(path), "%s%s/%s", cgroup_roots[i], cgroup, file) >=
                    (int)sizeof(path))
                        return false;
                if (read_start(path, buf, size))
                        return true;
        }
        return false;
}

/* The value behind "key " at the start of a line. */
static bool find_value(const char *text, const char *key, uint64_t *ret) {
        size_t l = strlen(key);

        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, key, l) == 0 && line[l] == ' ') {
                        *ret = strtoull(line + l + 1, NULL, 10);
                        return true;
                }
        return false;
}

static uint64_t sum_values(const char *text, const char *key) {
        uint64_t sum = 0;
        size_t l = strlen(key);

        for (const char *p = text; (p = strstr(p, key)); p += l)
                sum += strtoull(p + l, NULL, 10);
        return sum;
}

static void add_environment(const char *key, const char *variable) {
        const char *value = getenv(variable);

        if (!value)
                return;
        for (const char *p = value; *p; p++)
                if (iscntrl((unsigned char)*p))
                        return;
        if (strlen(value) <= 128)
                add("%s=%s\n", key, value);
}

/* What this process has used of the group's CPU time, from the fork on: it is none of the job's. */
static uint64_t own_cpu_usec(void) {
        struct timespec t;

        if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0)
                return 0;
        return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Where the executor has divided its group, systemd has this process in one below it. Whether it has. */
static bool leave_control(char *cgroup) {
        static const char control[] = "/.control";
        size_t l = strlen(cgroup), n = strlen(control);

        if (l <= n || strcmp(cgroup + l - n, control) != 0)
                return false;
        cgroup[l - n] = 0;
        return true;
}

static bool variable_is(const char *name, const char *expected) {
        const char *value = getenv(name);

        return value && strcmp(value, expected) == 0;
}

/* Whether a kill for want of memory may be why the unit has ended: parts of a divided one end without it. */
static bool ends_by_memory(bool divided) {
        return !divided || (variable_is("EXIT_CODE", "killed") && variable_is("EXIT_STATUS", "KILL"));
}

/* The number by which agentd's probes know the group: the inode of its directory. */
static void add_id(const char *cgroup) {
        char path[1024];
        struct stat st;

        for (size_t i = 0; i < sizeof(cgroup_roots) / sizeof(cgroup_roots[0]); i++)
                if (snprintf(path, sizeof(path), "%s%s/cgroup.procs", cgroup_roots[i], cgroup) <
                            (int)sizeof(path) &&
                    access(path, F_OK) >= 0) {
                        *strrchr(path, '/') = 0;
                        if (stat(path, &st) >= 0)
                                add("CGROUP=%" PRIu64 "\n", (uint64_t)st.st_ino);
                        return;
                }
}

static void add_accounting(void) {
        char cgroup[1024], text[8192], *p, *end;
        uint64_t v, own;
        bool divided;

        if (!read_start("/proc/self/cgroup", text, sizeof(text)))
                return;
        p = strstr(text, "0::/");
        if (!p || (p != text && p[-1] != '\n'))
                return;
        p += 3;
        end = strchr(p, '\n');
        if (!end || end - p >= (ptrdiff_t)sizeof(cgroup))
                return;
        memcpy(cgroup, p, (size_t)(end - p));
        cgroup[end - p] = 0;
        divided = leave_control(cgroup);

        add_id(cgroup);
        if (read_cgroup(cgroup, "memory.peak", text, sizeof(text)) && isdigit((unsigned char)*text))
                add("MEMORY_PEAK=%" PRIu64 "\n", (uint64_t)strtoull(text, NULL, 10));
        own = own_cpu_usec();
        if (read_cgroup(cgroup, "cpu.stat", text, sizeof(text)) && find_value(text, "usage_usec", &v))
                add("CPU_USEC=%" PRIu64 "\n", v > own ? v - own : 0);
        if (read_cgroup(cgroup, "io.stat", text, sizeof(text))) {
                add("IO_READ=%" PRIu64 "\n", sum_values(text, " rbytes="));
                add("IO_WRITE=%" PRIu64 "\n", sum_values(text, " wbytes="));
        }
        if (ends_by_memory(divided) && read_cgroup(cgroup, "memory.events", text, sizeof(text)) &&
            find_value(text, "oom_kill", &v))
                add("OOM_KILLS=%" PRIu64 "\n", v);
}

/* Which process, and at whose limit. */
static void add_oom(const char *unit) {
        struct oom oom;

        if (!variable_is("SERVICE_RESULT", "oom-kill") || !oom_find(unit, &oom))
                return;
        add("OOM_TASK=%s\n", oom.task);
        add("OOM_PID=%" PRIu32 "\n", oom.pid);
        add("OOM_HELD=%" PRIu64 "\n", oom.held);
        add("OOM_AT=%s\n", oom_at_to_string(oom.at));
}

static void add_times(const char *unit) {
        char path[512];
        struct timespec now;
        struct stat st;

        /* systemd writes this link just before it starts the unit's first process; the private directory is
         * made a moment earlier, and both stay until the unit is gone. */
        (void)snprintf(path, sizeof(path), "/run/systemd/units/invocation:%s", unit);
        if (lstat(path, &st) < 0) {
                (void)snprintf(path, sizeof(path), PRIVATE_DIR "/%s/env", unit);
                if (lstat(path, &st) < 0)
                        st.st_mtim = (struct timespec){ 0 };
        }
        if (st.st_mtim.tv_sec > 0)
                add("STARTED=%" PRIu64 "\n",
                    (uint64_t)st.st_mtim.tv_sec * 1000000 + (uint64_t)st.st_mtim.tv_nsec / 1000);
        clock_gettime(CLOCK_REALTIME, &now);
        add("ENDED=%" PRIu64 "\n", (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
}

/* order: agentd left its mark before it stopped the unit. local: the end looks like `systemctl stop`:
 * SIGTERM, and systemd calls that a success. agentd, where it runs, corrects this by whether there was a stop
 * job; a program that catches SIGTERM and returns 0 can be told only by that. */
static void add_stop(const char *unit) {
        char path[512];

        (void)snprintf(path, sizeof(path), PRIVATE_DIR "/%s/stop", unit);
        if (access(path, F_OK) >= 0)
                add("STOP=order\n");
        else if (variable_is("SERVICE_RESULT", "success") && variable_is("EXIT_CODE", "killed") &&
                 variable_is("EXIT_STATUS", "TERM"))
                add("STOP=local\n");
}

static bool write_record(const char *unit) {
        char temporary[512], final[512];
        bool good;
        int fd;

        (void)snprintf(temporary, sizeof(temporary), EXITS_DIR "/.%s.tmp", unit);
        (void)snprintf(final, sizeof(final), EXITS_DIR "/%s", unit);
        fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                  0640); /* of the directory's group: agentd reads it */
        if (fd < 0)
                return false;
        good = write(fd, record.text, record.size) == (ssize_t)record.size;
        if (close(fd) < 0)
                good = false;
        return good && rename(temporary, final) >= 0;
}

int main(int argc, char **argv) {
        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                puts("primus-exit UNIT\n\nWrites the exit record of a unit; run by systemd when an executor "
                     "has ended.");
                return EXIT_SUCCESS;
        }
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("primus-exit " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc != 2 || !*argv[1] || strlen(argv[1]) > 255 || argv[1][0] == '.' || strchr(argv[1], '/')) {
                fprintf(stderr, "primus-exit: expected one unit name\n");
                return EXIT_FAILURE;
        }
        if (!getenv("PRIMUS_JOB_UID"))
                return EXIT_SUCCESS; /* not an executor: the drop-in applies to every primus-NAME.service */
        (void)signal(SIGTERM, SIG_IGN); /* a stop that comes while the unit ends */
        add_environment("JOB_UID", "PRIMUS_JOB_UID");
        add_environment("JOB", "PRIMUS_JOB");
        add_environment("ROLE", "PRIMUS_ROLE");
        add_environment("INDEX", "PRIMUS_INDEX");
        add_environment("ATTEMPT", "PRIMUS_ATTEMPT");
        add_environment("INVOCATION", "INVOCATION_ID");
        add_environment("RESULT", "SERVICE_RESULT");
        add_environment("CODE", "EXIT_CODE");
        add_environment("STATUS", "EXIT_STATUS");
        add_times(argv[1]);
        add_accounting();
        add_stop(argv[1]);
        add_oom(argv[1]);
        if (!write_record(argv[1])) {
                fprintf(stderr, "primus-exit: cannot write the exit record of %s in " EXITS_DIR ": %s\n",
                        argv[1], strerror(errno));
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
