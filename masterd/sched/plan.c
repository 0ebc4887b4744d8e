/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a pass: who holds what until when. A copy of the scheduler is moved through time by giving back
 * what ends. Invariant: the copy is the live scheduler as it will be at plan->at, less what entries with .out
 * hold; outside of a function that is now. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/plan-internal.h"

struct reservation *reservation_free(struct reservation *r) {
        if (r)
                sched_placement_done(&r->places);
        free(r);
        return NULL;
}
bool plan_room(void *array, size_t element, size_t n, size_t *allocated) {
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

uint64_t plan_mix(uint64_t a, uint64_t b) {
        a = (a ^ b) * UINT64_C(0xbf58476d1ce4e5b9);
        return a ^ (a >> 29);
}

/* ---- what ends when ---- */

/* A time in the future, if the one that was said has come and gone. */
uint64_t plan_not_past(const struct plan *plan, uint64_t t) {
        return t > plan->now ? t : time_add(plan->now, OVERDUE_USEC);
}

/* When a run without a limit ends nobody knows. The guess is that it goes on for as long as it has gone by
 * now. */
static uint64_t expected_end(const struct plan *plan, const struct entry *e, bool *ret_guess) {
        uint64_t end = entry_end(e, plan->now);

        *ret_guess = end == UINT64_MAX;
        if (*ret_guess)
                end = time_add(plan->now,
                               MAX(time_sub(plan->now, e->started), plan->policy->conf.patience_usec));
        return plan_not_past(plan, end);
}

/* Whether what it holds is given back in the copy at its end. */
static bool ends(const struct plan *plan, const struct run *r) {
        return !r->entry->out && (plan->guessing || !r->guess);
}

/* Moves the copy to a time. */
void plan_seek(struct plan *plan, uint64_t t) {
        while (plan->released < plan->n_runs) {
                const struct run *r = plan->runs + plan->by_end[plan->released];
                if (r->end > t)
                        break;
                if (ends(plan, r))
                        sched_release(plan->copy, &r->hold);
                plan->released++;
        }
        while (plan->released > 0) {
                const struct run *r = plan->runs + plan->by_end[plan->released - 1];
                if (r->end <= t)
                        break;
                if (ends(plan, r))
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

static int add_run(struct plan *plan, struct entry *e, uint64_t end, bool guess,
                   const struct sched_hold *hold) {
        size_t n = plan->runs_allocated; /* of both arrays */
        uint32_t index = (uint32_t)plan->n_runs;

        if (hold->slot >= plan->n_slots)
                return 0;
        if (!plan_room(&plan->runs, sizeof(*plan->runs), plan->n_runs + 1, &n))
                return -ENOMEM;
        if (!plan_room(&plan->by_end, sizeof(*plan->by_end), plan->n_runs + 1, &plan->runs_allocated))
                return -ENOMEM;
        plan->runs[index] = (struct run){ end, e, *hold, plan->slot_runs[hold->slot], guess };
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
        if (plan->n_runs > 0)
                qsort_r(plan->by_end, plan->n_runs, sizeof(*plan->by_end), compare_ends, plan);
        plan->n_times = 0;
}

struct adding {
        struct plan *plan;
        struct entry *entry;
        uint64_t end;
        bool guess;
};

static void add_hold(void *arg, const struct sched_hold *h) {
        struct adding *a = arg;

        if (a->plan->error >= 0)
                a->plan->error = add_run(a->plan, a->entry, a->end, a->guess, h);
}

/* What the entry holds ends when it does. */
static int add_entry(struct plan *plan, struct entry *e) {
        struct adding a = { .plan = plan, .entry = e };

        if (e->held_n == 0)
                return 0;
        a.end = expected_end(plan, e, &a.guess);
        plan->policy->ops->holds(plan->policy->userdata, e->job.id, add_hold, &a);
        return plan->error;
}

static void start_hold(void *arg, const struct sched_hold *h) {
        struct adding *a = arg;

        if (a->plan->error >= 0 && sched_reserve(a->plan->copy, h) == 0)
                a->plan->error = add_run(a->plan, a->entry, a->end, a->guess, h);
}

int plan_started(struct plan *plan, struct entry *e, const struct sched_placement *places) {
        struct adding a = { .plan = plan, .entry = e };

        plan_seek(plan, plan->now);
        a.end = expected_end(plan, e, &a.guess);
        plan->sign = plan_mix(plan->sign, e->job.id);
        if (e->held_n ==
            places->n) /* all that it has is new: as its owner has it, for places are about to go */
                plan->policy->ops->holds(plan->policy->userdata, e->job.id, start_hold, &a);
        else
                for (size_t i = 0; i < places->n; i++) {
                        struct sched_hold hold = places->items[i].hold;
                        hold.ports = NULL;
                        hold.cpus = NULL;
                        hold.amounts = NULL;
                        hold.n_ports = hold.n_amounts = 0;
                        start_hold(&a, &hold);
                }
        return plan->error;
}

int plan_leaves(struct plan *plan, struct entry *e) {
        bool known = false, guess;
        uint64_t end = expected_end(plan, e, &guess);

        plan_seek(plan, plan->now);
        for (size_t i = 0; i < plan->n_runs; i++)
                if (plan->runs[i].entry == e) {
                        plan->runs[i].end = end;
                        plan->runs[i].guess = guess;
                        known = true;
                }
        plan->sign = plan_mix(plan->sign, ~e->job.id);
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
        struct adding a = { .plan = plan, .entry = e };

        if (e->out == out)
                return 0;
        plan_seek(plan, plan->now); /* nothing has ended then, so all that it holds is in the copy */
        e->out = out;
        plan->policy->ops->holds(plan->policy->userdata, e->job.id, add_out, &a);
        return plan->error;
}
int plan_new(struct policy *p, uint64_t now, struct plan **ret) {
        _cleanup_(plan_free_p) struct plan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan)
                return -ENOMEM;
        plan->policy = p;
        plan->live = p->sched;
        plan->now = plan->at = now;
        plan->n_slots = p->sched->n;
        plan->sign = plan_mix(plan_mix(1, p->sched->grown), p->changes);
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
