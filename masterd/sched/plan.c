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

#define LINEAR 64u /* times tried one by one before steps become larger */

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

struct shadow {
        struct sched_hold *holds;
        size_t n, allocated;
        uint32_t *stamps; /* by slot */
        uint32_t stamp;
};

struct plan {
        struct policy *policy;
        struct sched *live, *copy;
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
        uint64_t *times; /* scratch */
        size_t times_allocated;
        int error; /* of a callback */
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
        insert_by_end(plan, index);
        return 0;
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
        size_t n = plan->n_runs;
        bool known = false;

        seek(plan, plan->now);
        for (size_t i = 0; i < n; i++)
                if (plan->runs[i].entry == e) {
                        plan->runs[i].end = end;
                        known = true;
                }
        plan->sign = mix(plan->sign, ~e->job.id);
        if (!known)
                return add_entry(plan, e);
        plan->n_runs = 0;
        for (size_t i = 0; i < n; i++)
                insert_by_end(plan, (uint32_t)i);
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

static int fits_at(struct plan *plan, struct entry *e, const struct sched_gang *g, uint64_t t,
                   struct sched_placement *ret) {
        struct sched_placement places = {};
        int r;

        seek(plan, t);
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

static int compare_times(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

/* The times at which something is given back that is not before. */
static int list_times(struct plan *plan, const struct entry *e, size_t *ret_n) {
        uint64_t *t;
        size_t n = 0, k = 0, m = 0, runs;

        if (!make_room(&plan->times, sizeof(*plan->times), 2 * (plan->n_runs + plan->n_reservations) + 1,
                       &plan->times_allocated))
                return -ENOMEM;
        t = plan->times + plan->n_runs + plan->n_reservations;
        for (size_t i = 0; i < plan->n_reservations; i++) {
                const struct reservation *r = plan->reservations[i];
                if (r->entry != e && r->end > plan->now && r->end != UINT64_MAX)
                        t[n++] = r->end;
        }
        qsort(t, n, sizeof(*t), compare_times);
        for (runs = 0; runs < plan->n_runs || k < n;) { /* both are sorted */
                uint64_t a = runs < plan->n_runs ? plan->runs[plan->by_end[runs]].end : UINT64_MAX,
                         b = k < n ? t[k] : UINT64_MAX, next = MIN(a, b);
                runs += a == next;
                k += b == next && k < n;
                if (m == 0 || plan->times[m - 1] != next)
                        plan->times[m++] = next;
        }
        *ret_n = m;
        return 0;
}

/* The first time at which there is enough in sum. */
static size_t enough_from(const struct plan *plan, const struct sched_gang *g, size_t n) {
        struct policy_amount wanted = gang_amount(g, false), there = {};
        const struct sched *s = plan->live;
        size_t i = 0;

        for (uint32_t k = 0; k < s->n; k++) {
                there.cpu_milli += (uint32_t)s->cpu[k];
                there.memory += s->memory[k];
                there.gpus += (uint32_t)s->gpus[k];
        }
        for (size_t k = 0; k < n; k++) {
                for (; i < plan->n_runs && plan->runs[plan->by_end[i]].end <= plan->times[k]; i++) {
                        const struct sched_hold *h = &plan->runs[plan->by_end[i]].hold;
                        there.cpu_milli += h->cpu_milli;
                        there.memory += h->memory;
                        there.gpus += (uint32_t)__builtin_popcountll(h->gpus);
                }
                if (wanted.cpu_milli <= there.cpu_milli && wanted.memory <= there.memory &&
                    wanted.gpus <= there.gpus)
                        return k;
        }
        return n;
}

/* The index of the first time at which it fits. One by one first; where many jobs run, in growing steps and
 * back by halves: that is exact as long as what is given back is not reserved again. */
static int first_fit(struct plan *plan, struct entry *e, const struct sched_gang *g, size_t n, size_t *ret) {
        size_t low = enough_from(plan, g, n), high = low, step = 1, tried = 0;
        int r;

        if (low == n)
                return SCHED_E_NO_FIT;
        r = fits_at(plan, e, g, plan->times[n - 1], NULL); /* when all is over */
        if (r != 0)
                return r;
        for (;; high = MIN(high + step, n - 1)) {
                r = fits_at(plan, e, g, plan->times[high], NULL);
                if (r <= 0)
                        break;
                low = high + 1;
                step = ++tried < LINEAR ? 1 : step * 2;
        }
        while (r == 0 && low < high) {
                size_t middle = (low + high) / 2;
                r = fits_at(plan, e, g, plan->times[middle], NULL);
                if (r > 0) {
                        low = middle + 1;
                        r = 0;
                } else
                        high = middle;
        }
        *ret = high;
        return r;
}

int plan_find(struct plan *plan, struct entry *e, const struct sched_gang *g, struct reservation **ret) {
        struct reservation *res;
        size_t n, k = 0;
        int r = list_times(plan, e, &n);

        if (r == 0)
                r = n == 0 ? SCHED_E_NO_FIT : first_fit(plan, e, g, n, &k);
        if (r != 0)
                return r;
        res = calloc(1, sizeof(*res));
        if (!res)
                return -ENOMEM;
        r = fits_at(plan, e, g, plan->times[k], &res->places);
        if (r != 0) {
                free(res);
                return r;
        }
        res->entry = e;
        res->start = plan->times[k];
        res->end = run_end(e, res->start);
        *ret = res;
        return 0;
}

bool plan_keeps(struct plan *plan, const struct reservation *r) {
        uint64_t t = MAX(r->start, plan->now);
        struct sched_placement mine = {};
        bool keeps;

        seek(plan, t);
        if (copy_places(&r->places, &mine) < 0)
                return false;
        for (size_t i = 0; i < mine.n; i++)
                mine.items[i].hold.n_ports = 0;
        keeps = cast_shadow(plan, plan->copy, r->entry, t, r->end) == 0 && take_all(plan->copy, &mine) == 0;
        if (keeps)
                give_back(plan->copy, &mine);
        lift_shadow(plan, plan->copy);
        sched_placement_done(&mine);
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
        for (struct entry *e = p->entries; e && r >= 0; e = e->hh.next)
                r = add_entry(plan, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(plan);
        return 0;
}

struct plan *plan_free(struct plan *plan) {
        if (!plan)
                return NULL;
        sched_free(plan->copy);
        free(plan->slot_runs);
        free(plan->slot_items);
        free(plan->runs);
        free(plan->by_end);
        free(plan->items);
        free(plan->reservations);
        free(plan->shadow.holds);
        free(plan->shadow.stamps);
        free(plan->times);
        free(plan);
        return NULL;
}
