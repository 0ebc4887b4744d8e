/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/* What the programs on demand stand on. A unit is traced while it has an entry in "latencies", so that one
 * lookup is both the filter and the place to count. */
#pragma once

#include "bpf/trace.h"
#include "bpf/unit.bpf.h"

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, uint32_t);
        __type(value, struct trace_settings);
} settings SEC(".maps");

/* Not preallocated: the 64 units of a host with hundreds of CPUs would take 20 MB. agentd adds and removes,
 * the programs never do. */
struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
        __uint(max_entries, TRACE_UNITS_MAX);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __type(key, uint64_t);
        __type(value, struct trace_unit);
} latencies SEC(".maps");

/* Preallocated: it is written while the scheduler holds its locks. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, TRACE_TASKS_MAX);
        __type(key, uint32_t);
        __type(value, struct trace_start);
} starts SEC(".maps");

BPF_INLINE struct trace_settings *trace_settings(void) {
        uint32_t zero = 0;

        return bpf_map_lookup_elem(&settings, &zero);
}

/* NULL: nobody wants to know about this task. */
BPF_INLINE struct trace_unit *trace_unit(struct trace_settings *s, struct task_struct *task) {
        uint64_t id = unit_of(task->cgroups->dfl_cgrp, s->slice);

        return id == 0 ? 0 : bpf_map_lookup_elem(&latencies, &id);
}

BPF_INLINE void trace_begin(struct trace_settings *s, uint32_t pid, uint32_t class) {
        struct trace_start start = { .ns = bpf_ktime_get_ns(), .class = class };

        if (bpf_map_update_elem(&starts, &pid, &start, BPF_ANY) < 0)
                __sync_fetch_and_add(&s->missed, 1);
}

BPF_INLINE uint32_t trace_bucket(uint64_t ns) {
        uint32_t n = 0;

        for (int step = 32; step > 0; step /= 2)
                if (ns >> step) {
                        ns >>= step;
                        n += step;
                }
        return n < TRACE_BUCKETS ? n : TRACE_BUCKETS - 1;
}

/* Each CPU has its own. */
BPF_INLINE void trace_count(struct trace_unit *unit, const struct trace_start *start, long bytes) {
        uint64_t ns = bpf_ktime_get_ns() - start->ns;
        uint32_t class = start->class, bucket = trace_bucket(ns);
        struct trace_histogram *h;

        if (class >= _TRACE_CLASS_MAX || bucket >= TRACE_BUCKETS)
                return;
        h = &unit->classes[class];
        h->count++;
        h->sum_ns += ns;
        if (bytes > 0)
                h->bytes += bytes;
        h->buckets[bucket]++;
}
