/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that change while units run. Invariant: a change that some host has no room for changes nothing
 * anywhere. */
#include "masterd/life/limits.h"

#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"

void limits_done(struct limits *l) {
        free(l->changed);
        *l = (struct limits){};
}

static bool other_limits(const struct role_spec *a, const struct role_spec *b) {
        return a->cpu_milli != b->cpu_milli || a->memory != b->memory ||
               a->limits.memory_high != b->limits.memory_high ||
               a->limits.cpu_weight != b->limits.cpu_weight || a->limits.tasks != b->limits.tasks;
}

static int by_node(const void *a, const void *b) {
        const struct executor *x = *(struct executor *const *)a, *y = *(struct executor *const *)b;

        return (x->node > y->node) - (x->node < y->node);
}

/* Whether the host has what its executors would hold more; those that leave keep theirs until they are gone.
 */
static int check_node(struct manager *m, const struct node *node, int64_t cpu_milli, int64_t memory,
                      sd_bus_error *error) {
        char more[FORMAT_SIZE_MAX], left[FORMAT_SIZE_MAX];
        uint64_t free_cpu, free_memory;
        uint32_t gpus;

        placement_free_of(m, node, &free_cpu, &free_memory, &gpus);
        if (cpu_milli > 0 && (uint64_t)cpu_milli > free_cpu)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "%s has %.3g CPUs free, and %.3g more would be needed there; nothing was "
                        "changed",
                        node->name, (double)free_cpu / 1000, (double)cpu_milli / 1000);
        if (memory > 0 && (uint64_t)memory > free_memory)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "%s has %s of memory free, and %s more would be needed there; nothing was "
                        "changed",
                        node->name, format_size(free_memory, left, sizeof(left)),
                        format_size((uint64_t)memory, more, sizeof(more)));
        return 0;
}

int limits_plan(struct manager *m, struct job *j, const struct job_spec *spec, struct limits *ret,
                sd_bus_error *error) {
        _cleanup_(limits_done) struct limits l = {};
        int64_t cpu = 0, memory = 0;
        struct executor *e;
        int r;

        l.changed = calloc(j->n_executors + j->leavers.n, sizeof(*l.changed));
        if (!l.changed)
                return -ENOMEM;
        for (uint32_t i = 0; i < j->n_executors; i++) {
                e = j->executors[i];
                const struct role_spec *after = spec_role(spec, executor_role(e)->name);
                if (after && e->index < after->num && executor_state_holds(e->state) && e->node &&
                    other_limits(executor_role(e), after))
                        l.changed[l.n++] = e;
        }
        qsort(l.changed, l.n, sizeof(*l.changed), by_node);
        for (size_t i = 0; i < l.n; i++) {
                e = l.changed[i];
                const struct role_spec *before = executor_role(e), *after = spec_role(spec, before->name);
                if (e->place.cpus && before->cpu_milli != after->cpu_milli)
                        return sd_bus_error_setf(
                                error, ERROR_REFUSED,
                                "%s/%u has its CPUs for itself (cpuPolicy exclusive): their number cannot "
                                "change while it runs; stop the job, or add a role; nothing was changed",
                                before->name, e->index);
                cpu += (int64_t)after->cpu_milli - (int64_t)before->cpu_milli;
                memory += (int64_t)limits_memory(e, after) - (int64_t)executor_memory(e);
                if (i + 1 < l.n && l.changed[i + 1]->node == e->node)
                        continue;
                r = check_node(m, e->node, cpu, memory, error);
                if (r < 0)
                        return r;
                cpu = memory = 0;
        }
        /* Those that are leaving hold what the configuration says, too: so it is after a restart of the
         * master. */
        DL_FOREACH2 (j->leavers.list, e, leaver.next) {
                const struct role_spec *after = spec_role(spec, e->leaver.role->name);
                if (after && executor_state_holds(e->state) && e->node && other_limits(e->leaver.role, after))
                        l.changed[l.n++] = e;
        }
        for (size_t i = 0; i < l.n; i++)
                placement_suspend_hold(m, l.changed[i]);
        *ret = l;
        l = (struct limits){};
        return 0;
}

void limits_abandon(struct manager *m, struct limits *l) {
        for (size_t i = 0; i < l->n; i++)
                placement_resume_hold(m, l->changed[i]);
        l->n = 0;
}

void limits_apply(struct manager *m, struct job *j, struct limits *l) {
        const struct node *said = NULL;

        j->change.limits_real = MAX(now_real(), j->change.limits_real + 1);
        for (size_t i = 0; i < l->n; i++) {
                struct executor *e = l->changed[i];
                if (e->leaver.leaves)
                        e->leaver.role = spec_role(j->spec, e->leaver.role->name);
                placement_resume_hold(m, e);
                if (!e->leaver.leaves && (e->state == EXECUTOR_RUNNING || e->state == EXECUTOR_STARTING))
                        (void)orders_limits_later(m, e);
                if (!e->leaver.leaves && !e->node->inventory.controllers && e->node != said) {
                        record_event(m, j, "limits-not-enforced", e,
                                     "%s does not enforce limits: its kernel has no cgroup v2 controllers "
                                     "for CPU and "
                                     "memory",
                                     e->node->name);
                        said = e->node;
                }
        }
        l->n = 0;
}

void limits_registered(struct manager *m, struct node *node) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next)
                if ((e->state == EXECUTOR_RUNNING || e->state == EXECUTOR_STARTING) &&
                    e->placed_real < e->job->change.limits_real)
                        (void)orders_limits_later(m, e);
}
