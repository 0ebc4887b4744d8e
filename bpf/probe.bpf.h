/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/* What every program of this folder stands on: the maps, and which unit a task, a socket or a request is of.
 */
#pragma once

#include "bpf/unit.bpf.h"

/* The starter makes them, once for all programs, and puts them in the place of these. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, uint32_t);
        __type(value, struct probe_place);
} place SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, uint32_t);
        __type(value, struct probe_state);
} state SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, PROBE_UNITS_MAX);
        __type(key, uint64_t);
        __type(value, struct probe_unit);
} units SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, PROBE_UNITS_MAX);
        __type(key, uint64_t);
        __type(value, struct probe_flow);
} flows SEC(".maps");

struct { /* the oldest goes where there is no room: those outside of the units are never taken out */
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, PROBE_VICTIMS_MAX);
        __type(key, uint32_t);
        __type(value, uint64_t);
} victims SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, PROBE_EVENTS_SIZE);
} events SEC(".maps");

BPF_INLINE struct probe_place *probe_place(void) {
        uint32_t zero = 0;

        return bpf_map_lookup_elem(&place, &zero);
}

BPF_INLINE struct probe_state *probe_state(void) {
        uint32_t zero = 0;

        return bpf_map_lookup_elem(&state, &zero);
}

BPF_INLINE void probe_drop(void) {
        struct probe_state *s = probe_state();

        if (s)
                __sync_fetch_and_add(&s->dropped, 1);
}

BPF_INLINE struct probe_unit *unit_get(uint64_t id) {
        struct probe_unit *unit = bpf_map_lookup_elem(&units, &id);
        struct probe_unit new = {};

        if (unit)
                return unit;
        new.created_ns = bpf_ktime_get_boot_ns();
        (void)bpf_map_update_elem(&units, &id, &new, BPF_NOEXIST);
        unit = bpf_map_lookup_elem(&units, &id);
        if (!unit)
                probe_drop();
        return unit;
}

BPF_INLINE struct probe_flow *flow_get(uint64_t id) {
        struct probe_flow *flow = bpf_map_lookup_elem(&flows, &id);
        struct probe_flow new = {};

        if (flow)
                return flow;
        new.created_ns = bpf_ktime_get_boot_ns();
        (void)bpf_map_update_elem(&flows, &id, &new, BPF_NOEXIST);
        flow = bpf_map_lookup_elem(&flows, &id);
        if (!flow)
                probe_drop();
        return flow;
}

BPF_INLINE bool is_named(const char *comm, const char *name, int size) {
        for (int i = 0; i < size; i++)
                if (comm[i] != name[i])
                        return 0;
        return 1;
}

/* primus-exit runs in the unit's control group when everything of the unit has ended, to say how it ended; it
 * is none of the job's. systemd calls it by the second name until it has become the program. */
BPF_INLINE bool is_ours(struct task_struct *task) {
        char comm[16];

        if (task->real_cred->uid.val != 0)
                return 0;
        bpf_probe_read_kernel_str(comm, sizeof(comm), task->comm);
        return is_named(comm, "primus-exit", sizeof("primus-exit")) ||
               is_named(comm, "(mus-exit)", sizeof("(mus-exit)"));
}

/* The unit in whose account a task is counted, for both programs that count tasks; 0: in none. */
BPF_INLINE uint64_t account_of(struct probe_place *s, struct task_struct *task) {
        uint64_t id;

        if (!s || s->slice == 0)
                return 0;
        id = unit_of(task->cgroups->dfl_cgrp, s->slice);
        return id != 0 && !is_ours(task) ? id : 0;
}

/* Of one process. A CPU adds what it has counted for itself now and then, so a sum can be below zero. */
BPF_INLINE uint64_t pages(int64_t count) {
        return count > 0 ? (uint64_t)count : 0;
}

/* rss_stat: file, anonymous, swapped, shared pages. */
BPF_INLINE void take_memory(struct mm_struct *mm, uint64_t *ret_anon, uint64_t *ret_file) {
        struct mm_struct___counted *old = (void *)mm;

        *ret_anon = *ret_file = 0;
        if (!mm)
                return;
        /* Asked of a structure that every kernel has: libbpf looks for others in all modules, and that is
         * root's alone. */
        if (bpf_core_field_exists(old->rss_stat.count)) {
                *ret_anon = pages(BPF_CORE_READ(old, rss_stat.count[1].counter));
                *ret_file = pages(BPF_CORE_READ(old, rss_stat.count[0].counter)) +
                            pages(BPF_CORE_READ(old, rss_stat.count[3].counter));
        } else {
                *ret_anon = pages(BPF_CORE_READ(mm, rss_stat[1].count));
                *ret_file = pages(BPF_CORE_READ(mm, rss_stat[0].count)) +
                            pages(BPF_CORE_READ(mm, rss_stat[3].count));
        }
}
