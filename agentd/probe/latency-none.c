/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of latency.c where agentd is built without BPF. */
#include <string.h>

#include "agentd/probe/latency.h"

int latency_new(enum latency_kind k, uint64_t slice, char why[static LATENCY_WHY_MAX], struct latency **ret) {
        strcpy(why, "agentd was built without BPF (libbpf, and clang for the target bpf)");
        return -EOPNOTSUPP;
}

void latency_free(struct latency *l) {
}

int latency_add(struct latency *l, uint64_t cgroup_id) {
        return -EOPNOTSUPP;
}

void latency_remove(struct latency *l, uint64_t cgroup_id) {
}

int latency_read(struct latency *l, uint64_t cgroup_id, struct trace_unit *ret) {
        return -EOPNOTSUPP;
}

uint64_t latency_missed(struct latency *l) {
        return 0;
}

char *latency_stacks(uint64_t slice, uint64_t cgroup_id) {
        return NULL;
}
