/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the time at which a job fits. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/plan-internal.h"

/* When a run that begins then is over. */
static uint64_t run_end(const struct entry *e, uint64_t start) {
        return e->held_n > 0 && e->started ? MAX(entry_end(e, start), start)
                                           : time_add(start, e->job.duration_usec);
}

static bool concerned(const struct plan *plan, const struct entry *e, uint64_t from, uint64_t to) {
        for (size_t i = 0; i < plan->n_reservations; i++)
                if (plan_concerns(plan, plan->reservations[i], e, from, to))
                        return true;
        return false;
}

static int fits_at(struct plan *plan, struct entry *e, const struct sched_gang *g, uint64_t t,
                   struct sched_placement *ret) {
        struct sched_placement places = {};
        int r;

        plan->fits++;
        plan->policy->work += plan->n_slots;
        plan_seek(plan, t);
        if (concerned(plan, e, t,
                      run_end(e, t))) { /* without them it may not fit either, which is known sooner */
                r = sched_place(plan->copy, g, &places, NULL);
                if (r != 0)
                        return r;
                places_give_back(plan->copy, &places);
                sched_placement_done(&places);
        }
        r = shadow_cast(plan, plan->copy, e, t, run_end(e, t));
        if (r < 0)
                return r;
        r = sched_place(plan->copy, g, &places, NULL);
        shadow_lift(plan, plan->copy);
        if (r != 0)
                return r;
        places_give_back(plan->copy, &places);
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
        if (!plan_room(&plan->times, sizeof(*plan->times), plan->n_runs, &plan->times_allocated))
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
                if (r->entry != e && reservation_over(plan, r) > t)
                        next = MIN(next, reservation_over(plan, r));
        }
        return next;
}

static uint64_t last_time(const struct plan *plan, const struct entry *e) {
        uint64_t last = plan->n_times > 0 ? plan->times[plan->n_times - 1].at : 0;

        for (size_t k = 0; k < plan->n_reservations; k++) {
                const struct reservation *r = plan->reservations[k];
                if (r->entry != e && reservation_over(plan, r) != UINT64_MAX)
                        last = MAX(last, reservation_over(plan, r));
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

static void remember_start(struct plan *plan, const struct entry *e, const struct sched_gang *g,
                           uint64_t start) {
        if (g->n_shapes == 1 && shape_plain(g, g->shapes) && e->held_n == 0 && plan->n_found < FOUND_MAX)
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
        return plan->fits > plan->policy->conf.looks || policy_tired(plan->policy);
}

static int find_start(struct plan *plan, struct entry *e, const struct sched_gang *g,
                      struct sched_placement *ret, uint64_t *ret_start) {
        uint64_t t = 0;
        int r = list_times(plan);

        if (r == 0)
                r = first_fit(plan, e, g, &t);
        if (r == 0)
                r = fits_at(plan, e, g, t, ret);
        if (r == 0)
                *ret_start = t;
        return r;
}

int plan_find(struct plan *plan, struct entry *e, const struct sched_gang *g, struct reservation **ret) {
        struct reservation *res = calloc(1, sizeof(*res));
        int r;

        if (!res)
                return -ENOMEM;
        r = find_start(plan, e, g, &res->places, &res->start);
        if (r == 0)
                remember_start(plan, e, g, res->start);
        else if (r > 0) { /* something goes on for nobody knows how long */
                plan_seek(plan, plan->now);
                plan->guessing = res->guess = true;
                r = find_start(plan, e, g, &res->places, &res->start);
                plan_seek(plan, plan->now);
                plan->guessing = false;
        }
        if (r != 0) {
                free(res);
                return r;
        }
        res->entry = e;
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
                places_give_back(plan->empty, &places);
                sched_placement_done(&places);
        }
        return r;
}
