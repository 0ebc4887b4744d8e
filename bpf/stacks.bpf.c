/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel stacks of one unit's tasks, a line for each: its number, then the names of the functions, which
 * the kernel itself knows best. */
#include "bpf/trace.bpf.h"

/* As agentd counts, which reads this: in a container its numbers are others than the kernel's. 0: it has none
 * there. */
BPF_INLINE int number_of(struct task_struct *task) {
        struct task_struct *reader = (void *)bpf_get_current_task_btf();
        unsigned level = BPF_CORE_READ(reader, thread_pid, level);
        struct pid *pid = BPF_CORE_READ(task, thread_pid);
        int number = 0;

        if (!pid || BPF_CORE_READ(pid, level) < level)
                return 0;
        bpf_probe_read_kernel(&number, sizeof(number),
                              (char *)__builtin_preserve_access_index(&pid->numbers) +
                                      (uint64_t)level * bpf_core_type_size(struct upid));
        return number;
}

SEC("iter/task")
int primus_stacks(struct bpf_iter__task *ctx) {
        struct task_struct *task = ctx->task;
        struct trace_settings *s = trace_settings();
        struct seq_file *seq = ctx->meta->seq;
        uint64_t frames[TRACE_STACK_MAX];
        long size;

        if (!task || !s || s->target == 0 || task->exit_state != 0 ||
            unit_of(task->cgroups->dfl_cgrp, s->slice) != s->target)
                return 0;
        __builtin_memset(frames, 0, sizeof(frames));
        size = bpf_get_task_stack((void *)task, frames, sizeof(frames), 0);
        BPF_SEQ_PRINTF(seq, "%d", number_of(task));
        for (int i = 0; i < TRACE_STACK_MAX; i++) {
                if (size <= i * (long)sizeof(frames[0]))
                        break;
                BPF_SEQ_PRINTF(seq, " %pB", frames[i]);
        }
        BPF_SEQ_PRINTF(seq, "\n");
        return 0;
}
