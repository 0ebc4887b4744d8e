/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on demand: how long what executors do takes, and where their tasks stand in the kernel. In the
 * kernel only between tracing_new() and tracing_free(); the process's end is the latter, too. */
#pragma once

#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/observe/observe.h"

struct tracing;
/* slice: the inode of primus.slice, below which alone it looks. -EOPNOTSUPP: the kernel refuses, and why says
 * so for people; -ENOMEM. */
int tracing_new(enum observe_trace k, uint64_t slice, char why[static OBSERVE_WHY_MAX], struct tracing **ret);
void tracing_free(struct tracing *t);
DEFINE_CLEANUP(struct tracing *, tracing_free)
/* The maps, t's: "settings", which is frozen, and "latencies", in which who reads enters whom to count. */
int tracing_settings(const struct tracing *t);
int tracing_latencies(const struct tracing *t);

/* A descriptor from which a line for each task of the control group is read: its number, then the kernel's
 * functions, innermost first. -EOPNOTSUPP: the kernel does not let it. */
int tracing_stacks(uint64_t slice, uint64_t cgroup_id);
