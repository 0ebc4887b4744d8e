/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of kernel.c where agentd is built without BPF: says so of every program. */
#include <string.h>

#include "agentd/probe/kernel.h"

int kernel_new(struct probe_program programs[static _KERNEL_PROGRAM_MAX], struct kernel **ret) {
        for (size_t i = 0; i < _KERNEL_PROGRAM_MAX; i++) {
                programs[i].up = false;
                strcpy(programs[i].why,
                       "agentd was built without BPF (libbpf, and clang for the target bpf)");
        }
        *ret = NULL;
        return 0;
}

void kernel_free(struct kernel *k) {
}

void kernel_set_slice(struct kernel *k, int slice_fd, uint64_t slice_id,
                      struct probe_program programs[static _KERNEL_PROGRAM_MAX]) {
}

int kernel_scrape(struct kernel *k) {
        return -EOPNOTSUPP;
}

bool kernel_unit(struct kernel *k, uint64_t id, struct probe_unit *ret, bool *ret_fresh) {
        return false;
}

bool kernel_flow(struct kernel *k, uint64_t id, struct probe_flow *ret) {
        return false;
}

void kernel_forget(struct kernel *k, uint64_t id) {
}

void kernel_sweep(struct kernel *k, bool (*known)(uint64_t id, void *userdata), void *userdata) {
}

uint64_t kernel_dropped(struct kernel *k) {
        return 0;
}

int kernel_fd(const struct kernel *k) {
        return -1;
}

int kernel_dispatch(struct kernel *k, probe_event_handler f, void *userdata) {
        return 0;
}
