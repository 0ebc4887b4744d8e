/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of tracing.c where the starter is built without BPF. */
#include <string.h>

#include "starter/observe/tracing.h"

int tracing_new(enum observe_trace k, uint64_t slice, char why[static OBSERVE_WHY_MAX],
                struct tracing **ret) {
        strcpy(why, "Primus was built without BPF (libbpf, and clang for the target bpf)");
        return -EOPNOTSUPP;
}

void tracing_free(struct tracing *t) {
}

int tracing_settings(const struct tracing *t) {
        return -EBADF;
}

int tracing_latencies(const struct tracing *t) {
        return -EBADF;
}

int tracing_stacks(uint64_t slice, uint64_t cgroup_id) {
        return -EOPNOTSUPP;
}
