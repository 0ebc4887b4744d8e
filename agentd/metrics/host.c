/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the host. Invariant: what a file does not say is not shown. */
#include "agentd/metrics/host.h"

#include <string.h>
#include <sys/resource.h>

#include "agentd/cgroup/files.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

#define FILE_MAX (64u << 10)

/* "0.52 " in thousandths; UNKNOWN. Moves *s behind it. */
static uint64_t read_load(const char **s) {
        unsigned long whole, hundredths;
        int n = 0;

        if (sscanf(*s, "%lu.%2lu%n", &whole, &hundredths, &n) != 2 || n == 0)
                return TELEMETRY_UNKNOWN;
        *s += n;
        return whole * 1000 + hundredths * 10;
}

static void add_load(struct exposition *x, const char *root, const char *labels) {
        static const char *const minutes[] = { "minutes=\"1\"", "minutes=\"5\"", "minutes=\"15\"" };
        _cleanup_free_ char *text = NULL;
        const char *s;

        if (read_file_below(root, "/proc/loadavg", FILE_MAX, &text) < 0)
                return;
        s = text;
        for (size_t i = 0; i < ELEMENTSOF(minutes); i++)
                exposition_add(x, METRIC_NODE_LOAD, labels, minutes[i], read_load(&s), SCALE_MILLI);
}

static uint64_t meminfo(const char *text, const char *key) {
        const char *line = strstr(text, key);
        unsigned long long kib;

        return line && sscanf(line + strlen(key), " %llu kB", &kib) == 1 ? kib << 10 : TELEMETRY_UNKNOWN;
}

static void add_memory(struct exposition *x, const char *root, const char *labels) {
        _cleanup_free_ char *text = NULL;

        if (read_file_below(root, "/proc/meminfo", FILE_MAX, &text) < 0)
                return;
        exposition_add(x, METRIC_NODE_MEMORY_TOTAL, labels, "", meminfo(text, "MemTotal:"), SCALE_ONE);
        exposition_add(x, METRIC_NODE_MEMORY_AVAILABLE, labels, "", meminfo(text, "MemAvailable:"),
                       SCALE_ONE);
}

static void add_pressure(struct exposition *x, const char *root, const char *labels) {
        static const struct {
                const char *path, *some, *full; /* full of the CPU is undefined for a host */
        } resources[] = {
                { "/proc/pressure/cpu", "resource=\"cpu\",kind=\"some\"", NULL },
                { "/proc/pressure/memory", "resource=\"memory\",kind=\"some\"",
                  "resource=\"memory\",kind=\"full\"" },
                { "/proc/pressure/io", "resource=\"io\",kind=\"some\"", "resource=\"io\",kind=\"full\"" },
        };

        for (size_t i = 0; i < ELEMENTSOF(resources); i++) {
                uint64_t some = TELEMETRY_UNKNOWN, full = TELEMETRY_UNKNOWN;
                _cleanup_free_ char *text = NULL;

                if (read_file_below(root, resources[i].path, FILE_MAX, &text) < 0)
                        continue;
                cgroup_parse_pressure(text, &some, &full);
                exposition_add(x, METRIC_NODE_PRESSURE_STALL, labels, resources[i].some, some, SCALE_MICRO);
                if (resources[i].full)
                        exposition_add(x, METRIC_NODE_PRESSURE_STALL, labels, resources[i].full, full,
                                       SCALE_MICRO);
        }
}

void host_add(struct exposition *x, const char *root, const char *labels) {
        add_load(x, root, labels);
        add_memory(x, root, labels);
        add_pressure(x, root, labels);
}

static uint64_t usec_of(const struct timeval *t) {
        return (uint64_t)t->tv_sec * USEC_PER_SEC + (uint64_t)t->tv_usec;
}

void host_add_agent(struct exposition *x, const char *root, const char *labels) {
        _cleanup_free_ char *text = NULL;
        unsigned long pages;
        struct rusage u;

        if (getrusage(RUSAGE_SELF, &u) >= 0)
                exposition_add(x, METRIC_AGENT_CPU, labels, "", usec_of(&u.ru_utime) + usec_of(&u.ru_stime),
                               SCALE_MICRO);
        if (read_file_below(root, "/proc/self/statm", FILE_MAX, &text) >= 0 &&
            sscanf(text, "%*u %lu", &pages) == 1)
                exposition_add(x, METRIC_AGENT_MEMORY, labels, "", pages * (uint64_t)sysconf(_SC_PAGESIZE),
                               SCALE_ONE);
}
