/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations of others, as a job sees them that runs between two times: on each node the most that they add
 * to what is held there, held for a moment in the scheduler in which the job is to be placed. Invariant:
 * outside of a function nothing of that is held. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/plan-internal.h"

static uint64_t gpus_of(const struct sched_capacity *c) {
        return c->gpus == 64 ? UINT64_MAX : (UINT64_C(1) << c->gpus) - 1;
}
size_t plan_length(const struct plan *plan) {
        return plan->n_reservations;
}

uint64_t plan_sign(const struct plan *plan) {
        return plan->sign;
}

int plan_add(struct plan *plan, struct reservation *r) {
        if (!plan_room(&plan->reservations, sizeof(*plan->reservations), plan->n_reservations + 1,
                       &plan->reservations_allocated) ||
            !plan_room(&plan->items, sizeof(*plan->items), plan->n_items + r->places.n,
                       &plan->items_allocated))
                return -ENOMEM;
        for (size_t i = 0; i < r->places.n; i++) {
                const struct sched_hold *h = &r->places.items[i].hold;
                if (h->slot >= plan->n_slots)
                        continue;
                plan->items[plan->n_items] = (struct item){ r, h, plan->slot_items[h->slot] };
                plan->slot_items[h->slot] = (uint32_t)plan->n_items++;
        }
        plan->reservations[plan->n_reservations++] = r;
        plan->sign = plan_mix(plan_mix(plan->sign, r->entry->job.id), r->start);
        return 0;
}

/* When it begins to hold, as far as the plan is concerned. */
uint64_t reservation_begins(const struct plan *plan, const struct reservation *r) {
        return r->claim ? plan_not_past(plan, r->start) : MAX(r->start, plan->now);
}

/* When it ends, or may be guessed to. */
uint64_t reservation_over(const struct plan *plan, const struct reservation *r) {
        const struct policy_conf *conf = &plan->policy->conf;

        return plan->guessing && r->end == UINT64_MAX
                       ? time_add(reservation_begins(plan, r), MAX(conf->patience_usec, conf->ahead_usec))
                       : r->end;
}

/* Whether the entry has to respect it: what others are being stopped for comes before all that is reserved.
 */
static bool respects(const struct entry *e, const struct reservation *r) {
        return r->entry != e && (r->claim || !e->reservation || !e->reservation->claim);
}

bool plan_concerns(const struct plan *plan, const struct reservation *r, const struct entry *e, uint64_t from,
                   uint64_t to) {
        return respects(e, r) && reservation_begins(plan, r) < to && reservation_over(plan, r) > from;
}

/* Amounts on a node; less than none may be added. */
struct sum {
        int64_t cpu, memory, shm;
};

/* What is added on the node at a time t >= from to what is held at from: reservations, less what has ended.
 */
static struct sum added(const struct plan *plan, uint32_t slot, const struct entry *e, uint64_t from,
                        uint64_t t) {
        struct sum sum = {};

        for (uint32_t i = plan->slot_items[slot]; i != NONE; i = plan->items[i].next) {
                const struct item *it = plan->items + i;
                if (!respects(e, it->r) || reservation_begins(plan, it->r) > t ||
                    reservation_over(plan, it->r) <= t)
                        continue;
                sum.cpu += it->hold->cpu_milli;
                sum.memory += (int64_t)it->hold->memory;
                sum.shm += (int64_t)it->hold->shm;
        }
        for (uint32_t i = plan->slot_runs[slot]; i != NONE; i = plan->runs[i].next) {
                const struct run *r = plan->runs + i;
                if (r->entry->out || r->end <= from || r->end > t)
                        continue;
                sum.cpu -= r->hold.cpu_milli;
                sum.memory -= (int64_t)r->hold.memory;
                sum.shm -= (int64_t)r->hold.shm;
        }
        return sum;
}

static int add_shadow(struct shadow *shadow, const struct sched_hold *h) {
        if (!plan_room(&shadow->holds, sizeof(*shadow->holds), shadow->n + 1, &shadow->allocated))
                return -ENOMEM;
        shadow->holds[shadow->n++] = *h;
        return 0;
}

static int shadow_slot(struct plan *plan, const struct sched *s, uint32_t slot, const struct entry *e,
                       uint64_t from, uint64_t to) {
        const struct sched_node *n = &s->nodes[slot];
        struct sum most = {};
        uint64_t gpus = 0;
        bool whole = false;
        int r = 0;

        for (uint32_t i = plan->slot_items[slot]; i != NONE && r >= 0; i = plan->items[i].next) {
                const struct item *it = plan->items + i;
                struct sum sum;
                if (!plan_concerns(plan, it->r, e, from, to))
                        continue;
                gpus |= it->hold->gpus;
                whole |= it->hold->owner != 0;
                /* It is only when a reservation begins that there can be more than before. */
                sum = added(plan, slot, e, from, MAX(reservation_begins(plan, it->r), from));
                most = (struct sum){ MAX(most.cpu, sum.cpu), MAX(most.memory, sum.memory),
                                     MAX(most.shm, sum.shm) };
                /* Of what belongs to no host all of it counts, whenever it is needed. */
                if (it->hold->n_amounts > 0)
                        r = add_shadow(&plan->shadow,
                                       &(struct sched_hold){ .slot = slot,
                                                             .owner = n->owner,
                                                             .amounts = it->hold->amounts,
                                                             .n_amounts = it->hold->n_amounts });
        }
        if (whole) { /* nobody else gets on it */
                most = (struct sum){ n->capacity.cpu_milli, (int64_t)n->capacity.memory,
                                     (int64_t)n->capacity.shm };
                gpus = gpus_of(&n->capacity);
        }
        gpus &= ~n->gpus;
        if (r < 0 || (most.cpu == 0 && most.memory == 0 && most.shm == 0 && gpus == 0))
                return r;
        return add_shadow(
                &plan->shadow,
                &(struct sched_hold){ .slot = slot,
                                      .cpu_milli = (uint32_t)MIN(most.cpu, (int64_t)SCHED_CPU_MAX),
                                      .memory = (uint64_t)MIN(most.memory, (int64_t)SCHED_MEMORY_MAX),
                                      .shm = (uint64_t)MIN(most.shm, (int64_t)SCHED_MEMORY_MAX),
                                      .gpus = gpus,
                                      .owner = n->owner });
}

/* Holds in s, for a job that runs between two times, what it must not use; s is as of the first one. */
int shadow_cast(struct plan *plan, struct sched *s, const struct entry *e, uint64_t from, uint64_t to) {
        struct shadow *shadow = &plan->shadow;
        int r;

        shadow->n = 0;
        shadow->stamp++;
        for (size_t i = 0; i < plan->n_reservations; i++) {
                const struct reservation *res = plan->reservations[i];
                if (!plan_concerns(plan, res, e, from, to))
                        continue;
                for (size_t k = 0; k < res->places.n; k++) {
                        uint32_t slot = res->places.items[k].hold.slot;
                        if (slot >= plan->n_slots || shadow->stamps[slot] == shadow->stamp)
                                continue;
                        shadow->stamps[slot] = shadow->stamp;
                        r = shadow_slot(plan, s, slot, e, from, to);
                        if (r < 0)
                                return r;
                }
        }
        for (size_t i = 0, n = shadow->n; i < n; i++)
                if (sched_reserve(s, shadow->holds + i) !=
                    0) { /* GPUs that are free, no ports: nothing to refuse */
                        shadow->n = i;
                        shadow_lift(plan, s);
                        return -ENOMEM;
                }
        return 0;
}

void shadow_lift(struct plan *plan, struct sched *s) {
        for (size_t i = 0; i < plan->shadow.n; i++)
                sched_release(s, plan->shadow.holds + i);
        plan->shadow.n = 0;
}
/* Whether the node has what a reservation takes there, all the time. */
static bool slot_keeps(const struct plan *plan, uint32_t slot, const struct reservation *r, uint64_t from) {
        const struct own *own = plan->own + slot;
        const struct sched_node *n = &plan->live->nodes[slot];
        uint64_t gpus = n->gpus, t = from;
        struct sum sum;

        if (!n->exists || !n->usable || own->whole || (n->owner != 0 && from == plan->now))
                return false;
        for (uint32_t i = plan->slot_runs[slot]; i != NONE; i = plan->runs[i].next)
                if (plan->runs[i].end <= from)
                        gpus &= ~plan->runs[i].hold.gpus;
        for (uint32_t i = plan->slot_items[slot];;
             i = plan->items[i].next) { /* at from, and whenever another begins */
                const struct item *it = i != NONE ? plan->items + i : NULL;
                if (it && !plan_concerns(plan, it->r, r->entry, from, r->end))
                        continue;
                if (it) {
                        gpus |= it->hold->gpus;
                        t = MAX(reservation_begins(plan, it->r), from);
                } else
                        t = from;
                sum = added(plan, slot, r->entry, plan->now, t);
                if ((int64_t)n->held.cpu_milli + sum.cpu + (int64_t)own->cpu >
                            (int64_t)n->capacity.cpu_milli ||
                    (int64_t)n->held.memory + sum.memory + (int64_t)own->memory >
                            (int64_t)n->capacity.memory ||
                    (int64_t)n->held.shm + sum.shm + (int64_t)own->shm > (int64_t)n->capacity.shm)
                        return false;
                if (!it)
                        break;
        }
        return (own->gpus & (gpus | n->gpus_off | ~gpus_of(&n->capacity))) == 0;
}

bool plan_keeps(struct plan *plan, const struct reservation *r) {
        uint64_t from = MAX(r->start, plan->now);
        bool keeps = true;

        if (!plan->own)
                plan->own = calloc((size_t)plan->n_slots + 1, sizeof(*plan->own));
        if (!plan->own)
                return false;
        for (size_t i = 0; i < r->places.n; i++) {
                const struct sched_hold *h = &r->places.items[i].hold;
                if (h->slot >= plan->n_slots)
                        return false;
                plan->own[h->slot] = (struct own){};
        }
        for (size_t i = 0; i < r->places.n; i++) {
                const struct sched_hold *h = &r->places.items[i].hold;
                plan->own[h->slot].cpu += h->cpu_milli;
                plan->own[h->slot].memory += h->memory;
                plan->own[h->slot].gpus |= h->gpus;
                plan->own[h->slot].shm += h->shm;
                /* Whether a whole host, or what belongs to no host, is kept is looked up anew each time. */
                plan->own[h->slot].whole |= h->owner != 0 || h->n_amounts > 0;
        }
        plan->shadow.stamp++;
        for (size_t i = 0; i < r->places.n && keeps; i++) {
                uint32_t slot = r->places.items[i].hold.slot;
                if (plan->shadow.stamps[slot] == plan->shadow.stamp)
                        continue;
                plan->shadow.stamps[slot] = plan->shadow.stamp;
                keeps = slot_keeps(plan, slot, r, from);
        }
        return keeps;
}
