/* SPDX-License-Identifier: Apache-2.0 */
/* What a job waits for, as a gang of shapes. Invariant: members of a shape are the waiting executors of its
 * role, by index. */
#include "masterd/queue/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/job/scope.h"
#include "masterd/queue/placement-parts.h"

bool executor_waits(const struct executor *e) {
        return e->state == EXECUTOR_PENDING && !e->restart.timer && !e->gone && scope_may_place(e);
}

static bool waits_with(const struct executor *e, uint64_t memory) {
        return executor_memory(e) == memory && executor_waits(e);
}

bool gang_takes(const struct gang_data *g, uint32_t shape, const struct executor *e) {
        return waits_with(e, g->data[shape].memory);
}

/* Enough of the role is up for the next role of an ordered start. */
static bool role_up(const struct role *r) {
        uint32_t up = r->n_succeeded + r->n_failed + r->n_ignored;

        for (uint32_t i = 0; i < r->spec->num; i++)
                up += executor_is_ready(r->executors[i]);
        return up >= r->spec->min_num;
}

/* Bits of the roles whose executors may be placed now. */
static uint64_t open_roles(struct job *j) {
        uint64_t mask = 0;

        if (j->spec->schedule_policy != SCHEDULE_POLICY_ORDER)
                return j->spec->n_roles >= 64 ? UINT64_MAX : (UINT64_C(1) << j->spec->n_roles) - 1;
        for (uint32_t step = 0; step < j->spec->n_order; step++) {
                const struct order_spec *o = j->spec->order + step;
                for (size_t i = 0; i < j->spec->n_roles; i++) {
                        if (strcmp(j->spec->roles[i].name, o->role) != 0)
                                continue;
                        mask |= UINT64_C(1) << i;
                        /* A role that was up once does not hold back the others when one of its executors
                         * restarts. */
                        if (step >= j->order_step) {
                                if (!role_up(j->roles + i))
                                        return mask;
                                j->order_step = step + 1;
                        }
                }
        }
        return mask;
}

void shape_data_done(struct shape_data *d) {
        free(d->allowed);
        free(d->present);
        free(d->excluded);
        for (size_t k = 0; k < d->n_constraints; k++)
                constraint_free(d->constraints[k]);
        free(d->constraints);
        free(d->preferred);
        free(d->amounts);
        *d = (struct shape_data){};
}

void gang_data_done(struct gang_data *g) {
        for (size_t i = 0; i < g->n; i++)
                shape_data_done(g->data + i);
        g->n = 0;
}

/* The first start of a role: minNum of it or none, with the other roles that are open. Afterwards executors
 * come (back) one by one; those beyond minNum when there is room, so that nobody has to wait for them. */
static uint32_t least(const struct job *j, const struct role *r, uint32_t pending) {
        uint32_t there = r->spec->num - r->n_state[EXECUTOR_PENDING],
                 lacking = r->spec->min_num > there ? r->spec->min_num - there : 0;

        if (there == 0 || scope_whole(j, (uint32_t)(r - j->roles)))
                return MIN(lacking, pending);
        return lacking > 0 ? 1 : 0;
}

/* ---- what the configuration asks for ---- */

int shape_amounts(struct manager *m, const struct role_spec *spec, struct sched_amount **ret,
                  uint32_t *ret_n) {
        const struct placement_spec *p = &spec->placement;
        _cleanup_free_ struct sched_amount *amounts = NULL;
        char name[SCHED_CONSUMABLE_MAX + 1];
        int r = 0;

        if (p->n_consumables > 0 && !(amounts = calloc(p->n_consumables, sizeof(*amounts))))
                return -ENOMEM;
        for (size_t i = 0; i < p->n_consumables && r >= 0; i++) {
                r = spec_consumable(p->consumables[i], name, sizeof(name), &amounts[i].n);
                if (r >= 0 && sched_consumable_find(m->placement->sched, name, &amounts[i].index) < 0)
                        r = sched_consumable_set(m->placement->sched, name, 0, &amounts[i].index);
        }
        if (r < 0)
                return r;
        free(*ret);
        *ret = TAKE_PTR(amounts);
        *ret_n = (uint32_t)p->n_consumables;
        return 0;
}

static int add_constraint(struct shape_data *d, const char *text) {
        int r = constraint_parse(text, &d->constraints[d->n_constraints], NULL);

        d->n_constraints += r >= 0;
        return r;
}

static int add_constraints(const struct placement_spec *p, struct sched_shape *s, struct shape_data *d) {
        int r = 0;

        if (p->n_constraints + p->n_prefer + p->rdma == 0)
                return 0;
        d->constraints = calloc(p->n_constraints + p->n_prefer + 1, sizeof(*d->constraints));
        d->preferred = calloc(p->n_prefer + 1, sizeof(*d->preferred));
        if (!d->constraints || !d->preferred)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_constraints && r >= 0; i++)
                r = add_constraint(d, p->constraints[i]);
        if (r >= 0 && p->rdma)
                r = add_constraint(d, RDMA_LABEL);
        for (size_t i = 0; i < p->n_prefer && r >= 0; i++) {
                r = add_constraint(d, p->prefer[i].constraint);
                if (r >= 0)
                        d->preferred[i] = (struct sched_preference){ d->constraints[d->n_constraints - 1],
                                                                     p->prefer[i].weight };
        }
        s->required = (const struct constraint *const *)d->constraints;
        s->n_required = p->n_constraints + p->rdma;
        s->preferred = d->preferred;
        s->n_preferred = p->n_prefer;
        return r;
}

static int add_present(const struct role *r, struct sched_shape *s, struct shape_data *d) {
        d->present = calloc(r->spec->num, sizeof(*d->present));
        if (!d->present)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->spec->num; i++)
                if (executor_state_holds(r->executors[i]->state) && r->executors[i]->node->in_sched)
                        d->present[s->n_present++] = r->executors[i]->node->slot;
        s->present = d->present;
        return 0;
}

static int add_allowed(struct manager *m, const struct role_spec *spec, struct sched_shape *s,
                       struct shape_data *d) {
        if (spec->n_nodes == 0)
                return 0;
        d->allowed = calloc(spec->n_nodes, sizeof(*d->allowed));
        if (!d->allowed)
                return -ENOMEM;
        for (size_t i = 0; i < spec->n_nodes; i++) {
                const struct node *node = nodes_get(&m->nodes, spec->nodes[i]);
                if (node && node->in_sched)
                        d->allowed[s->n_allowed++] = node->slot;
        }
        s->restricted = true;
        s->allowed = d->allowed;
        return 0;
}

/* Whether it matters where executors of roles are that do not wait. */
static bool looks_around(const struct job_spec *s) {
        if (s->whole_hosts || s->topology.mode != TOPOLOGY_ANYWHERE)
                return true;
        for (size_t i = 0; i < s->n_roles; i++)
                if (s->roles[i].placement.n_affinity + s->roles[i].placement.n_anti_affinity > 0)
                        return true;
        return false;
}

int shape_build(struct manager *m, struct job *j, const struct role_spec *spec, struct sched_shape *s,
                struct shape_data *d) {
        const struct placement_spec *p = &spec->placement;
        uint32_t n_amounts = 0;
        int r;

        *s = (struct sched_shape){ .cpu_milli = spec->cpu_milli,
                                   .memory = spec->memory,
                                   .gpus = spec->gpus,
                                   .ports = spec->ports,
                                   .max_per_node = spec->max_per_node,
                                   .per_node = spec->per_node,
                                   .shm = p->shm,
                                   .gpu = { p->gpu_model, p->gpu_memory_mb, p->gpu_mig },
                                   .exclusive_cpus = p->cpu_policy == CPU_EXCLUSIVE,
                                   .numa = (uint8_t)p->numa,
                                   .worst = p->fit == FIT_WORST };
        r = add_constraints(p, s, d);
        if (r >= 0)
                r = shape_amounts(m, spec, &d->amounts, &n_amounts);
        if (r >= 0)
                r = add_allowed(m, spec, s, d);
        if (r >= 0 && j) {
                r = m->up->hosts_excluded(m, j, spec, &d->excluded, &s->n_excluded);
                s->excluded = d->excluded;
        }
        s->amounts = d->amounts;
        s->n_amounts = n_amounts;
        return r;
}

/* pending 0: none waits, and the shape is there for the sake of others. */
static int add_shape(struct manager *m, struct job *j, uint32_t role, uint64_t memory, uint32_t pending,
                     struct gang_data *g) {
        const struct role *r = j->roles + role;
        struct sched_shape *s = g->shapes + g->n;
        struct shape_data *d = g->data + g->n;
        int k = 0;

        *d = (struct shape_data){ .role = role, .memory = memory };
        *s = (struct sched_shape){};
        g->n++;
        if (pending > 0) {
                k = shape_build(m, j, r->spec, s, d);
                s->memory = memory;
                s->min = least(j, r, pending);
                s->max = pending;
        }
        if (k >= 0 && (r->spec->max_per_node > 0 || r->spec->per_node > 0 || looks_around(j->spec)))
                k = add_present(r, s, d);
        return k;
}

/* Bits of the shapes of roles that are named, but of roles that are over. */
static uint64_t shapes_named(const struct job *j, const struct gang_data *g, char *const *names) {
        uint64_t bits = 0;

        for (; *names; names++)
                for (size_t i = 0; i < g->n; i++)
                        if (strcmp(j->roles[g->data[i].role].spec->name, *names) == 0)
                                bits |= UINT64_C(1) << i;
        return bits;
}

static bool is_over(const struct role *r) {
        for (uint32_t i = 0; i < r->spec->num; i++)
                if (!r->executors[i]->gone)
                        return false;
        return true;
}

/* Those of the role that wait and need that much memory. */
static uint32_t waiting(const struct role *r, uint64_t memory) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < r->spec->num; i++)
                n += waits_with(r->executors[i], memory);
        return n;
}

static int add_waiting(struct manager *m, struct job *j, uint32_t role, uint64_t memory,
                       struct gang_data *g) {
        uint32_t pending = waiting(j->roles + role, memory);

        return pending > 0 ? add_shape(m, j, role, memory, pending, g) : 0;
}

/* A shape for each need that its executors have: one, unless some have come to need more memory. What there
 * is no room for waits for the next pass. */
static int add_role(struct manager *m, struct job *j, uint32_t role, struct gang_data *g) {
        const struct role *r = j->roles + role;
        size_t first = g->n, kept = j->spec->n_roles - (looks_around(j->spec) ? 0 : role) - 1;
        int q = add_waiting(m, j, role, r->spec->memory, g);

        for (uint32_t i = 0; q >= 0 && i < r->spec->num; i++) {
                const struct executor *e = r->executors[i];
                bool known = executor_memory(e) == r->spec->memory || !executor_waits(e);
                for (size_t k = first; !known && k < g->n; k++)
                        known = g->data[k].memory == executor_memory(e);
                if (!known && g->n < SCHED_SHAPES_MAX - kept)
                        q = add_waiting(m, j, role, executor_memory(e), g);
        }
        return q;
}

/* The level of that name; without one the nearest; one that masterd.conf does not have (any more): none. */
static uint32_t level_of(const struct manager *m, const char *name) {
        uint32_t i = 0;

        while (name && i < m->conf.placement.n_levels && strcmp(m->conf.placement.levels[i], name) != 0)
                i++;
        return name && i == m->conf.placement.n_levels && strcmp(name, TOPOLOGY_LEVEL_HOST) == 0
                       ? SCHED_LEVEL_NODE
                       : i;
}

static int add_others(struct manager *m, struct job *j, struct gang_data *g) {
        size_t n = g->n;
        int r = 0;

        for (uint32_t i = 0; i < j->spec->n_roles && r >= 0; i++) {
                bool there = false;
                for (size_t k = 0; k < n; k++)
                        there |= g->data[k].role == i;
                if (!there && !is_over(j->roles + i))
                        r = add_shape(m, j, i, j->spec->roles[i].memory, 0, g);
        }
        for (size_t i = 0; i < n && r >= 0; i++) {
                const struct placement_spec *p = &j->roles[g->data[i].role].spec->placement;
                g->shapes[i].near = shapes_named(j, g, p->affinity);
        }
        for (size_t i = 0; i < g->n && r >= 0; i++) {
                const struct placement_spec *p = &j->roles[g->data[i].role].spec->placement;
                g->shapes[i].apart = shapes_named(j, g, p->anti_affinity);
        }
        return r;
}

int gang_build(struct manager *m, struct job *j, struct gang_data *g) {
        uint64_t open = open_roles(j);
        int r = 0;

        gang_data_done(g);
        for (uint32_t i = 0; r >= 0 && i < j->spec->n_roles; i++)
                if (open & (UINT64_C(1) << i))
                        r = add_role(m, j, i, g);
        if (r >= 0 && g->n > 0 && looks_around(j->spec))
                r = add_others(m, j, g);
        g->gang = (struct sched_gang){ .shapes = g->shapes,
                                       .n_shapes = g->n,
                                       .topology = (uint8_t)j->spec->topology.mode,
                                       .level = level_of(m, j->spec->topology.level),
                                       .whole_hosts = j->spec->whole_hosts ? j->number : 0 };
        return r;
}

const char *gang_role(struct job *j, uint32_t shape) {
        uint64_t open = open_roles(j);

        for (uint32_t i = 0; i < j->spec->n_roles; i++) {
                const struct role *r = j->roles + i;
                bool any = false;
                for (uint32_t k = 0; (open & (UINT64_C(1) << i)) && k < r->spec->num; k++)
                        any |= executor_waits(r->executors[k]);
                if (any && shape-- == 0)
                        return r->spec->name;
        }
        return "?";
}
