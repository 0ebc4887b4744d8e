/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One pass over all tasks of the host: what those of the units have used so far, and how they stand.
 * Invariant: a task is counted here or by exits.bpf.c and never by both. Whoever is marked as exiting is left
 * to that program, which sees it later: for that moment too little is counted, and never too much. */
#include "bpf/probe.bpf.h"

#define PF_EXITING 0x4
#define STATE_UNINTERRUPTIBLE 0x2
#define STATE_STOPPED 0xc  /* by a signal, by a debugger */
#define STATE_NOLOAD 0x400 /* idle, though it looks uninterruptible */

BPF_INLINE void add_io(struct probe_sums *sums, const struct task_io_accounting *io) {
        sums->read_bytes += io->rchar;
        sums->write_bytes += io->wchar;
        sums->block_read_bytes += io->read_bytes;
        sums->block_write_bytes += io->write_bytes;
}

/* What ended before these programs were there, as far as the kernel keeps it: a process has the input and
 * output of its threads that ended, and of the children that it waited for. */
BPF_INLINE void pass_recover(struct probe_unit *unit, struct task_struct *task) {
        struct signal_struct *of = task->signal;

        if (task->pid != task->tgid)
                return;
        add_io(&unit->ended, &of->ioac);
        if (task->exit_state != 0) /* nobody has waited for it yet */
                add_io(&unit->ended, &task->ioac);
}

BPF_INLINE void pass_begin(struct probe_unit *unit, uint64_t pass) {
        unit->base = unit->ended;
        __builtin_memset(&unit->live, 0, sizeof(unit->live));
        unit->tasks = unit->running = unit->blocked = unit->stopped = 0;
        unit->anon_pages = unit->file_pages = 0;
        unit->idle_ns = UINT64_MAX;
        unit->pass = pass;
}

BPF_INLINE void pass_look(struct probe_unit *unit, struct task_struct *task) {
        unsigned state = task->__state;
        struct task_struct *self = (void *)bpf_get_current_task_btf();
        /* The scheduler's clock cannot be read from here; agentd has come onto its CPU a moment ago. */
        uint64_t now = self->sched_info.last_arrival, then = task->sched_info.last_arrival, idle;

        unit->tasks++;
        if (state == 0)
                unit->running++;
        else if (state & STATE_STOPPED)
                unit->stopped++;
        else if ((state & STATE_UNINTERRUPTIBLE) && !(state & STATE_NOLOAD))
                unit->blocked++;
        idle = task->on_cpu || then > now ? 0 : now - then;
        if (idle < unit->idle_ns)
                unit->idle_ns = idle;
}

/* Once for each process: its threads have one memory. */
BPF_INLINE void pass_memory(struct probe_unit *unit, struct task_struct *task) {
        uint64_t anon, file;

        if (task->pid != task->tgid)
                return;
        take_memory(task->mm, &anon, &file);
        unit->anon_pages += anon;
        unit->file_pages += file;
}

SEC("iter/task")
int primus_tasks(struct bpf_iter__task *ctx) {
        struct task_struct *task = ctx->task;
        struct probe_place *s = probe_place();
        struct probe_state *state = probe_state();
        struct probe_unit *unit;
        uint64_t id;

        if (!task || !state)
                return 0;
        id = account_of(s, task);
        if (id == 0)
                return 0;
        unit = unit_get(id);
        if (!unit)
                return 0;
        if (unit->pass != state->pass)
                pass_begin(unit, state->pass);
        if (s->recover)
                pass_recover(unit, task);
        if (task->exit_state != 0)
                return 0; /* a zombie */
        pass_look(unit, task);
        if (task->flags & PF_EXITING)
                return 0;
        pass_memory(unit, task);
        unit->live.cpu_ns += task->se.sum_exec_runtime;
        unit->live.run_delay_ns += task->sched_info.run_delay;
        add_io(&unit->live, &task->ioac);
        return 0;
}
