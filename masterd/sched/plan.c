/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a pass. A copy of the scheduler is moved through time by giving back what ends; what is
 * reserved for others is held in it (or, for a moment, in the live one) as the most that it adds on each node
 * while the job that is looked at would run. Invariants: outside of a function nothing of that is held in
 * either; the copy is the live scheduler as it will be at plan->at, less what entries with .out hold. */
#include "masterd/sched/plan.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

#define FOUND_MAX 64u
#define FITS_MAX                                                                                             \
        4000u /* looks at whether something fits, in a plan; then what was found earlier has to do           \
               */

#define NONE UINT32_MAX

/* What an executor holds until its job ends. */
struct run {
        uint64_t end;
        struct entry *entry;
        struct sched_hold hold;
        uint32_t next; /* on the same node */
};

/* What a reservation takes on a node. */
struct item {
        const struct reservation *r;
        const struct sched_hold *hold;
        uint32_t next;
};

/* What was found for a shape: one that takes as much for as long does not fit before it either. */
struct found {
        struct sched_shape shape;
        uint64_t duration, start;
};

/* What has been given back by a time, beside what is free now, on all nodes. */
struct moment {
        uint64_t at;
        struct policy_amount there;
};

/* What the reservation that is looked at takes on a node. */
struct own {
        uint64_t cpu, memory, gpus;
};

struct shadow {
        struct sched_hold *holds;
        size_t n, allocated;
        uint32_t *stamps; /* by slot */
        uint32_t stamp;
};

struct plan {
        struct policy *policy;
        struct sched *live, *copy;
        struct sched *empty; /* the same nodes with nothing on them; NULL: not needed yet */
        uint64_t now, at;
        uint32_t n_slots;
        uint32_t *slot_runs, *slot_items; /* heads of chains */
        struct run *runs;
        uint32_t *by_end; /* indices of runs */
        size_t n_runs, runs_allocated;
        size_t released; /* so many of by_end are given back in the copy */
        struct item *items;
        size_t n_items, items_allocated;
        const struct reservation **reservations;
        size_t n_reservations, reservations_allocated;
        uint64_t sign;
        struct shadow shadow;
        struct own *own; /* scratch, by slot; NULL: not needed yet */
        bool building;
        struct moment *times; /* at which something ends, as far as runs go; as of n_times > 0 */
        size_t n_times, times_allocated;
        struct found found[FOUND_MAX];
        size_t n_found;
        unsigned fits; /* how often that was looked at */
        int error;     /* of a callback */
};

struct reservation *reservation_free(struct reservation *r) {
        if (r)
                sched_placement_done(&r->places);
        free(r);
        return NULL;
}

static bool make_room(void *array, size_t element, size_t n, size_t *allocated) {
        void **a = array, *bigger;
        size_t m = MAX(n, *allocated * 2);

        if (n <= *allocated)
                return true;
        bigger = reallocarray(*a, m, element);
        if (!bigger)
                return false;
        *a = bigger;
        *allocated = m;
        return true;
}

static uint64_t gpus_of(const struct sched_capacity *c) {
        return c->gpus == 64 ? UINT64_MAX : (UINT64_C(1) << c->gpus) - 1;
}

static uint64_t mix(uint64_t a, uint64_t b) {
        a = (a ^ b) * UINT64_C(0xbf58476d1ce4e5b9);
        return a ^ (a >> 29);
}

/* ---- what ends when
 * ----------------------------------------------------------------------------------------------------------
 */

/* A time in the future, if the one that was said has come and gone. */
static uint64_t not_past(const struct plan *plan, uint64_t t) {
        return t > plan->now ? t : time_add(plan->now, OVERDUE_USEC);
}

static uint64_t expected_end(const struct plan *plan, const struct entry *e) {
        return not_past(plan, entry_end(e, plan->now));
}

/* Moves the copy to a time. */
static void seek(struct plan *plan, uint64_t t) {
        while (plan->released < plan->n_runs) {
                const struct run *r = plan->runs + plan->by_end[plan->released];
                if (r->end > t)
                        break;
                if (!r->entry->out)
                        sched_release(plan->copy, &r->hold);
                plan->released++;
        }
        while (plan->released > 0) {
                const struct run *r = plan->runs + plan->by_end[plan->released - 1];
                if (r->end <= t)
                        break;
                if (!r->entry->out)
                        (void)sched_reserve(plan->copy, &r->hold); /* it was held before */
                plan->released--;
        }
        plan->at = t;
}

static void insert_by_end(struct plan *plan, uint32_t index) {
        size_t low = 0, high = plan->n_runs;

        while (low < high) {
                size_t middle = (low + high) / 2;
                if (plan->runs[plan->by_end[middle]].end <= plan->runs[index].end)
                        low = middle + 1;
                else
                        high = middle;
        }
        memmove(plan->by_end + low + 1, plan->by_end + low, (plan->n_runs - low) * sizeof(*plan->by_end));
        plan->by_end[low] = index;
        plan->n_runs++;
}

static int add_run(struct plan *plan, struct entry *e, uint64_t end, const struct sched_hold *hold) {
        size_t n = plan->runs_allocated; /* of both arrays */
        uint32_t index = (uint32_t)plan->n_runs;

        if (hold->slot >= plan->n_slots)
                return 0;
        if (!make_room(&plan->runs, sizeof(*plan->runs), plan->n_runs + 1, &n))
                return -ENOMEM;
        if (!make_room(&plan->by_end, sizeof(*plan->by_end), plan->n_runs + 1, &plan->runs_allocated))
                return -ENOMEM;
        plan->runs[index] = (struct run){ end, e, *hold, plan->slot_runs[hold->slot] };
        plan->slot_runs[hold->slot] = index;
        plan->n_times = 0;
        if (plan->building) /* sorted when all are there */
                plan->by_end[plan->n_runs++] = index;
        else
                insert_by_end(plan, index);
        return 0;
}

static int compare_ends(const void *a, const void *b, void *arg) {
        const struct plan *plan = arg;
        const struct run *x = plan->runs + *(const uint32_t *)a, *y = plan->runs + *(const uint32_t *)b;

        if (x->end != y->end)
                return x->end < y->end ? -1 : 1;
        return x < y ? -1 : x > y;
}

static void sort_by_end(struct plan *plan) {
        qsort_r(plan->by_end, plan->n_runs, sizeof(*plan->by_end), compare_ends, plan);
        plan->n_times = 0;
}

struct adding {
        struct plan *plan;
        struct entry *entry;
        uint64_t end;
};

static void add_hold(void *arg, const struct sched_hold *h) {
        struct adding *a = arg;

        if (a->plan->error >= 0)
                a->plan->error = add_run(a->plan, a->entry, a->end, h);
}

/* What the entry holds ends when it does. Those whose end nobody knows need no run. */
static int add_entry(struct plan *plan, struct entry *e) {
        struct adding a = { plan, e, expected_end(plan, e) };

        if (e->held_n == 0 || a.end == UINT64_MAX)
                return 0;
        plan->policy->ops->holds(plan->policy->userdata, e->job.id, add_hold, &a);
        return plan->error;
}

int plan_started(struct plan *plan, struct entry *e, const struct sched_placement *places) {
        int r;

        seek(plan, plan->now);
        for (size_t i = 0; i < places->n; i++) {
                struct sched_hold hold = places->items[i].hold;
                uint64_t end = expected_end(plan, e);
                hold.ports = NULL; /* which are the owner's affair from now on */
                hold.n_ports = 0;
                r = sched_reserve(plan->copy, &hold);
                if (r == 0 && end != UINT64_MAX)
                        r = add_run(plan, e, end, &hold);
                if (r < 0)
                        return r;
        }
        plan->sign = mix(plan->sign, e->job.id);
        return 0;
}

int plan_leaves(struct plan *plan, struct entry *e) {
        uint64_t end = expected_end(plan, e);
        bool known = false;

        seek(plan, plan->now);
        for (size_t i = 0; i < plan->n_runs; i++)
                if (plan->runs[i].entry == e) {
                        plan->runs[i].end = end;
                        known = true;
                }
        plan->sign = mix(plan->sign, ~e->job.id);
        plan->n_found = 0; /* things may fit earlier now */
        if (!known)
                return add_entry(plan, e);
        sort_by_end(plan);
        return 0;
}

static void add_out(void *arg, const struct sched_hold *h) {
        struct adding *a = arg;

        if (a->entry->out)
                sched_release(a->plan->copy, h);
        else
                (void)sched_reserve(a->plan->copy, h);
}

int plan_out(struct plan *plan, struct entry *e, bool out) {
        struct adding a = { plan, e, 0 };

        if (e->out == out)
                return 0;
        seek(plan, plan->now); /* nothing has ended then, so all that it holds is in the copy */
        e->out = out;
        plan->policy->ops->holds(plan->policy->userdata, e->job.id, add_out, &a);
        return plan->error;
}

/* ---- reservations of others
 * ----------------------------------------------------------------------------------------------------------
 */

size_t plan_length(const struct plan *plan) {
        return plan->n_reservations;
}

uint64_t plan_sign(const struct plan *plan) {
        return plan->sign;
}

int plan_add(struct plan *plan, struct reservation *r) {
        if (!make_room(&plan->reservations, sizeof(*plan->reservations), plan->n_reservations + 1,
                       &plan->reservations_allocated) ||
            !make_room(&plan->items, sizeof(*plan->items), plan->n_items + r->places.n,
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
        plan->sign = mix(mix(plan->sign, r->entry->job.id), r->start);
        return 0;
}

/* When it begins to hold, as far as the plan is concerned. */
static uint64_t begins(const struct plan *plan, const struct reservation *r) {
        return r->claim ? not_past(plan, r->start) : MAX(r->start, plan->now);
}

static bool concerns(const struct plan *plan, const struct reservation *r, const struct entry *e,
                     uint64_t from, uint64_t to) {
        return r->entry != e && begins(plan, r) < to && r->end > from;
}

/* What is added on the node at a time t >= from to what is held at from: reservations, less what has ended.
 */
static void added(const struct plan *plan, uint32_t slot, const struct entry *e, uint64_t from, uint64_t t,
                  int64_t *ret_cpu, int64_t *ret_memory) {
        int64_t cpu = 0, memory = 0;

        for (uint32_t i = plan->slot_items[slot]; i != NONE; i = plan->items[i].next) {
                const struct item *it = plan->items + i;
                if (it->r->entry == e || begins(plan, it->r) > t || it->r->end <= t)
                        continue;
                cpu += it->hold->cpu_milli;
                memory += (int64_t)it->hold->memory;
        }
        for (uint32_t i = plan->slot_runs[slot]; i != NONE; i = plan->runs[i].next) {
                const struct run *r = plan->runs + i;
                if (r->entry->out || r->end <= from || r->end > t)
                        continue;
                cpu -= r->hold.cpu_milli;
                memory -= (int64_t)r->hold.memory;
        }
        *ret_cpu = cpu;
        *ret_memory = memory;
}

static int shadow_slot(struct plan *plan, const struct sched *s, uint32_t slot, const struct entry *e,
                       uint64_t from, uint64_t to) {
        struct shadow *shadow = &plan->shadow;
        int64_t cpu = 0, memory = 0, c, m;
        uint64_t gpus = 0;

        for (uint32_t i = plan->slot_items[slot]; i != NONE; i = plan->items[i].next) {
                const struct item *it = plan->items + i;
                if (!concerns(plan, it->r, e, from, to))
                        continue;
                gpus |= it->hold->gpus;
                /* It is only when a reservation begins that there can be more than before. */
                added(plan, slot, e, from, MAX(begins(plan, it->r), from), &c, &m);
                cpu = MAX(cpu, c);
                memory = MAX(memory, m);
        }
        gpus &= ~s->nodes[slot].gpus;
        if (cpu == 0 && memory == 0 && gpus == 0)
                return 0;
        if (!make_room(&shadow->holds, sizeof(*shadow->holds), shadow->n + 1, &shadow->allocated))
                return -ENOMEM;
        shadow->holds[shadow->n++] = (struct sched_hold){
                .slot = slot,
                .cpu_milli = (uint32_t)MIN(cpu, (int64_t)SCHED_CPU_MAX),
                .memory = (uint64_t)MIN(memory, (int64_t)SCHED_MEMORY_MAX),
                .gpus = gpus,
        };
        return 0;
}

/* Holds in s, for a job that runs between two times, what it must not use; s is as of the first one. */
static int cast_shadow(struct plan *plan, struct sched *s, const struct entry *e, uint64_t from,
                       uint64_t to) {
        struct shadow *shadow = &plan->shadow;
        int r;

        shadow->n = 0;
        shadow->stamp++;
        for (size_t i = 0; i < plan->n_reservations; i++) {
                const struct reservation *res = plan->reservations[i];
                if (!concerns(plan, res, e, from, to))
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
        for (size_t i = 0; i < shadow->n; i++)
                (void)sched_reserve(s,
                                    shadow->holds + i); /* GPUs that are free, no ports: nothing to refuse */
        return 0;
}

static void lift_shadow(struct plan *plan, struct sched *s) {
        for (size_t i = 0; i < plan->shadow.n; i++)
                sched_release(s, plan->shadow.holds + i);
        plan->shadow.n = 0;
}

/* ---- now
 * ----------------------------------------------------------------------------------------------------------
 */

static void give_back(struct sched *s, const struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++)
                sched_release(s, &p->items[i].hold);
}

static bool on_slot_of(const struct sched_placement *p, const struct reservation *r) {
        for (size_t i = 0; i < p->n; i++)
                for (size_t k = 0; k < r->places.n; k++)
                        if (p->items[i].hold.slot == r->places.items[k].hold.slot)
                                return true;
        return false;
}

/* It fits, but not beside the reservations: the first of them that has something where it would go. */
static uint64_t who_is_ahead(struct plan *plan, struct entry *e, const struct sched_placement *there,
                             uint64_t to) {
        uint64_t any = 0;

        for (size_t i = 0; i < plan->n_reservations; i++) {
                const struct reservation *r = plan->reservations[i];
                if (!concerns(plan, r, e, plan->now, to))
                        continue;
                if (on_slot_of(there, r))
                        return r->entry->job.id;
                any = any ?: r->entry->job.id;
        }
        return any;
}

int plan_place(struct plan *plan, struct entry *e, const struct sched_gang *g, struct sched_placement *ret,
               struct sched_no_fit *ret_why, uint64_t *ret_ahead) {
        struct sched *s = plan->live;
        _cleanup_(sched_placement_done) struct sched_placement there = {};
        uint64_t grown = s->grown, to = entry_end(e, plan->now);
        int r = cast_shadow(plan, s, e, plan->now, to);
        bool shadowed = plan->shadow.n > 0;

        if (r < 0)
                return r;
        r = sched_place(s, g, ret, ret_why);
        lift_shadow(plan, s);
        *ret_ahead = 0;
        if (r == SCHED_E_NO_FIT && shadowed) {
                int q = sched_place(s, g, &there, ret_why);
                if (q == 0) {
                        give_back(s, &there);
                        *ret_ahead = who_is_ahead(plan, e, &there, to);
                }
                r = q < 0 ? q : r;
        }
        s->grown = grown; /* nothing came back but what was lent */
        return r;
}

/* Holds all of it if that is within what the nodes have, or nothing. */
static int take_all(struct sched *s, const struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++) {
                const struct sched_hold *h = &p->items[i].hold;
                int r = h->slot < s->n && s->nodes[h->slot].exists && s->nodes[h->slot].usable
                                ? sched_reserve(s, h)
                                : SCHED_E_NO_FIT;
                if (r == 0) {
                        const struct sched_node *n = &s->nodes[h->slot];
                        if (n->held.cpu_milli <= n->capacity.cpu_milli &&
                            n->held.memory <= n->capacity.memory &&
                            n->held.executors <= n->capacity.executors)
                                continue;
                        sched_release(s, h);
                        r = SCHED_E_NO_FIT;
                }
                while (i-- > 0)
                        sched_release(s, &p->items[i].hold);
                return r;
        }
        return 0;
}

static int copy_places(const struct sched_placement *p, struct sched_placement *ret) {
        _cleanup_(sched_placement_done) struct sched_placement c = {};
        size_t ports = 0;

        for (size_t i = 0; i < p->n; i++)
                ports += p->items[i].hold.n_ports;
        c.items = calloc(p->n + 1, sizeof(*c.items));
        c.ports = calloc(ports + 1, sizeof(*c.ports));
        if (!c.items || !c.ports)
                return -ENOMEM;
        ports = 0;
        for (; c.n < p->n; c.n++) {
                struct sched_hold *h = &c.items[c.n].hold;
                c.items[c.n] = p->items[c.n];
                if (h->n_ports > 0)
                        memcpy(c.ports + ports, h->ports, h->n_ports * sizeof(*c.ports));
                h->ports = c.ports + ports;
                ports += h->n_ports;
        }
        *ret = c;
        c = (struct sched_placement){};
        return 0;
}

/* Places the gang on exactly these nodes, whichever GPUs and ports it gets there. */
static int place_on_nodes(struct sched *s, const struct sched_gang *g, const struct sched_placement *places,
                          struct sched_placement *ret) {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        _cleanup_free_ uint32_t *slots = calloc(places->n + 1, sizeof(*slots));
        size_t n = 0;

        if (!slots)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_shapes; i++) { /* places are by shape */
                size_t first = n;
                shapes[i] = g->shapes[i];
                for (; n < places->n && places->items[n].shape == i; n++)
                        slots[n] = places->items[n].hold.slot;
                if (n == first && shapes[i].min > 0)
                        return SCHED_E_NO_FIT;
                shapes[i].restricted = true;
                shapes[i].allowed = slots + first;
                shapes[i].n_allowed = n - first;
        }
        return sched_place(s, &(struct sched_gang){ shapes, g->n_shapes }, ret, NULL);
}

int plan_place_there(struct plan *plan, struct entry *e, const struct sched_gang *g,
                     const struct sched_placement *places, struct sched_placement *ret) {
        struct sched *s = plan->live;
        uint64_t grown = s->grown;
        struct sched_placement mine;
        int r;

        r = copy_places(places, &mine);
        if (r < 0)
                return r;
        r = cast_shadow(plan, s, e, plan->now, entry_end(e, plan->now));
        if (r == 0)
                r = take_all(s, &mine);
        if (r == 0)
                *ret = mine;
        else {
                sched_placement_done(&mine);
                if (r > 0)
                        r = place_on_nodes(s, g, places, ret);
        }
        lift_shadow(plan, s);
        s->grown = grown;
        return r;
}

/* ---- later
 * ----------------------------------------------------------------------------------------------------------
 */

/* When a run that begins then is over. */
static uint64_t run_end(const struct entry *e, uint64_t start) {
        return e->held_n > 0 && e->started ? MAX(entry_end(e, start), start)
                                           : time_add(start, e->job.duration_usec);
}

static bool concerned(const struct plan *plan, const struct entry *e, uint64_t from, uint64_t to) {
        for (size_t i = 0; i < plan->n_reservations; i++)
                if (concerns(plan, plan->reservations[i], e, from, to))
                        return true;
        return false;
}

static int fits_at(struct plan *plan, struct entry *e, const struct sched_gang *g, uint64_t t,
                   struct sched_placement *ret) {
        struct sched_placement places = {};
        int r;

        plan->fits++;
        seek(plan, t);
        if (concerned(plan, e, t,
                      run_end(e, t))) { /* without them it may not fit either, which is known sooner */
                r = sched_place(plan->copy, g, &places, NULL);
                if (r != 0)
                        return r;
                give_back(plan->copy, &places);
                sched_placement_done(&places);
        }
        r = cast_shadow(plan, plan->copy, e, t, run_end(e, t));
        if (r < 0)
                return r;
        r = sched_place(plan->copy, g, &places, NULL);
        lift_shadow(plan, plan->copy);
        if (r != 0)
                return r;
        give_back(plan->copy, &places);
        if (ret)
                *ret = places;
        else
                sched_placement_done(&places);
        return 0;
}

int plan_fits(struct plan *plan, struct entry *e, const struct sched_gang *g, struct sched_placement *ret) {
        return fits_at(plan, e, g, plan->now, ret);
}

/* Lists the times at which runs end. */
static int list_times(struct plan *plan) {
        struct policy_amount there = {};
        size_t n = 0;

        if (plan->n_times > 0 || plan->n_runs == 0)
                return 0;
        if (!make_room(&plan->times, sizeof(*plan->times), plan->n_runs, &plan->times_allocated))
                return -ENOMEM;
        for (uint32_t i = 0; i < plan->copy->n; i++) {
                const struct sched *s = plan->live;
                there.cpu_milli += (uint32_t)s->cpu[i];
                there.memory += s->memory[i];
                there.gpus += (uint32_t)s->gpus[i];
        }
        for (size_t i = 0; i < plan->n_runs; i++) {
                const struct run *r = plan->runs + plan->by_end[i];
                there.cpu_milli += r->hold.cpu_milli;
                there.memory += r->hold.memory;
                there.gpus += (uint32_t)__builtin_popcountll(r->hold.gpus);
                n += n == 0 || plan->times[n - 1].at != r->end;
                plan->times[n - 1] = (struct moment){ r->end, there };
        }
        plan->n_times = n;
        return 0;
}

/* The first of these times that is later. */
static size_t later_than(const struct plan *plan, uint64_t t) {
        size_t low = 0, high = plan->n_times;

        while (low < high) {
                size_t middle = (low + high) / 2;
                if (plan->times[middle].at <= t)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* The first of these times at which there is enough in sum; UINT64_MAX: there never is. */
static uint64_t enough_from(const struct plan *plan, const struct sched_gang *g) {
        struct policy_amount wanted = gang_amount(g, false);
        size_t low = 0, high = plan->n_times;

        while (low < high) {
                size_t middle = (low + high) / 2;
                const struct policy_amount *a = &plan->times[middle].there;
                if (wanted.cpu_milli > a->cpu_milli || wanted.memory > a->memory || wanted.gpus > a->gpus)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < plan->n_times ? plan->times[low].at : UINT64_MAX;
}

/* The first time after t at which a run or a reservation ends; UINT64_MAX: there is none. */
static uint64_t next_time(const struct plan *plan, const struct entry *e, uint64_t t) {
        size_t i = later_than(plan, t);
        uint64_t next = i < plan->n_times ? plan->times[i].at : UINT64_MAX;

        for (size_t k = 0; k < plan->n_reservations; k++) {
                const struct reservation *r = plan->reservations[k];
                if (r->entry != e && r->end > t)
                        next = MIN(next, r->end);
        }
        return next;
}

static uint64_t last_time(const struct plan *plan, const struct entry *e) {
        uint64_t last = plan->n_times > 0 ? plan->times[plan->n_times - 1].at : 0;

        for (size_t k = 0; k < plan->n_reservations; k++) {
                const struct reservation *r = plan->reservations[k];
                if (r->entry != e && r->end != UINT64_MAX)
                        last = MAX(last, r->end);
        }
        return last;
}

/* The time before which it cannot fit, by what was found for others. */
static uint64_t not_before(const struct plan *plan, const struct entry *e, const struct sched_gang *g) {
        uint64_t t = 0;

        for (size_t i = 0; i < plan->n_found && e->held_n == 0; i++)
                for (size_t k = 0; k < g->n_shapes; k++)
                        if (plan->found[i].duration <= e->job.duration_usec &&
                            shape_takes_as_much(g->shapes + k, &plan->found[i].shape))
                                t = MAX(t, plan->found[i].start);
        return t;
}

static void remember(struct plan *plan, const struct entry *e, const struct sched_gang *g, uint64_t start) {
        if (g->n_shapes == 1 && shape_plain(g->shapes) && e->held_n == 0 && plan->n_found < FOUND_MAX)
                plan->found[plan->n_found++] = (struct found){ g->shapes[0], e->job.duration_usec, start };
}

/* In growing steps from a time at which it does not fit, then back by halves. */
static int leap(struct plan *plan, struct entry *e, const struct sched_gang *g, uint64_t from,
                uint64_t *ret) {
        size_t low = later_than(plan, from), high = low, step = 1;
        uint64_t last = last_time(plan, e);
        int r = SCHED_E_NO_FIT;

        for (; r > 0 && high < plan->n_times; high += step, step *= 2) {
                r = fits_at(plan, e, g, plan->times[high].at, NULL);
                if (r == 0)
                        break;
                low = high + 1;
        }
        if (r > 0) {
                high = plan->n_times;
                r = last > from ? fits_at(plan, e, g, last, NULL) : r;
        }
        while (r == 0 && low < high) {
                size_t middle = (low + high) / 2;
                r = fits_at(plan, e, g, plan->times[middle].at, NULL);
                if (r > 0) {
                        low = middle + 1;
                        r = 0;
                } else
                        high = middle;
        }
        *ret = high < plan->n_times ? plan->times[high].at : last;
        return r;
}

/* The first time at which it fits. One by one first; where much runs, in leaps: those are exact as long as
 * what is given back is not reserved again. */
static int first_fit(struct plan *plan, struct entry *e, const struct sched_gang *g, uint64_t *ret) {
        uint64_t linear = plan->policy->conf.looks / 64, t = MAX(plan->now + 1, not_before(plan, e, g));
        uint64_t enough = plan->n_times > 0 ? enough_from(plan, g) : 0;
        int r;

        if (enough == UINT64_MAX)
                return SCHED_E_NO_FIT;
        for (t = next_time(plan, e, MAX(t, enough) - 1); t != UINT64_MAX; t = next_time(plan, e, t)) {
                r = fits_at(plan, e, g, t, NULL);
                if (r <= 0) {
                        *ret = t;
                        return r;
                }
                if (linear-- <= 1)
                        return leap(plan, e, g, t, ret);
        }
        return SCHED_E_NO_FIT;
}

bool plan_exhausted(const struct plan *plan) {
        return plan->fits > plan->policy->conf.looks;
}

int plan_find(struct plan *plan, struct entry *e, const struct sched_gang *g, struct reservation **ret) {
        struct reservation *res;
        uint64_t t = 0;
        int r = list_times(plan);

        if (r == 0)
                r = first_fit(plan, e, g, &t);
        if (r != 0)
                return r;
        res = calloc(1, sizeof(*res));
        if (!res)
                return -ENOMEM;
        r = fits_at(plan, e, g, t, &res->places);
        if (r != 0) {
                free(res);
                return r;
        }
        res->entry = e;
        remember(plan, e, g, t);
        res->start = t;
        res->end = run_end(e, res->start);
        res->made = plan->now;
        *ret = res;
        return 0;
}

static void empty_hold(void *arg, const struct sched_hold *h) {
        sched_release(arg, h);
}

int plan_possible(struct plan *plan, const struct sched_gang *g) {
        struct policy *p = plan->policy;
        struct sched_placement places;
        int r;

        if (!plan->empty) {
                r = sched_clone(plan->live, &plan->empty);
                if (r < 0)
                        return r;
                for (struct entry *e = p->entries; e; e = e->hh.next)
                        if (e->held_n > 0)
                                p->ops->holds(p->userdata, e->job.id, empty_hold, plan->empty);
        }
        r = sched_place(plan->empty, g, &places, NULL);
        if (r == 0) {
                give_back(plan->empty, &places);
                sched_placement_done(&places);
        }
        return r;
}

/* Whether the node has what a reservation takes there, all the time. */
static bool slot_keeps(const struct plan *plan, uint32_t slot, const struct reservation *r, uint64_t from) {
        const struct own *own = plan->own + slot;
        const struct sched_node *n = &plan->live->nodes[slot];
        uint64_t gpus = n->gpus, t = from;
        int64_t cpu, memory;

        if (!n->exists || !n->usable)
                return false;
        for (uint32_t i = plan->slot_runs[slot]; i != NONE; i = plan->runs[i].next)
                if (plan->runs[i].end <= from)
                        gpus &= ~plan->runs[i].hold.gpus;
        for (uint32_t i = plan->slot_items[slot];;
             i = plan->items[i].next) { /* at from, and whenever another begins */
                const struct item *it = i != NONE ? plan->items + i : NULL;
                if (it && !concerns(plan, it->r, r->entry, from, r->end))
                        continue;
                if (it) {
                        gpus |= it->hold->gpus;
                        t = MAX(begins(plan, it->r), from);
                } else
                        t = from;
                added(plan, slot, r->entry, plan->now, t, &cpu, &memory);
                if ((int64_t)n->held.cpu_milli + cpu + (int64_t)own->cpu > (int64_t)n->capacity.cpu_milli ||
                    (int64_t)n->held.memory + memory + (int64_t)own->memory > (int64_t)n->capacity.memory)
                        return false;
                if (!it)
                        break;
        }
        return (own->gpus & (gpus | ~gpus_of(&n->capacity))) == 0;
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

/* ----
 * ----------------------------------------------------------------------------------------------------------
 */

int plan_new(struct policy *p, uint64_t now, struct plan **ret) {
        _cleanup_(plan_free_p) struct plan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan)
                return -ENOMEM;
        plan->policy = p;
        plan->live = p->sched;
        plan->now = plan->at = now;
        plan->n_slots = p->sched->n;
        plan->sign = mix(mix(1, p->sched->grown), p->changes);
        plan->slot_runs = calloc((size_t)plan->n_slots + 1, sizeof(uint32_t));
        plan->slot_items = calloc((size_t)plan->n_slots + 1, sizeof(uint32_t));
        plan->shadow.stamps = calloc((size_t)plan->n_slots + 1, sizeof(uint32_t));
        if (!plan->slot_runs || !plan->slot_items || !plan->shadow.stamps)
                return -ENOMEM;
        for (uint32_t i = 0; i < plan->n_slots; i++)
                plan->slot_runs[i] = plan->slot_items[i] = NONE;
        r = sched_clone(p->sched, &plan->copy);
        plan->building = true;
        for (struct entry *e = p->entries; e && r >= 0; e = e->hh.next)
                r = add_entry(plan, e);
        if (r < 0)
                return r;
        plan->building = false;
        sort_by_end(plan);
        *ret = TAKE_PTR(plan);
        return 0;
}

struct plan *plan_free(struct plan *plan) {
        if (!plan)
                return NULL;
        sched_free(plan->copy);
        sched_free(plan->empty);
        free(plan->slot_runs);
        free(plan->slot_items);
        free(plan->runs);
        free(plan->by_end);
        free(plan->items);
        free(plan->reservations);
        free(plan->shadow.holds);
        free(plan->shadow.stamps);
        free(plan->times);
        free(plan->own);
        free(plan);
        return NULL;
}
