/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own words about a kill for want of memory, from its log: two lines, such as
 *   oom-kill:constraint=CONSTRAINT_MEMCG,...,oom_memcg=/primus.slice/primus-7.slice/U,task_memcg=/.../U,
 *       task=python3,pid=123,uid=1000
 *   Memory cgroup out of memory: Killed process 123 (python3) total-vm:68828kB, anon-rss:53164kB,
 *       file-rss:5120kB, shmem-rss:0kB, ...
 * Part of primus-exit: libc alone. Invariant: what does not look like that is not guessed at. */
#include "executor/programs/oom.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

#define ACTION_READ_ALL 3
#define LOG_BYTES_MAX (1 << 20)

/* The text behind key on this line, to its end (before one of the characters in stop). */
static bool find_value(const char *line, size_t length, const char *key, const char *stop, char *ret,
                       size_t size) {
        const char *p = memmem(line, length, key, strlen(key));
        size_t n;

        if (!p)
                return false;
        p += strlen(key);
        for (n = 0; p + n < line + length && !strchr(stop, p[n]); n++)
                ;
        if (n == 0 || n >= size)
                return false;
        memcpy(ret, p, n);
        ret[n] = 0;
        return true;
}

/* The part of the path from primus.slice of this host on, or NULL. What is before it is a container's that
 * the host is in: below what a user was given he calls groups as he likes. */
static const char *below_top(const char *path) {
        const char *p = strstr(path, "/primus.slice/"), *user = strstr(path, "/user.slice/");

        return p && (!user || user > p) ? p : NULL;
}

/* Whether the path is of the unit's cgroup or one below it. */
static bool is_of_unit(const char *path, const char *unit) {
        unsigned long job = strncmp(unit, "primus-", 7) == 0 ? strtoul(unit + 7, NULL, 10) : 0;
        const char *p = below_top(path);
        char top[64];
        size_t l;

        snprintf(top, sizeof(top), "/primus.slice/primus-%lu.slice/", job);
        if (!p || strncmp(p, top, strlen(top)) != 0)
                return false;
        p += strlen(top);
        l = strlen(unit);
        return strncmp(p, unit, l) == 0 && (p[l] == 0 || p[l] == '/');
}

static bool is_slice(const char *path) {
        size_t l = strlen(path);

        return l > 6 && strcmp(path + l - 6, ".slice") == 0;
}

static enum oom_at where(const char *line, size_t length, const char *unit) {
        char path[1024];

        if (!memmem(line, length, "constraint=CONSTRAINT_MEMCG", 27))
                return memmem(line, length, "constraint=CONSTRAINT_NONE", 26) ? OOM_AT_HOST : OOM_AT_NODE;
        if (!find_value(line, length, "oom_memcg=", ",", path, sizeof(path)))
                return OOM_AT_UNIT;
        if (is_of_unit(path, unit))
                return OOM_AT_UNIT;
        return is_slice(path) && below_top(path) ? OOM_AT_JOB : OOM_AT_ABOVE;
}

static uint64_t kilobytes(const char *line, size_t length, const char *key) {
        char text[24];

        return find_value(line, length, key, "k", text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

/* Names of processes are the user's. */
static void clean(char *s) {
        for (; *s; s++)
                if (*s < 0x20 || *s > 0x7e)
                        *s = '?';
}

bool oom_parse(const char *log, size_t size, const char *unit, struct oom *ret) {
        const char *end = log + size;
        struct oom found = {};
        bool killed = false;

        for (const char *line = log, *next; line < end; line = next) {
                const char *stop = memchr(line, '\n', (size_t)(end - line));
                size_t length = (size_t)((stop ? stop : end) - line);
                char path[1024], pid[16], key[64];

                next = stop ? stop + 1 : end;
                if (memmem(line, length, "oom-kill:constraint=", 20)) {
                        if (!find_value(line, length, "task_memcg=", ",", path, sizeof(path)) ||
                            !is_of_unit(path, unit) ||
                            !find_value(line, length, ",pid=", ",", pid, sizeof(pid)))
                                continue;
                        found = (struct oom){ .at = where(line, length, unit),
                                              .pid = (uint32_t)strtoul(pid, NULL, 10) };
                        killed = false;
                        if (find_value(line, length, ",task=", ",", found.task, sizeof(found.task)))
                                clean(found.task);
                        continue;
                }
                if (found.pid == 0 || killed)
                        continue;
                snprintf(key, sizeof(key), "Killed process %" PRIu32 " (", found.pid);
                if (!memmem(line, length, key, strlen(key)))
                        continue;
                killed = true;
                found.held =
                        1024 * (kilobytes(line, length, "anon-rss:") + kilobytes(line, length, "file-rss:") +
                                kilobytes(line, length, "shmem-rss:"));
        }
        if (found.pid == 0 || !*found.task)
                return false;
        *ret = found;
        return true;
}

bool oom_find(const char *unit, struct oom *ret) {
        char *log = malloc(LOG_BYTES_MAX);
        int n = log ? klogctl(ACTION_READ_ALL, log, LOG_BYTES_MAX) : -1;
        bool found = n > 0 && oom_parse(log, (size_t)n, unit, ret);

        free(log);
        return found;
}

const char *oom_at_to_string(enum oom_at at) {
        static const char *const words[_OOM_AT_MAX] = { "unit", "job", "above", "host", "node" };

        return at < _OOM_AT_MAX ? words[at] : "unit";
}
