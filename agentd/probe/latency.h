/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs on demand have counted: how long what executors do takes, by descriptors of their maps.
 * The programs are the starter's (Trace()), and in the kernel as long as it is asked for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/trace.h"
#include "lib/base/cleanup.h"
#include "lib/observe/observe.h"

/* "read", "write", ..., "wait"; NULL: there is no such class of that kind. */
const char *latency_class_name(enum observe_trace k, unsigned class);

struct latency;
/* The descriptors are taken in any case. -EPERM: the kernel lets only root read; -ENOMEM, others. */
int latency_new(int settings_fd, int latencies_fd, struct latency **ret);
void latency_free(struct latency *l);
DEFINE_CLEANUP(struct latency *, latency_free)

/* Counts for this control group from now on; -E2BIG: TRACE_UNITS_MAX are. */
int latency_add(struct latency *l, uint64_t cgroup_id);
void latency_remove(struct latency *l, uint64_t cgroup_id);
/* What was counted since it was added. */
int latency_read(struct latency *l, uint64_t cgroup_id, struct trace_unit *ret);
/* Waits that could not be counted; grows. */
uint64_t latency_missed(struct latency *l);
