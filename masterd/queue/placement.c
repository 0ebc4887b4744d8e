/* SPDX-License-Identifier: Apache-2.0 */
/* Between jobs and the scheduler. Invariant: what the scheduler holds is exactly what executors in the states
 * PLACED to STOPPING have. */
#include "masterd/queue/placement.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/job/scope.h"
#include "masterd/queue/placement-describe.h"
#include "masterd/queue/placement-parts.h"
#include "masterd/sched/sched.h"

#define NODE_EXECUTORS_MAX 8192u
#define BLOCKED_USEC (300 * USEC_PER_SEC)

int placement_new(struct manager *m) {
        struct placement *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        m->placement = p;
        r = sched_new(&p->sched);
        if (r >= 0)
                r = placement_configure(p->sched, &m->conf.placement);
        return r < 0 ? r : queueing_new(m);
}

void placement_free(struct placement *p) {
        if (!p)
                return;
        queueing_free(p);
        sched_free(p->sched);
        free(p->nodes);
        free(p);
}

/* ---- nodes ---- */

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
                .executors = MIN(NODE_EXECUTORS_MAX, m->up->host_room(node)),
                .shm = MIN(v->shm, SCHED_MEMORY_MAX),
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
        if (r >= 0)
                r = placement_describe(m, node);
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
        *ret_cpu_milli = sub_sat(u.capacity.cpu_milli, u.cpu_milli);
        *ret_memory = sub_sat(u.capacity.memory, u.memory);
        *ret_gpus = u.capacity.gpus -
                    (uint32_t)MIN(__builtin_popcountll(u.gpus | u.gpus_off), (int)u.capacity.gpus);
}

void placement_set_gpus_off(struct manager *m, struct node *node, uint64_t gpus) {
        if (node->in_sched)
                sched_node_set_gpus_off(m->placement->sched, node->slot, gpus);
}

/* ---- what executors hold ---- */

struct sched_hold placement_hold_of(const struct executor *e) {
        const struct role_spec *spec = executor_role(e);

        return (struct sched_hold){ .slot = e->node->slot,
                                    .cpu_milli = spec->cpu_milli,
                                    .memory = executor_memory(e),
                                    .gpus = e->place.gpus,
                                    .ports = e->place.ports,
                                    .n_ports = (uint32_t)e->place.n_ports,
                                    .shm = spec->placement.shm,
                                    .cpus = e->place.cpus,
                                    .amounts = e->place.amounts,
                                    .n_amounts = e->place.n_amounts,
                                    .owner = e->job->spec->whole_hosts ? e->job->number : 0 };
}

static void attach(struct executor *e) {
        DL_APPEND2(e->node->executors, e, node_prev, node_next);
        e->node->n_executors++;
}

void placement_release(struct manager *m, struct executor *e) {
        struct sched_hold hold;

        if (!executor_state_holds(e->state) || !e->node)
                return;
        hold = placement_hold_of(e);
        sched_release(m->placement->sched, &hold);
        queueing_held(m, e, -1);
        DL_DELETE2(e->node->executors, e, node_prev, node_next);
        e->node_prev = e->node_next = NULL;
        e->node->n_executors--;
        TELL(m, executor_released, m, e);
        manager_schedule(m);
}

void placement_suspend_hold(struct manager *m, struct executor *e) {
        struct sched_hold hold = placement_hold_of(e);

        sched_release(m->placement->sched, &hold);
        queueing_held(m, e, -1);
}

void placement_resume_hold(struct manager *m, struct executor *e) {
        struct sched_hold hold = placement_hold_of(e);

        (void)sched_reserve(m->placement->sched, &hold);
        queueing_held(m, e, 1);
}

int placement_restore(struct manager *m, struct executor *e) {
        struct sched_hold hold;
        int r;

        if (!e->node->in_sched)
                return -ENOENT;
        r = shape_amounts(m, executor_role(e), &e->place.amounts, &e->place.n_amounts);
        if (r < 0)
                return r;
        hold = placement_hold_of(e);
        r = sched_reserve(m->placement->sched, &hold);
        if (r > 0)
                return log_full(LOG_ERR, -EBUSY,
                                &(struct log_fields){ .job = e->job->number, .node = e->node->name },
                                "Job %u %s/%u holds a GPU or port of %s that is taken or gone",
                                e->job->number, executor_role(e)->name, e->index, e->node->name);
        if (r < 0)
                return r;
        attach(e);
        queueing_held(m, e, 1);
        return 0;
}

bool placement_hold_beside(struct manager *m, struct node *node, const struct sched_hold *hold, bool take) {
        if (!take && node->in_sched)
                sched_release(m->placement->sched, hold);
        return !take || (node->in_sched && sched_reserve(m->placement->sched, hold) == 0);
}

int placement_amounts_text(struct manager *m, const struct sched_amount *amounts, uint32_t n, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                const char *name;
                uint64_t total, held;
                if (sched_consumable_get(m->placement->sched, amounts[i].index, &name, &total, &held) >= 0)
                        fprintf(f, "%s%s=%u", i > 0 ? " " : "", name, amounts[i].n);
        }
        if (fclose(f) != 0)
                return -ENOMEM;
        *ret = TAKE_PTR(text);
        return 0;
}

int placement_amounts_parse(struct manager *m, const char *text, struct sched_amount **ret, uint32_t *ret_n) {
        _cleanup_free_ struct sched_amount *amounts = calloc(SCHED_AMOUNTS_MAX, sizeof(*amounts));
        char name[SCHED_CONSUMABLE_MAX + 1], word[SCHED_CONSUMABLE_MAX + 16];
        uint32_t n = 0;

        if (!amounts)
                return -ENOMEM;
        while (*text && n < SCHED_AMOUNTS_MAX) {
                size_t l = strcspn(text, " ");
                int r;
                if (l >= sizeof(word))
                        return -EINVAL;
                memcpy(word, text, l);
                word[l] = 0;
                text += l + strspn(text + l, " ");
                r = spec_consumable(word, name, sizeof(name), &amounts[n].n);
                /* One that masterd.conf does not have any more has a total of 0. */
                if (r >= 0 && sched_consumable_find(m->placement->sched, name, &amounts[n].index) < 0)
                        r = sched_consumable_set(m->placement->sched, name, 0, &amounts[n].index);
                if (r < 0)
                        return r;
                n++;
        }
        *ret = TAKE_PTR(amounts);
        *ret_n = n;
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
        struct sched_hold hold = placement_hold_of(e);

        unblock_ports(p, now_boot());
        /* Which one it was is the agent's to know; none of them is granted again for a while. The executor
         * gives them up here. */
        sched_release(p->sched, &hold);
        for (size_t i = 0; i < e->place.n_ports && p->n_blocked < BLOCKED_MAX; i++)
                if (sched_reserve(p->sched, &(struct sched_hold){ .slot = e->node->slot,
                                                                  .ports = e->place.ports + i,
                                                                  .n_ports = 1 }) == 0)
                        p->blocked[p->n_blocked++] =
                                (struct blocked_port){ e->node->slot, e->place.ports[i],
                                                       usec_add(now_boot(), BLOCKED_USEC) };
        e->place.n_ports = 0;
        hold = placement_hold_of(e);
        (void)sched_reserve(p->sched, &hold);
}

/* ---- placing ---- */

struct node *placement_node(struct manager *m, uint32_t slot) {
        return slot < m->placement->n_slots ? m->placement->nodes[slot] : NULL;
}

/* An executor that comes back to its host gets its old ports where they are free: its peers know it by them,
 * and theirs is what their environment said when they started. */
static bool keeps_ports(struct manager *m, const struct executor *e, const struct sched_hold *hold,
                        const struct node *node) {
        struct sched_hold old = { .slot = hold->slot,
                                  .ports = e->place.ports,
                                  .n_ports = (uint32_t)e->place.n_ports };
        struct sched_hold found = { .slot = hold->slot, .ports = hold->ports, .n_ports = hold->n_ports };

        if (e->attempt == 0 || e->node != node || e->place.n_ports != hold->n_ports ||
            e->place.n_ports == 0 || sched_reserve(m->placement->sched, &old) != 0)
                return false;
        sched_release(m->placement->sched, &found);
        return true;
}

/* CPUs and consumables, in the place of what the attempt before had. */
static int take_extras(struct executor *e, const struct sched_hold *hold) {
        struct sched_cpuset *cpus = NULL;
        struct sched_amount *amounts = NULL;

        if (hold->cpus && (cpus = malloc(sizeof(*cpus))))
                *cpus = *hold->cpus;
        if (hold->n_amounts > 0 && (amounts = calloc(hold->n_amounts, sizeof(*amounts))))
                memcpy(amounts, hold->amounts, hold->n_amounts * sizeof(*amounts));
        if ((hold->cpus && !cpus) || (hold->n_amounts > 0 && !amounts)) {
                free(cpus);
                free(amounts);
                return -ENOMEM;
        }
        free(e->place.cpus);
        free(e->place.amounts);
        e->place.cpus = cpus;
        e->place.amounts = amounts;
        e->place.n_amounts = hold->n_amounts;
        return 0;
}

static int take_place(struct manager *m, struct executor *e, const struct sched_hold *hold,
                      struct node *node) {
        uint16_t *ports = NULL;
        bool kept;
        int r;

        if (hold->n_ports > 0) {
                ports = calloc(hold->n_ports, sizeof(*ports));
                if (!ports)
                        return -ENOMEM;
                memcpy(ports, hold->ports, hold->n_ports * sizeof(*ports));
        }
        r = take_extras(e, hold);
        if (r >= 0 && executor_transition(e, EXECUTOR_EVENT_PLACED) < 0)
                r = -EPROTO;
        if (r < 0) {
                free(ports);
                return r;
        }
        kept = keeps_ports(m, e, hold, node);
        if (kept)
                free(ports);
        else {
                free(e->place.ports);
                e->place.ports = ports;
                e->place.n_ports = hold->n_ports;
        }
        e->place.gpus = hold->gpus;
        executor_move(e, node);
        executor_number(e, executor_next_attempt(e));
        e->orders.confirmed = true; /* nobody can have it but by our order */
        e->orders.starting = e->orders.stopped = false;
        e->invocation = SD_ID128_NULL;
        e->placed_real =
                MAX(MAX(MAX(now_real(), e->job->attempt_real), scope_since(e)), e->job->rolling.since_real);
        e->end.fate = FATE_NONE;
        e->ready = false;
        e->started_real = e->ended_real = e->started_boot = 0;
        e->end.status = 0;
        e->end.result[0] = 0;
        e->end.memory_peak = e->end.cpu_usec = e->end.io_read = e->end.io_write = UINT64_MAX;
        e->tail_offset = 0;
        (void)text_set(&e->reason, NULL);
        attach(e);
        TELL(m, executor_placed, m, e);
        queueing_held(m, e, 1);
        record_executor(m, e);
        notice_executor_changed(m, e);
        return 0;
}

int placement_take(struct manager *m, struct job *j, const struct gang_data *g,
                   const struct sched_placement *p) {
        uint32_t next[SCHED_SHAPES_MAX] = {};
        struct node *node = NULL;
        int r = 0;

        for (size_t i = 0; i < p->n; i++) {
                const struct sched_item *item = p->items + i;
                struct role *role = j->roles + g->data[item->shape].role;
                uint32_t *k = next + item->shape;
                if (!node || node->slot != item->hold.slot)
                        node = placement_node(m, item->hold.slot);
                while (*k < role->spec->num && !gang_takes(g, item->shape, role->executors[*k]))
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
