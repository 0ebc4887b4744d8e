/* SPDX-License-Identifier: Apache-2.0 */
/* Between jobs and the scheduler. Invariant: what the scheduler holds is exactly what executors in the states
 * PLACED to STOPPING have. */
#include "masterd/placement.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/api/api.h"
#include "masterd/feeding.h"
#include "masterd/hosts.h"
#include "masterd/lifecycle.h"
#include "masterd/manager.h"
#include "masterd/orders.h"
#include "masterd/record.h"
#include "masterd/sched/queue.h"
#include "masterd/sched/sched.h"
#include "masterd/suspension.h"

#define PATIENCE_USEC (600 * USEC_PER_SEC) /* a gang that waited so long is not passed over any more */
#define DEPTH 1000u                        /* jobs tried in one pass */
#define NODE_EXECUTORS_MAX 8192u
#define BLOCKED_MAX 256u
#define BLOCKED_USEC (300 * USEC_PER_SEC)

/* A port that somebody outside of our books uses. */
struct blocked_port {
        uint32_t slot;
        uint16_t port;
        uint64_t until;
};

struct placement {
        struct sched *sched;
        struct queue *queue;
        struct node **nodes; /* by slot; NULL: free */
        size_t n_slots;
        struct blocked_port blocked[BLOCKED_MAX];
        size_t n_blocked;
};

int placement_new(struct placement **ret) {
        struct placement *p = calloc(1, sizeof(*p));
        int r = p ? sched_new(&p->sched) : -ENOMEM;

        if (r >= 0)
                r = queue_new(&p->queue);
        if (r < 0) {
                placement_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

void placement_free(struct placement *p) {
        if (!p)
                return;
        sched_free(p->sched);
        queue_free(p->queue);
        free(p->nodes);
        free(p);
}

/* ---- nodes
 * ----------------------------------------------------------------------------------------------------------
 */

static int add_node(struct placement *p, struct node *node, const struct sched_capacity *c) {
        struct node **bigger;
        uint32_t slot;
        int r = sched_node_add(p->sched, c, &slot);

        if (r < 0)
                return r;
        if (slot >= p->n_slots) {
                size_t n = MAX((size_t)slot + 1, p->n_slots * 2);
                bigger = reallocarray(p->nodes, n, sizeof(*bigger));
                if (!bigger) {
                        (void)sched_node_remove(p->sched, slot);
                        return -ENOMEM;
                }
                memset(bigger + p->n_slots, 0, (n - p->n_slots) * sizeof(*bigger));
                p->nodes = bigger;
                p->n_slots = n;
        }
        p->nodes[slot] = node;
        node->slot = slot;
        node->in_sched = true;
        return 0;
}

int placement_node_changed(struct manager *m, struct node *node) {
        const struct inventory *v = &node->inventory;
        struct sched_capacity c = {
                .cpu_milli = MIN(v->cpus, SCHED_CPU_MAX / 1000) * 1000,
                .memory = MIN(v->memory, SCHED_MEMORY_MAX),
                .gpus = (uint32_t)MIN(v->n_gpus, (size_t)SCHED_GPUS_MAX),
                .port_first = v->port_first,
                .port_last = v->port_last,
                .executors = NODE_EXECUTORS_MAX,
        };
        int r = 0;

        if (v->cpus == 0)
                return 0; /* has never registered */
        if (!node->in_sched)
                r = add_node(m->placement, node, &c);
        else
                r = sched_node_update(m->placement->sched, node->slot, &c);
        if (r == -EBUSY) {
                log_full(LOG_WARNING, 0, &(struct log_fields){ .node = node->name },
                         "%s: the new port range (Ports=) takes effect when no executor holds ports of the "
                         "old one",
                         node->name);
                r = 0;
        }
        if (r < 0)
                return log_full(LOG_ERR, r, &(struct log_fields){ .node = node->name },
                                "Cannot schedule onto %s", node->name);
        sched_node_set_usable(m->placement->sched, node->slot, node_usable(node));
        return 0;
}

void placement_node_removed(struct manager *m, struct node *node) {
        struct placement *p = m->placement;

        if (!node->in_sched)
                return;
        for (size_t i = 0; i < p->n_blocked;)
                if (p->blocked[i].slot == node->slot) {
                        sched_release(p->sched, &(struct sched_hold){ .slot = node->slot,
                                                                      .ports = &p->blocked[i].port,
                                                                      .n_ports = 1 });
                        p->blocked[i] = p->blocked[--p->n_blocked];
                } else
                        i++;
        node->in_sched = sched_node_remove(p->sched, node->slot) < 0;
        p->nodes[node->slot] = NULL;
}

void placement_free_of(const struct manager *m, const struct node *node, uint64_t *ret_cpu_milli,
                       uint64_t *ret_memory, uint32_t *ret_gpus) {
        struct sched_usage u = {};

        if (node->in_sched)
                (void)sched_node_usage(m->placement->sched, node->slot, &u);
        *ret_cpu_milli = usec_sub(u.capacity.cpu_milli, u.cpu_milli);
        *ret_memory = usec_sub(u.capacity.memory, u.memory);
        *ret_gpus = u.capacity.gpus - (uint32_t)MIN(__builtin_popcountll(u.gpus), (int)u.capacity.gpus);
}

/* ---- what executors hold
 * ---------------------------------------------------------------------------------------------- */

static struct sched_hold hold_of(const struct executor *e) {
        const struct role_spec *spec = executor_role(e);

        return (struct sched_hold){ .slot = e->node->slot,
                                    .cpu_milli = spec->cpu_milli,
                                    .memory = spec->memory,
                                    .gpus = e->gpus,
                                    .ports = e->ports,
                                    .n_ports = (uint32_t)e->n_ports };
}

static void attach(struct executor *e) {
        DL_APPEND2(e->node->executors, e, node_prev, node_next);
        e->node->n_executors++;
}

void placement_release(struct manager *m, struct executor *e) {
        struct sched_hold hold;

        if (!executor_state_holds(e->state) || !e->node)
                return;
        hold = hold_of(e);
        sched_release(m->placement->sched, &hold);
        DL_DELETE2(e->node->executors, e, node_prev, node_next);
        e->node_prev = e->node_next = NULL;
        e->node->n_executors--;
        hosts_left(m, e->node);
        manager_schedule(m);
}

void placement_suspend_hold(struct manager *m, struct executor *e) {
        struct sched_hold hold = hold_of(e);

        sched_release(m->placement->sched, &hold);
}

void placement_resume_hold(struct manager *m, struct executor *e) {
        struct sched_hold hold = hold_of(e);

        (void)sched_reserve(m->placement->sched, &hold);
}

int placement_restore(struct manager *m, struct executor *e) {
        struct sched_hold hold;
        int r;

        if (!e->node->in_sched)
                return -ENOENT;
        hold = hold_of(e);
        r = sched_reserve(m->placement->sched, &hold);
        if (r > 0)
                return log_full(LOG_ERR, -EBUSY,
                                &(struct log_fields){ .job = e->job->number, .node = e->node->name },
                                "Job %u %s/%u holds a GPU or port of %s that is taken or gone",
                                e->job->number, executor_role(e)->name, e->index, e->node->name);
        if (r < 0)
                return r;
        attach(e);
        return 0;
}

static void unblock_ports(struct placement *p, uint64_t now) {
        for (size_t i = 0; i < p->n_blocked;)
                if (p->blocked[i].until <= now) {
                        sched_release(p->sched, &(struct sched_hold){ .slot = p->blocked[i].slot,
                                                                      .ports = &p->blocked[i].port,
                                                                      .n_ports = 1 });
                        p->blocked[i] = p->blocked[--p->n_blocked];
                } else
                        i++;
}

void placement_port_taken(struct manager *m, struct executor *e) {
        struct placement *p = m->placement;
        struct sched_hold hold = hold_of(e);

        unblock_ports(p, now_boot());
        /* Which one it was is the agent's to know; none of them is granted again for a while. The executor
         * gives them up here. */
        sched_release(p->sched, &hold);
        for (size_t i = 0; i < e->n_ports && p->n_blocked < BLOCKED_MAX; i++)
                if (sched_reserve(p->sched, &(struct sched_hold){ .slot = e->node->slot,
                                                                  .ports = e->ports + i,
                                                                  .n_ports = 1 }) == 0)
                        p->blocked[p->n_blocked++] =
                                (struct blocked_port){ e->node->slot, e->ports[i],
                                                       usec_add(now_boot(), BLOCKED_USEC) };
        e->n_ports = 0;
        hold = hold_of(e);
        (void)sched_reserve(p->sched, &hold);
}

/* ---- which executors wait
 * ------------------------------------------------------------------------------------------------ */

static bool waits(const struct executor *e) {
        return e->state == EXECUTOR_PENDING && !e->restart_timer && !e->gone;
}

/* Enough of the role is up for the next role of an ordered start. */
static bool role_up(const struct job *j, const struct role *r, bool gang) {
        uint32_t up = r->n_state[EXECUTOR_RUNNING] + r->n_succeeded + r->n_failed;

        return up >= (gang ? r->spec->num : r->spec->min_num);
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
                                if (!role_up(j, j->roles + i, o->schedule_type == SCHEDULE_GANG))
                                        return mask;
                                j->order_step = step + 1;
                        }
                }
        }
        return mask;
}

struct shape_data {
        uint32_t role;
        uint32_t *allowed, *present, *excluded;
};

struct gang_data {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct shape_data data[SCHED_SHAPES_MAX];
        size_t n;
};

static void gang_data_done(struct gang_data *g) {
        for (size_t i = 0; i < g->n; i++) {
                free(g->data[i].allowed);
                free(g->data[i].present);
                free(g->data[i].excluded);
        }
}

/* All or nothing: the first start of a role under a gang policy. Afterwards executors come back one by one.
 */
static uint32_t least(const struct job *j, const struct role *r, uint32_t pending) {
        bool first = r->n_state[EXECUTOR_PENDING] == r->spec->num;
        bool gang = j->spec->schedule_policy == SCHEDULE_POLICY_GANG && j->state == JOB_QUEUED;

        if (j->spec->schedule_policy == SCHEDULE_POLICY_ORDER && first)
                for (size_t i = 0; i < j->spec->n_order; i++)
                        if (strcmp(j->spec->order[i].role, r->spec->name) == 0)
                                gang = j->spec->order[i].schedule_type == SCHEDULE_GANG;
        if (gang)
                return pending;
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
                pending += waits(r->executors[i]);
        if (pending == 0)
                return 0;
        *s = (struct sched_shape){ .min = least(j, r, pending),
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

static uint32_t uses_of(const struct job *j) {
        uint32_t uses = SCHED_EXECUTORS | SCHED_NODES | SCHED_PORTS;

        for (size_t i = 0; i < j->spec->n_roles; i++)
                uses |= (j->spec->roles[i].cpu_milli ? SCHED_CPU : 0) |
                        (j->spec->roles[i].memory ? SCHED_MEMORY : 0) |
                        (j->spec->roles[i].gpus ? SCHED_GPUS : 0);
        return uses;
}

void placement_enqueue(struct manager *m, struct job *j) {
        if (job_state_ended(j->state) || j->state == JOB_STOPPING || suspension_keeps(j))
                return;
        if (!j->queued) {
                int r = queue_add(m->placement->queue, j->number, 0, uses_of(j), now_boot());
                if (r < 0 && r != -EEXIST) {
                        (void)log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number },
                                       "Cannot queue job %u", j->number);
                        return;
                }
                j->queued = true;
        }
        manager_schedule(m);
}

void placement_dequeue(struct manager *m, struct job *j) {
        if (j->queued)
                (void)queue_remove(m->placement->queue, j->number);
        j->queued = false;
}

/* ---- placing
 * ---------------------------------------------------------------------------------------------------------------
 */

static struct node *node_by_slot(struct manager *m, uint32_t slot) {
        return slot < m->placement->n_slots ? m->placement->nodes[slot] : NULL;
}

/* An executor that comes back to its host gets its old ports where they are free: its peers know it by them,
 * and theirs is what their environment said when they started. */
static bool keeps_ports(struct manager *m, const struct executor *e, const struct sched_hold *hold,
                        const struct node *node) {
        struct sched_hold old = { .slot = hold->slot, .ports = e->ports, .n_ports = (uint32_t)e->n_ports };
        struct sched_hold found = { .slot = hold->slot, .ports = hold->ports, .n_ports = hold->n_ports };

        if (e->attempt == 0 || e->node != node || e->n_ports != hold->n_ports || e->n_ports == 0 ||
            sched_reserve(m->placement->sched, &old) != 0)
                return false;
        sched_release(m->placement->sched, &found);
        return true;
}

static int take_place(struct manager *m, struct executor *e, const struct sched_hold *hold,
                      struct node *node) {
        uint16_t *ports = NULL;
        bool kept;

        if (hold->n_ports > 0) {
                ports = calloc(hold->n_ports, sizeof(*ports));
                if (!ports)
                        return -ENOMEM;
                memcpy(ports, hold->ports, hold->n_ports * sizeof(*ports));
        }
        if (executor_transition(e, EXECUTOR_EVENT_PLACED) < 0) {
                free(ports);
                return -EPROTO;
        }
        kept = keeps_ports(m, e, hold, node);
        if (kept)
                free(ports);
        else {
                free(e->ports);
                e->ports = ports;
                e->n_ports = hold->n_ports;
        }
        e->gpus = hold->gpus;
        executor_move(e, node);
        executor_number(e, executor_next_attempt(e));
        e->confirmed = true; /* nobody can have it but by our order */
        e->ordered = e->stop_ordered = false;
        e->invocation = SD_ID128_NULL;
        e->placed_real = MAX(MAX(now_real(), e->job->attempt_real), e->job->rolling.since_real);
        e->started_real = e->ended_real = e->started_boot = 0;
        e->status = 0;
        e->result[0] = 0;
        e->memory_peak = e->cpu_usec = UINT64_MAX;
        e->tail_offset = 0;
        (void)text_set(&e->reason, NULL);
        attach(e);
        record_executor(m, e);
        api_executor_changed(m, e);
        return 0;
}

static int take_places(struct manager *m, struct job *j, const struct gang_data *g,
                       const struct sched_placement *p) {
        uint32_t next[SCHED_SHAPES_MAX] = {};
        struct node *node = NULL;
        int r = 0;

        for (size_t i = 0; i < p->n; i++) {
                const struct sched_item *item = p->items + i;
                struct role *role = j->roles + g->data[item->shape].role;
                uint32_t *k = next + item->shape;
                if (!node || node->slot != item->hold.slot)
                        node = node_by_slot(m, item->hold.slot);
                while (*k < role->spec->num && !waits(role->executors[*k]))
                        (*k)++;
                r = node && *k < role->spec->num ? take_place(m, role->executors[*k], &item->hold, node)
                                                 : -EPROTO;
                if (r < 0) {
                        sched_release(m->placement->sched, &item->hold);
                        (void)log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number },
                                       "Cannot use a place that was found for job %u", j->number);
                }
        }
        return r;
}

static bool none_waits(const struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (waits(j->executors[i]))
                        return false;
        return true;
}

static void say_why(struct manager *m, struct job *j, const struct gang_data *g,
                    const struct sched_no_fit *why) {
        char text[SCHED_NO_FIT_TEXT_MAX], line[SCHED_NO_FIT_TEXT_MAX + 64];

        snprintf(line, sizeof(line), "role %s: %s", j->spec->roles[g->data[why->shape].role].name,
                 sched_no_fit_text(why, text, sizeof(text)));
        if (j->state != JOB_QUEUED || (j->reason && strcmp(j->reason, line) == 0))
                return;
        (void)text_set(&j->reason, "%s", line);
        record_job(m, j, NULL, false);
}

/* One job: 0 = nothing of it waits any more, positive = something still does. */
static int try_job(void *userdata, uint64_t id, uint32_t *ret_lacking) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, (uint32_t)id);
        struct sched_placement found = {};
        struct sched_no_fit why = {};
        struct gang_data g = {};
        uint64_t open;
        int r = 0;

        *ret_lacking = 0;
        if (!j)
                return 0;
        open = open_roles(j);
        for (uint32_t i = 0; r >= 0 && i < j->spec->n_roles; i++)
                if (open & (UINT64_C(1) << i))
                        r = add_shape(m, j, i, &g);
        if (r >= 0 && g.n > 0)
                r = sched_place(m->placement->sched, &(struct sched_gang){ g.shapes, g.n }, &found, &why);
        if (r == SCHED_E_NO_FIT) {
                *ret_lacking = why.lacking;
                say_why(m, j, &g, &why);
        } else if (r >= 0 && g.n > 0) {
                (void)take_places(m, j, &g, &found);
                if (j->state == JOB_QUEUED) {
                        (void)job_transition(j, JOB_EVENT_PLACED);
                        (void)text_set(&j->reason, NULL);
                        if (j->started_real == 0)
                                j->started_real = now_real();
                        record_event(m, j, "placed", NULL, "%zu executors placed", found.n);
                        record_job(m, j, NULL, false);
                        api_job_changed(m, j);
                        lifecycle_arm_limit(m, j);
                }
                for (uint32_t i = 0; i < j->n_executors; i++)
                        if (j->executors[i]->state == EXECUTOR_PLACED && !j->executors[i]->ordered)
                                (void)orders_start_later(m, j->executors[i]);
                feeding_start(m, j);
        }
        sched_placement_done(&found);
        gang_data_done(&g);
        if (r < 0) {
                (void)log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number }, "Cannot place job %u",
                               j->number);
                return 1; /* it waits; the others are tried */
        }
        if (none_waits(j)) {
                j->queued = false;
                return 0;
        }
        return 1;
}

void placement_run(struct manager *m) {
        (void)queue_pass(m->placement->queue, now_boot(), PATIENCE_USEC, DEPTH, try_job, m);
}
