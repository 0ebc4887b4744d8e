/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on demand: how long what executors do takes, and where their tasks stand in the kernel. In the
 * kernel only between latency_new() and latency_free(); the process's end is the latter, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/trace.h"
#include "lib/base/cleanup.h"

enum latency_kind {
        LATENCY_IO,       /* system calls that move data: all classes */
        LATENCY_RUNQUEUE, /* waits for a processor: TRACE_READ */
        _LATENCY_KIND_MAX,
        _LATENCY_KIND_INVALID = -22
};
const char *latency_kind_to_string(enum latency_kind k); /* "io", "runqueue" */
enum latency_kind latency_kind_from_string(const char *s);
/* "read", "write", ..., "wait"; NULL: there is no such class of that kind. */
const char *latency_class_name(enum latency_kind k, unsigned class);

#define LATENCY_WHY_MAX 160

struct latency;
/* slice: the inode of primus.slice. -EOPNOTSUPP: the kernel refuses, and why says so for people; -ENOMEM. */
int latency_new(enum latency_kind k, uint64_t slice, char why[static LATENCY_WHY_MAX], struct latency **ret);
void latency_free(struct latency *l);
DEFINE_CLEANUP(struct latency *, latency_free)

/* Counts for this control group from now on; -E2BIG: TRACE_UNITS_MAX are. */
int latency_add(struct latency *l, uint64_t cgroup_id);
void latency_remove(struct latency *l, uint64_t cgroup_id);
/* What was counted since it was added. */
int latency_read(struct latency *l, uint64_t cgroup_id, struct trace_unit *ret);
/* Waits that could not be counted; grows. */
uint64_t latency_missed(struct latency *l);

/* A line for each task of the control group: its number, then the kernel's functions, innermost first.
 * Allocated; NULL: the kernel does not let it. May be called in a thread. */
char *latency_stacks(uint64_t slice, uint64_t cgroup_id);
