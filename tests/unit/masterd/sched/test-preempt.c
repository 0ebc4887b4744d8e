/* SPDX-License-Identifier: Apache-2.0 */
/* Who is stopped for whom: enough, none too many, and among few candidates nobody cheaper; compared with all
 * other choices there are. */
#include "sim/world.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/random.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND UINT64_C(1000000)
#define JOBS 24u

static const struct policy_amount no_limit = { UINT64_MAX, UINT64_MAX, UINT32_MAX };

struct watch {
        struct world w;
        struct sched *before; /* as it was when the first victim of a pass was named */
        size_t by;            /* for whom; NULL before: nobody yet */
        uint64_t victims;     /* bits of jobs */
        uint64_t candidates;  /* jobs that might have been */
        uint64_t costs[JOBS];
        bool several; /* somebody was being stopped anyway, or more than one job had others stopped */
        uint32_t choices, compared;
};

static uint64_t cost_of(const struct world *w, size_t i) {
        const struct world_job *j = w->jobs + i;
        uint64_t ran = w->now - j->started;

        return (j->savepoint ? ran % j->savepoint : ran) * j->places.n + 1;
}

/* Whether the job fits when these have gone. */
static bool fits_without(const struct watch *x, uint64_t gone) {
        const struct world_job *by = x->w.jobs + x->by;
        struct sched_placement places = {};
        _cleanup_(sched_free_p) struct sched *s = NULL;
        int r;

        assert_int_equal(sched_clone(x->before, &s), 0);
        for (size_t i = 0; i < JOBS; i++)
                for (size_t k = 0; gone >> i & 1 && k < x->w.jobs[i].places.n; k++)
                        sched_release(s, &x->w.jobs[i].places.items[k].hold);
        r = sched_place(s, &(struct sched_gang){ by->shapes, by->n_shapes }, &places, NULL);
        assert_true(r >= 0);
        sched_placement_done(&places);
        return r == 0;
}

static void named(void *userdata, size_t victim, size_t by) {
        struct watch *x = userdata;

        if (x->before && by != x->by)
                x->several = true;
        if (!x->before) {
                assert_int_equal(sched_clone(x->w.sched, &x->before), 0);
                x->by = by;
                for (size_t i = 0; i < x->w.n_jobs; i++) {
                        const struct world_job *j = x->w.jobs + i;
                        /* What somebody's victims leave is kept for him, which is not to be seen from here.
                         */
                        x->several |= j->state == WORLD_LEAVING ||
                                      (j->state == WORLD_WAITING && j->why.reason == POLICY_PREEMPTING);
                        x->costs[i] = j->state == WORLD_RUNNING ? cost_of(&x->w, i) : 0;
                        if (j->state == WORLD_RUNNING && j->preemptible &&
                            j->priority < x->w.jobs[by].priority)
                                x->candidates |= UINT64_C(1) << i;
                }
        }
        if (by == x->by) {
                assert_true(x->candidates >> victim & 1);
                x->victims |= UINT64_C(1) << victim;
        }
}

static uint64_t sum(const struct watch *x, uint64_t jobs) {
        uint64_t total = 0;

        for (size_t i = 0; i < JOBS; i++)
                total += jobs >> i & 1 ? x->costs[i] : 0;
        return total;
}

static void compare(struct watch *x) {
        uint64_t cost = sum(x, x->victims), subset = 0;

        if (!fits_without(x, x->victims))
                fprintf(stderr, "seed %" PRIu64 ", %zu by %" PRIx64 "\n", seed, x->by, x->victims);
        assert_true(fits_without(x, x->victims));
        for (size_t i = 0; i < JOBS; i++) /* without any one of them it does not fit */
                if (x->victims >> i & 1)
                        assert_false(fits_without(x, x->victims & ~(UINT64_C(1) << i)));
        if (__builtin_popcountll(x->candidates) > 10)
                return;
        x->compared++;
        do { /* all subsets of the candidates */
                if (sum(x, subset) < cost)
                        assert_false(fits_without(x, subset));
                subset = (subset - x->candidates) & x->candidates;
        } while (subset != 0);
}

static void passed(void *userdata) {
        struct watch *x = userdata;

        if (x->before && !x->several) {
                x->choices++;
                compare(x);
        }
        x->before = sched_free(x->before);
        x->victims = x->candidates = 0;
        x->several = false;
}

static void one_world(uint64_t s, struct watch *x) {
        struct policy_pool pool = {
                .name = "default", .weight = 1, .limit = no_limit, .user_limit = no_limit, .preempts = true
        };
        struct policy_conf conf;
        uint64_t at = 0;

        seed = s;
        policy_conf_defaults(&conf);
        conf.aging_usec = 0;
        conf.min_run_usec = 0;
        conf.reservations = 0; /* what is reserved for others would have to be compared, too */
        assert_int_equal(world_init(&x->w, &conf, random_below(3) * 2 * SECOND), 0);
        assert_int_equal(policy_pool_set(x->w.policy, &pool, NULL), 0);
        x->w.userdata = x;
        x->w.preempt = named;
        x->w.pass = passed;
        for (uint32_t i = 0, n = 1 + random_below(5), gpus = random_below(2) * 8; i < n; i++) {
                struct sched_capacity c = { 1000 * (4 + random_below(12)), 64 * GIB, gpus, 0, 0, 100 };
                assert_int_equal(world_add_host(&x->w, &c, NULL), 0);
        }
        for (size_t i = 0; i < JOBS; i++) {
                struct world_job j = { .priority = (int32_t)random_below(5),
                                       .preemptible = random_below(5) > 0,
                                       .limit = UINT64_MAX,
                                       .n_shapes = 1 + random_below(2) };
                j.submitted = at += random_below(10) * SECOND;
                j.runtime = (1 + random_below(100)) * SECOND;
                j.savepoint = random_below(3) * 10 * SECOND;
                for (uint32_t k = 0; k < j.n_shapes; k++) {
                        uint32_t count = 1 + random_below(random_below(3) ? 2 : 5);
                        j.shapes[k] = (struct sched_shape){ .min = count,
                                                            .max = count,
                                                            .cpu_milli = 1000 * (1 + random_below(6)),
                                                            .gpus = random_below(4) ? 0 : random_below(4) };
                }
                assert_int_equal(world_add_job(&x->w, &j, NULL), 0);
        }
        assert_int_equal(world_run(&x->w, 100000 * SECOND), 0);
        world_done(&x->w);
}

static void test_no_better_choice(void **state) {
        uint32_t choices = 0, compared = 0;

        for (uint64_t s = 1; s <= 600; s++) {
                struct watch x = {};
                one_world(s * 7919, &x);
                choices += x.choices;
                compared += x.compared;
        }
        print_message("%u choices of victims, %u of them compared with all others\n", choices, compared);
        assert_true(compared > 500);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_better_choice),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
