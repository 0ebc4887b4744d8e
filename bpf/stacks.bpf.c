/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel stacks of one unit's tasks, a line for each: its number, then the names of the functions, which
 * the kernel itself knows best. */
#include "bpf/trace.bpf.h"

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
        BPF_SEQ_PRINTF(seq, "%u", task->pid);
        for (int i = 0; i < TRACE_STACK_MAX; i++) {
                if (size <= i * (long)sizeof(frames[0]))
                        break;
                BPF_SEQ_PRINTF(seq, " %pB", frames[i]);
        }
        BPF_SEQ_PRINTF(seq, "\n");
        return 0;
}
