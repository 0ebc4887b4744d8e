/* SPDX-License-Identifier: Apache-2.0 */
/* The host's inventory. Invariant: nothing is guessed; what the kernel does not say is 0 or "". */
#include "agentd/device/inventory.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "agentd/device/gpu.h"
#include "agentd/device/locality.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

/* How many numbers are in a list like "0-3,8". */
static uint32_t count_list(const char *s) {
        uint32_t n = 0;
        char *end;

        while (*s >= '0' && *s <= '9') {
                unsigned long first = strtoul(s, &end, 10), last = first;

                if (*end == '-')
                        last = strtoul(end + 1, &end, 10);
                if (last < first || last - first > 65535)
                        return 0;
                n += (uint32_t)(last - first + 1);
                s = *end == ',' ? end + 1 : end;
        }
        return n;
}

static uint32_t read_cpus(const char *root) {
        _cleanup_free_ char *text = NULL;

        return read_file_below(root, "/sys/devices/system/cpu/online", SYSTEM_FILE_MAX, &text) < 0
                       ? 0
                       : count_list(text);
}

static uint64_t read_memory(const char *root) {
        _cleanup_free_ char *text = NULL;
        const char *line;

        if (read_file_below(root, "/proc/meminfo", SYSTEM_FILE_MAX, &text) < 0 ||
            !(line = strstr(text, "MemTotal:")))
                return 0;
        return strtoull(line + strlen("MemTotal:"), NULL, 10) * 1024;
}

static bool read_controllers(const char *root) {
        _cleanup_free_ char *text = NULL;
        bool cpu = false, memory = false;
        char *save;

        if (read_file_below(root, "/sys/fs/cgroup/cgroup.controllers", SYSTEM_FILE_MAX, &text) < 0)
                return false;
        for (char *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
                cpu |= strcmp(w, "cpu") == 0;
                memory |= strcmp(w, "memory") == 0;
        }
        return cpu && memory;
}

static char *read_os(const char *root) {
        _cleanup_free_ char *text = NULL;
        const char *line;
        size_t l;

        if (read_file_below(root, "/etc/os-release", SYSTEM_FILE_MAX, &text) < 0 &&
            read_file_below(root, "/usr/lib/os-release", SYSTEM_FILE_MAX, &text) < 0)
                return strdup("");
        line = strstr(text, "PRETTY_NAME=");
        if (!line || (line != text && line[-1] != '\n'))
                return strdup("");
        line += strlen("PRETTY_NAME=");
        line += *line == '"';
        l = strcspn(line, "\"\n");
        return strndup(line, MIN(l, (size_t)128));
}

int inventory_read_host(const char *root, const struct inventory_limits *limits, struct inventory *ret) {
        struct inventory i = { 0 };
        struct gpu_info *gpus;
        struct utsname u;
        uint64_t memory;
        int r;

        i.gpus = gpus = calloc(LINK_GPUS_MAX, sizeof(*gpus));
        if (!gpus || uname(&u) < 0) {
                free(gpus);
                return -ENOMEM;
        }
        i.hostname = strdup(u.nodename);
        i.kernel = strdup(u.release);
        i.os = read_os(root);
        i.cpus = limits->cpus ?: read_cpus(root);
        memory = read_memory(root);
        memory = memory > limits->memory_reserve ? memory - limits->memory_reserve : 0;
        i.memory = limits->memory ?: memory;
        i.controllers = read_controllers(root);
        r = limits->n_gpus > 0 ? gpus_take(root, limits->gpus, limits->n_gpus, i.gpus, &i.n_gpus)
                               : gpus_find_nvidia(root, i.gpus, &i.n_gpus);
        if (r >= 0 && i.n_gpus == 0)
                r = gpus_find_pci(root, i.gpus, &i.n_gpus);
        if (r >= 0)
                r = gpus_find_amd(root, i.gpus, &i.n_gpus);
        if (r >= 0)
                r = locality_read_numa(root, &i);
        if (r >= 0)
                r = locality_set_labels(root, limits->labels, &i);
        i.shm = locality_read_shm(root);
        for (size_t k = 0; k < i.n_gpus; k++) {
                i.gpus[k].numa = i.gpus[k].pci[0] ? locality_numa_of_pci(root, i.gpus[k].pci, &i) : 0;
                i.gpus[k].memory = i.gpus[k].memory ?: limits->gpu_memory;
        }
        if (r < 0 || !i.hostname || !i.kernel || !i.os) {
                inventory_done(&i);
                return -ENOMEM;
        }
        *ret = i;
        return 0;
}
