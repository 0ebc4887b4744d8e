/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: where it cannot be told how much is left, nothing is refused. */
#include "masterd/core/space.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/core/space-parts.h"

#define LOOK_USEC (200 * USEC_PER_MSEC)

int space_admit_disk(const struct manager *m, uint64_t bytes, sd_bus_error *error) {
        char left[FORMAT_SIZE_MAX], keep[FORMAT_SIZE_MAX];
        struct statvfs v;
        uint64_t available;

        if (m->conf.keep_free == 0 || statvfs(m->conf.state_directory, &v) < 0)
                return 0;
        available = (uint64_t)v.f_bavail * v.f_frsize;
        if (available >= m->conf.keep_free && available - m->conf.keep_free >= bytes)
                return 0;
        return sd_bus_error_setf(
                error, ERROR_REFUSED,
                "The master's disk is nearly full: %s are free in %s, and %s are kept for the jobs that are "
                "there (KeepFree=). An administrator has to make room, or let ended jobs go earlier "
                "(KeepBytes=)",
                format_size(available, left, sizeof(left)), m->conf.state_directory,
                format_size(m->conf.keep_free, keep, sizeof(keep)));
}

/* ---- memory ---- */

/* The whole number in a file of our cgroup; UINT64_MAX: there is none, or no limit. */
static uint64_t read_limit(const char *cgroup, const char *name) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        uint64_t limit;
        size_t size;

        if (asprintf(&path, "/sys/fs/cgroup%s/%s", cgroup, name) < 0) {
                path = NULL;
                return UINT64_MAX;
        }
        if (read_file(path, 64, &text, &size) < 0)
                return UINT64_MAX;
        text[strcspn(text, "\n")] = 0;
        return parse_u64(text, 1, UINT64_MAX, &limit) < 0 ? UINT64_MAX : limit;
}

static uint64_t find_limit(void) {
        _cleanup_free_ char *text = NULL;
        uint64_t high, max;
        size_t size;
        char *cgroup;

        if (read_file("/proc/self/cgroup", 4096, &text, &size) < 0 || !(cgroup = strstr(text, "0::/")))
                return UINT64_MAX;
        cgroup += 3;
        cgroup[strcspn(cgroup, "\n")] = 0;
        high = read_limit(cgroup, "memory.high");
        max = read_limit(cgroup, "memory.max");
        return MIN(high, max);
}

/* Resident, and not of files. */
static uint64_t resident(void) {
        unsigned long long size, all, shared;
        char text[128];
        int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        close_fd(fd);
        if (n <= 0)
                return 0;
        text[n] = 0;
        if (sscanf(text, "%llu %llu %llu", &size, &all, &shared) != 3 || shared > all)
                return 0;
        return (all - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool space_memory_short(struct manager *m) {
        struct space *space = m->space;
        uint64_t now = now_boot(), allowed;
        bool was = space->is_short;

        if (now < space->look_boot)
                return was;
        space->look_boot = usec_add(now, LOOK_USEC);
        if (space->limit == 0)
                space->limit = find_limit();
        if (space->limit == UINT64_MAX)
                return false;
        allowed = space->limit - space->limit / 8;
        space->is_short = resident() > allowed;
        if (space->is_short && malloc_trim(0) > 0) /* perhaps it is only what was freed */
                space->is_short = resident() > allowed;
        if (space->is_short && !was)
                log_warning("Memory is short (MemoryHigh= or MemoryMax= of primus-masterd.service): no new "
                            "jobs and questions are taken until there is more");
        return space->is_short;
}

int space_admit_memory(struct manager *m, sd_bus_error *error) {
        return space_memory_short(m)
                       ? sd_bus_error_set(
                                 error, ERROR_BUSY,
                                 "The master has nearly all the memory that it may have (MemoryHigh= "
                                 "of primus-masterd.service); try again in a moment")
                       : 0;
}
