/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of the programs on demand. Invariant: a control group is counted while it has an entry, which is
 * ours to make and to take out. */
#include "agentd/probe/latency.h"

#include <linux/bpf.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "agentd/probe/maps.h"
#include "lib/base/cpulist.h"
#include "lib/base/file.h"

#define CPUS_MAX 8192u
#define TRIES 64u
#define PAUSE_NSEC (1000 * 1000) /* 32 ms together, which an agent can be away */

struct latency {
        int settings, latencies;
        size_t n_cpus;
        struct trace_unit *all; /* one for each CPU */
};

/* For how many processors the kernel has values: those that it could have, up to the last. */
static size_t possible_cpus(void) {
        uint64_t bits[CPUS_MAX / 64] = {};
        _cleanup_free_ char *text = NULL;

        if (read_file("/sys/devices/system/cpu/possible", CPULIST_TEXT_MAX, &text, NULL) < 0 ||
            cpulist_parse(text, bits, ELEMENTSOF(bits)) < 0)
                return 0;
        for (size_t n = CPUS_MAX; n > 0; n--)
                if (bits[(n - 1) / 64] >> ((n - 1) % 64) & 1)
                        return n;
        return 0;
}

int latency_new(int settings_fd, int latencies_fd, struct latency **ret) {
        _cleanup_(latency_free_p) struct latency *l = calloc(1, sizeof(*l));
        struct trace_settings s;
        uint32_t zero = 0;
        int r;

        if (!l) {
                close_fd(settings_fd);
                close_fd(latencies_fd);
                return -ENOMEM;
        }
        l->settings = settings_fd;
        l->latencies = latencies_fd;
        l->n_cpus = possible_cpus();
        if (l->n_cpus == 0)
                return -EOPNOTSUPP;
        l->all = calloc(l->n_cpus, sizeof(*l->all));
        if (!l->all)
                return -ENOMEM;
        r = map_lookup(l->settings, &zero, &s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

void latency_free(struct latency *l) {
        if (!l)
                return;
        close_fd(l->settings);
        close_fd(l->latencies);
        free(l->all);
        free(l);
}

int latency_add(struct latency *l, uint64_t cgroup_id) {
        int r = -ENOMEM;

        memset(l->all, 0, l->n_cpus * sizeof(*l->all));
        /* The kernel keeps a few elements ready and makes more the moment after they are taken: by a worker,
         * which on a busy host has to get a processor first. */
        for (unsigned i = 0; i < TRIES; i++) {
                r = map_update(l->latencies, &cgroup_id, l->all, BPF_NOEXIST);
                if (r != -ENOMEM)
                        break;
                if (i < TRIES / 2)
                        (void)sched_yield();
                else
                        (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NSEC }, NULL);
        }
        return r;
}

void latency_remove(struct latency *l, uint64_t cgroup_id) {
        (void)map_delete(l->latencies, &cgroup_id);
}

static void sum(struct trace_histogram *to, const struct trace_histogram *from) {
        to->count += from->count;
        to->sum_ns += from->sum_ns;
        to->bytes += from->bytes;
        for (size_t i = 0; i < TRACE_BUCKETS; i++)
                to->buckets[i] += from->buckets[i];
}

int latency_read(struct latency *l, uint64_t cgroup_id, struct trace_unit *ret) {
        struct trace_unit all = {};
        int r = map_lookup(l->latencies, &cgroup_id, l->all);

        if (r < 0)
                return r;
        for (size_t cpu = 0; cpu < l->n_cpus; cpu++)
                for (size_t i = 0; i < _TRACE_CLASS_MAX; i++)
                        sum(&all.classes[i], &l->all[cpu].classes[i]);
        *ret = all;
        return 0;
}

uint64_t latency_missed(struct latency *l) {
        struct trace_settings s;
        uint32_t zero = 0;

        return map_lookup(l->settings, &zero, &s) < 0 ? 0 : s.missed;
}
