/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long tasks that could run wait for a processor: from the wake-up, or from being put aside for another,
 * to the switch. */
#include "bpf/trace.bpf.h"

BPF_INLINE void queued(struct task_struct *task) {
        struct trace_settings *s = trace_settings();

        if (s && trace_unit(s, task))
                trace_begin(s, task->pid, TRACE_READ);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(primus_wakeup, struct task_struct *task) {
        queued(task);
        return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(primus_wakeup_new, struct task_struct *task) {
        queued(task);
        return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(primus_switch, bool preempted, struct task_struct *before, struct task_struct *next) {
        uint32_t pid = next->pid;
        struct trace_start *start;
        struct trace_settings *s;
        struct trace_unit *unit;

        if (before->pid != 0 && before->__state == 0)
                queued(before);
        start = bpf_map_lookup_elem(&starts, &pid);
        if (!start || !(s = trace_settings()))
                return 0;
        unit = trace_unit(s, next);
        if (unit)
                trace_count(unit, start, 0);
        (void)bpf_map_delete_elem(&starts, &pid);
        return 0;
}
