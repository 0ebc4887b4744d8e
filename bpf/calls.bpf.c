/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long system calls take that move data. Attached only while somebody looks: every system call of the
 * host pays for it. */
#include "bpf/trace.bpf.h"

SEC("tp_btf/sys_enter")
int BPF_PROG(primus_call_enter, void *regs, long number) {
        struct trace_settings *s = trace_settings();
        struct task_struct *task;
        uint8_t class;

        /* Cheaper than the question whose it is, and most are none of these. */
        if (!s || number < 0 || number >= (long)TRACE_CALLS_MAX ||
            (class = s->class_of[number & (TRACE_CALLS_MAX - 1)]) == 0)
                return 0;
        task = (void *)bpf_get_current_task_btf();
        if (trace_unit(s, task))
                trace_begin(s, task->pid, class - 1);
        return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(primus_call_exit, void *regs, long result) {
        uint32_t pid = (uint32_t)bpf_get_current_pid_tgid();
        struct trace_start *start = bpf_map_lookup_elem(&starts, &pid);
        struct trace_settings *s;
        struct trace_unit *unit;

        if (!start || !(s = trace_settings()))
                return 0;
        unit = trace_unit(s, (void *)bpf_get_current_task_btf());
        if (unit)
                trace_count(unit, start, result);
        (void)bpf_map_delete_elem(&starts, &pid);
        return 0;
}
