/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Adds what a task has used to its unit's account when it ends: exact, also for a unit that lives 2 ms, and
 * nothing is done while tasks run, since the kernel counts all of it anyway. */
#include "bpf/probe.bpf.h"

#define SIGNAL_MASK 0x7f

BPF_INLINE void exit_tell(struct task_struct *task, uint64_t unit) {
        uint32_t pid = task->pid;
        uint64_t *victim = bpf_map_lookup_elem(&victims, &pid);
        int signal = task->exit_code & SIGNAL_MASK;
        struct probe_event *e;

        /* Chosen outside of the units, where nobody looks at its end; the number is another's now. */
        if (victim && task->start_boottime > *victim) {
                (void)bpf_map_delete_elem(&victims, &pid);
                victim = 0;
        }
        if (!victim && signal == 0)
                return;
        e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
        if (!e) {
                probe_drop();
                return;
        }
        __builtin_memset(e, 0, sizeof(*e));
        e->kind = victim ? PROBE_OOM_VICTIM : PROBE_KILLED;
        e->pid = pid;
        e->signal = signal;
        e->cgroup_id = unit;
        bpf_probe_read_kernel(e->comm, sizeof(e->comm), task->comm);
        bpf_ringbuf_submit(e, 0);
        if (victim)
                (void)bpf_map_delete_elem(&victims, &pid);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(primus_exits, struct task_struct *task) {
        struct probe_place *s = probe_place();
        struct probe_unit *unit;
        uint64_t id;

        id = account_of(s, task);
        if (id == 0)
                return 0;
        unit = unit_get(id);
        if (!unit)
                return 0;
        __sync_fetch_and_add(&unit->ended.cpu_ns, task->se.sum_exec_runtime);
        __sync_fetch_and_add(&unit->ended.run_delay_ns, task->sched_info.run_delay);
        __sync_fetch_and_add(&unit->ended.read_bytes, task->ioac.rchar);
        __sync_fetch_and_add(&unit->ended.write_bytes, task->ioac.wchar);
        __sync_fetch_and_add(&unit->ended.block_read_bytes, task->ioac.read_bytes);
        __sync_fetch_and_add(&unit->ended.block_write_bytes, task->ioac.write_bytes);
        __sync_fetch_and_add(&unit->exits, 1);
        if (task->pid == task->tgid)
                exit_tell(task, id);
        return 0;
}
