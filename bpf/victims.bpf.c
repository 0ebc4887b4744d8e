/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which process the kernel has chosen to end for memory. The tracepoint says it by its number up to
 * kernel 6.8 and by the task itself since: two programs, and agentd loads the one that fits. */
#include "bpf/probe.bpf.h"

BPF_INLINE int victim_tell(struct probe_place *s, struct task_struct *task) {
        uint64_t id = unit_of(task->cgroups->dfl_cgrp, s->slice);
        struct probe_event *e;
        struct probe_flow *flow;

        if (id == 0)
                return 0;
        flow = flow_get(id);
        if (flow)
                __sync_fetch_and_add(&flow->oom_kills, 1);
        e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
        if (!e) {
                probe_drop();
                return 0;
        }
        __builtin_memset(e, 0, sizeof(*e));
        e->kind = PROBE_OOM_VICTIM;
        e->pid = task->tgid;
        e->cgroup_id = id;
        bpf_probe_read_kernel(e->comm, sizeof(e->comm), task->comm);
        take_memory(task->mm, &e->anon_pages, &e->file_pages);
        bpf_ringbuf_submit(e, 0);
        return 0;
}

SEC("tp_btf/mark_victim")
int BPF_PROG(primus_victims_task, struct task_struct *task) {
        struct probe_place *s = probe_place();

        return s && s->slice != 0 ? victim_tell(s, task) : 0;
}

/* Who it is shows when it is the one that asked for memory; else when it ends, to exits.bpf.c. */
SEC("tp_btf/mark_victim")
int BPF_PROG(primus_victims_pid, int pid) {
        struct probe_place *s = probe_place();
        struct task_struct *self = (void *)bpf_get_current_task_btf();
        uint32_t key = pid;
        uint64_t now;

        if (!s || s->slice == 0)
                return 0;
        if (self->tgid == pid || self->pid == pid)
                return victim_tell(s, self);
        now = bpf_ktime_get_boot_ns();
        (void)bpf_map_update_elem(&victims, &key, &now, BPF_ANY);
        return 0;
}
