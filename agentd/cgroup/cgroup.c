/* SPDX-License-Identifier: Apache-2.0 */
/* The control group of one unit. Invariant: after cgroup_open() a look allocates nothing, and two files stay
 * open for each unit: those that change with every look. The others are opened anew, since the kernel keeps
 * a page of memory for each that is open. */
#include "agentd/cgroup/cgroup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agentd/cgroup/files.h"

/* io.stat has a line of some 100 bytes for each device; more than this and its values stay unknown. */
#define FILE_TEXT_MAX 8192u

enum kept_file {
        FILE_CPU_STAT,
        FILE_MEMORY_CURRENT,
        _FILE_KEPT_MAX
};

struct cgroup {
        int dir;
        uint64_t id;
        unsigned calls;
        bool hasten;
        int files[_FILE_KEPT_MAX];
        uint64_t slow[_TELEMETRY_MAX]; /* what the last slow look found */
};

int cgroup_root(const char *root, char **ret) {
        static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                _cleanup_free_ char *path = NULL, *marker = NULL;

                if (asprintf(&path, "%s%s", root, places[i]) < 0 ||
                    asprintf(&marker, "%s/cgroup.controllers", path) < 0)
                        return -ENOMEM;
                if (access(marker, F_OK) >= 0) {
                        *ret = TAKE_PTR(path);
                        return 0;
                }
        }
        return -ENOENT;
}

int cgroup_open(const char *root, const char *path, struct cgroup **ret) {
        static const char *const names[_FILE_KEPT_MAX] = {
                [FILE_CPU_STAT] = "cpu.stat",
                [FILE_MEMORY_CURRENT] = "memory.current",
        };
        _cleanup_(cgroup_free_p) struct cgroup *c = malloc(sizeof(*c));
        _cleanup_free_ char *full = NULL;
        struct stat st;

        if (!c)
                return -ENOMEM;
        *c = (struct cgroup){ .dir = -EBADF, .hasten = true };
        for (size_t i = 0; i < _FILE_KEPT_MAX; i++)
                c->files[i] = -EBADF;
        telemetry_clear(c->slow);
        if (asprintf(&full, "%s/%s", root, path) < 0)
                return -ENOMEM;
        c->dir = open(full, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (c->dir < 0 || fstat(c->dir, &st) < 0)
                return -errno;
        c->id = st.st_ino;
        for (size_t i = 0; i < _FILE_KEPT_MAX; i++)
                c->files[i] = openat(c->dir, names[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        *ret = TAKE_PTR(c);
        return 0;
}

struct cgroup *cgroup_free(struct cgroup *c) {
        if (!c)
                return NULL;
        for (size_t i = 0; i < _FILE_KEPT_MAX; i++)
                (void)close_fd(c->files[i]);
        (void)close_fd(c->dir);
        free(c);
        return NULL;
}

uint64_t cgroup_id(const struct cgroup *c) {
        return c->id;
}

int cgroup_fd(const struct cgroup *c) {
        return c->dir;
}

void cgroup_hasten(struct cgroup *c) {
        c->hasten = true;
}

/* False: it is not there, cannot be read, or is longer than what is looked at. */
static bool read_open(int fd, char text[static FILE_TEXT_MAX]) {
        ssize_t n = fd < 0 ? -1 : pread(fd, text, FILE_TEXT_MAX, 0);

        if (n < 0 || n == FILE_TEXT_MAX)
                return false;
        text[n] = 0;
        return true;
}

static bool read_named(const struct cgroup *c, const char *name, char text[static FILE_TEXT_MAX]) {
        _cleanup_close_ int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        return read_open(fd, text);
}

static void look_slowly(struct cgroup *c, char text[static FILE_TEXT_MAX]) {
        static const struct {
                const char *name;
                enum telemetry_field field;
        } numbers[] = {
                { "memory.peak", TELEMETRY_MEMORY_PEAK_BYTES },
                { "memory.max", TELEMETRY_MEMORY_LIMIT_BYTES },
                { "memory.swap.current", TELEMETRY_MEMORY_SWAP_BYTES },
                { "pids.current", TELEMETRY_TASKS },
        };
        static const struct {
                const char *name;
                enum telemetry_field some, full; /* _TELEMETRY_MAX: not kept */
        } pressures[] = {
                { "cpu.pressure", TELEMETRY_PRESSURE_CPU_USEC, _TELEMETRY_MAX },
                { "memory.pressure", TELEMETRY_PRESSURE_MEMORY_USEC, TELEMETRY_PRESSURE_MEMORY_FULL_USEC },
                { "io.pressure", TELEMETRY_PRESSURE_IO_USEC, TELEMETRY_PRESSURE_IO_FULL_USEC },
        };
        const struct cgroup_key events[] = {
                { "high", &c->slow[TELEMETRY_MEMORY_HIGH_EVENTS] },
                { "max", &c->slow[TELEMETRY_MEMORY_MAX_EVENTS] },
                { "oom_kill", &c->slow[TELEMETRY_OOM_KILLS] },
                { NULL, NULL },
        };
        const struct cgroup_key stat[] = {
                { "anon", &c->slow[TELEMETRY_MEMORY_ANON_BYTES] },
                { NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                if (read_named(c, numbers[i].name, text))
                        cgroup_parse_number(text, &c->slow[numbers[i].field]);
        for (size_t i = 0; i < ELEMENTSOF(pressures); i++)
                if (read_named(c, pressures[i].name, text))
                        cgroup_parse_pressure(text, &c->slow[pressures[i].some],
                                              pressures[i].full < _TELEMETRY_MAX ? &c->slow[pressures[i].full]
                                                                                 : NULL);
        if (read_named(c, "memory.events", text))
                cgroup_parse_keys(text, events);
        if (read_named(c, "memory.stat", text))
                cgroup_parse_keys(text, stat);
        if (read_named(c, "cpu.max", text))
                cgroup_parse_cpu_max(text, &c->slow[TELEMETRY_CPU_LIMIT_USEC]);
        if (read_named(c, "io.stat", text))
                cgroup_parse_io(text, &c->slow[TELEMETRY_BLOCK_READ_BYTES],
                                &c->slow[TELEMETRY_BLOCK_WRITE_BYTES]);
}

void cgroup_fill(struct cgroup *c, uint64_t values[static _TELEMETRY_MAX]) {
        const struct cgroup_key cpu[] = {
                { "usage_usec", &values[TELEMETRY_CPU_USEC] },
                { "throttled_usec", &values[TELEMETRY_CPU_THROTTLED_USEC] },
                { NULL, NULL },
        };
        char text[FILE_TEXT_MAX];

        /* Units take turns; the first look reads all. */
        if (c->hasten || (c->calls + c->id) % CGROUP_SLOW_CALLS == 0)
                look_slowly(c, text);
        c->hasten = false;
        c->calls++;
        for (size_t i = 0; i < _TELEMETRY_MAX; i++)
                if (c->slow[i] != TELEMETRY_UNKNOWN)
                        values[i] = c->slow[i];
        if (read_open(c->files[FILE_CPU_STAT], text))
                cgroup_parse_keys(text, cpu);
        if (read_open(c->files[FILE_MEMORY_CURRENT], text))
                cgroup_parse_number(text, &values[TELEMETRY_MEMORY_BYTES]);
}
