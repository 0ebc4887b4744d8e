/* SPDX-License-Identifier: Apache-2.0 */
/* What a job waits for, as a gang of shapes. Invariant: members of a shape are the waiting executors of its
 * role, by index. */
#include "masterd/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "masterd/hosts.h"
#include "masterd/manager.h"

bool executor_waits(const struct executor *e) {
        return e->state == EXECUTOR_PENDING && !e->restart_timer && !e->gone;
}

/* Enough of the role is up for the next role of an ordered start. */
static bool role_up(const struct role *r) {
        return r->n_state[EXECUTOR_RUNNING] + r->n_succeeded + r->n_failed >= r->spec->min_num;
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

void gang_data_done(struct gang_data *g) {
        for (size_t i = 0; i < g->n; i++) {
                free(g->data[i].allowed);
                free(g->data[i].present);
                free(g->data[i].excluded);
        }
        g->n = 0;
}

/* The first start of a role: minNum of it or none, with the other roles that are open. Afterwards executors
 * come (back) one by one. */
static uint32_t least(const struct role *r, uint32_t pending) {
        bool first = r->n_state[EXECUTOR_PENDING] == r->spec->num;

        return first ? MIN(r->spec->min_num, pending) : 1;
}

static int add_shape(struct manager *m, struct job *j, uint32_t role, struct gang_data *g) {
        struct role *r = j->roles + role;
        const struct role_spec *spec = r->spec;
        struct sched_shape *s = g->shapes + g->n;
        struct shape_data *d = g->data + g->n;
        uint32_t pending = 0;
        int k;

        for (uint32_t i = 0; i < spec->num; i++)
                pending += executor_waits(r->executors[i]);
        if (pending == 0)
                return 0;
        *s = (struct sched_shape){ .min = least(r, pending),
                                   .max = pending,
                                   .cpu_milli = spec->cpu_milli,
                                   .memory = spec->memory,
                                   .gpus = spec->gpus,
                                   .ports = spec->ports,
                                   .max_per_node = spec->max_per_node,
                                   .per_node = spec->per_node };
        *d = (struct shape_data){ .role = role };
        g->n++;
        k = hosts_excluded(m, j, spec, &d->excluded, &s->n_excluded);
        if (k < 0)
                return k;
        s->excluded = d->excluded;
        if (spec->n_nodes > 0) {
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
        }
        if (spec->max_per_node > 0 || spec->per_node > 0) {
                d->present = calloc(spec->num, sizeof(*d->present));
                if (!d->present)
                        return -ENOMEM;
                for (uint32_t i = 0; i < spec->num; i++)
                        if (executor_state_holds(r->executors[i]->state))
                                d->present[s->n_present++] = r->executors[i]->node->slot;
                s->present = d->present;
        }
        return 0;
}

int gang_build(struct manager *m, struct job *j, struct gang_data *g) {
        uint64_t open = open_roles(j);
        int r = 0;

        gang_data_done(g);
        for (uint32_t i = 0; r >= 0 && i < j->spec->n_roles; i++)
                if (open & (UINT64_C(1) << i))
                        r = add_shape(m, j, i, g);
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
