/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts those that wait would need: the cheapest sufficient set, a gang whole or nothing, in the
 * queue's order, within limits; and nothing has changed by asking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/sched/demand.h"
#include "tests/kit/policy-kit.h"

#define GIB (UINT64_C(1) << 30)

static struct demand_shape shape(uint32_t cpus, uint32_t gpus, uint32_t free, uint64_t cost) {
        return (struct demand_shape){ .capacity = { .cpu_milli = cpus * 1000,
                                                    .memory = 64 * GIB,
                                                    .gpus = gpus,
                                                    .executors = 100,
                                                    .port_first = 20000,
                                                    .port_last = 20999,
                                                    .shm = GIB },
                                      .free = free,
                                      .cost = cost };
}

static struct demand ask_for(struct owner *o, const struct demand_shape *shapes, size_t n) {
        struct demand d;

        assert_int_equal(
                policy_demand(o->policy, o->now, &(struct demand_ask){ .shapes = shapes, .n_shapes = n }, &d),
                0);
        return d;
}

static const struct demand_job *of(const struct demand *d, uint64_t id) {
        for (size_t i = 0; i < d->n; i++)
                if (d->jobs[i].id == id)
                        return d->jobs + i;
        fail_msg("job %llu is not in it", (unsigned long long)id);
        return NULL;
}

#define assert_wants(d, id, ...)                                                                             \
        do {                                                                                                 \
                const uint32_t n_[] = { __VA_ARGS__ };                                                       \
                const struct demand_job *j_ = of(d, id);                                                     \
                assert_int_equal(j_->verdict, DEMAND_NEW);                                                   \
                for (size_t i_ = 0; i_ < ELEMENTSOF(n_); i_++)                                               \
                        assert_int_equal(j_->n[i_], n_[i_]);                                                 \
        } while (0)

/* A cluster without a single host. */
static void test_from_nothing(void **state) {
        const struct demand_shape shapes[] = { shape(4, 0, 10, 1) };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 0, 4, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 6, 2);
        assert_int_equal(policy_kit_run(&o), 0);
        d = ask_for(&o, shapes, 1);
        assert_wants(&d, 1, 3);
        demand_done(&d);
        d = ask_for(&o, shapes, 1); /* nothing was held by asking */
        assert_wants(&d, 1, 3);
        assert_false(d.cut);
        demand_done(&d);
        policy_kit_end(&o);
}

static void test_beside_what_is_there(void **state) {
        const struct demand_shape shapes[] = { shape(4, 0, 10, 1) };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 2, 4, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 5, 2); /* four fit on what is there: the gang needs one more */
        policy_kit_submit(&o, 2, 0, 7, 0, 1, 2); /* beside the fifth */
        policy_kit_submit(&o, 3, 0, 7, 0, 1, 3); /* not any more */
        assert_int_equal(policy_kit_run(&o),
                         0 + 2); /* the small ones start on what the gang cannot use yet */
        d = ask_for(&o, shapes, 1);
        assert_wants(&d, 1, 2);
        assert_true(d.slots[0] || d.slots[1]); /* and what is left of those that are there */
        demand_done(&d);
        policy_kit_end(&o);
}

static void test_the_cheapest_set(void **state) {
        /* By a GPU hour: large 8 for 8 GPUs, small 1.5 for one. */
        struct demand_shape shapes[] = { shape(64, 8, 10, 80), shape(8, 1, 100, 15), shape(16, 0, 10, 5) };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 0, 4, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 4, 4);
        o.shapes[1].gpus = 1;
        d = ask_for(&o, shapes, 3);
        assert_wants(&d, 1, 0, 4, 0); /* 60, not 80 */
        demand_done(&d);
        o.shapes[1].min = o.shapes[1].max = 8;
        d = ask_for(&o, shapes, 3);
        assert_wants(&d, 1, 1, 0, 0); /* 80, not 120 */
        demand_done(&d);
        o.shapes[1].gpus = 0;
        d = ask_for(&o, shapes, 3);
        assert_wants(&d, 1, 0, 0, 2); /* no GPUs are paid for where none is asked for */
        demand_done(&d);
        o.shapes[1].gpus = 1;
        shapes[0].free = 0;
        d = ask_for(&o, shapes, 3);
        assert_wants(&d, 1, 0, 8, 0);
        demand_done(&d);
        policy_kit_end(&o);
}

static void test_whole_or_nothing(void **state) {
        struct demand_shape shapes[] = { shape(4, 0, 3, 1) };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 0, 4, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 4, 4);
        policy_kit_submit(&o, 2, 0, 8, 0, 2, 4); /* the one behind it does not wait for that */
        policy_kit_submit(&o, 3, 0, 9, 0, 1, 5);
        d = ask_for(&o, shapes, 1);
        assert_int_equal(of(&d, 1)->verdict, DEMAND_FULL);
        assert_wants(&d, 2, 2);
        assert_int_equal(of(&d, 3)->verdict, DEMAND_NO_SHAPE);
        demand_done(&d);
        shapes[0].free = 4;
        d = ask_for(&o, shapes, 1);
        assert_wants(&d, 1, 4);
        assert_int_equal(of(&d, 2)->verdict, DEMAND_FULL); /* they are the first one's */
        demand_done(&d);
        policy_kit_end(&o);
}

/* As many as its limits and the provider's allow, of one that may be smaller. */
static void test_elastic(void **state) {
        const struct demand_shape shapes[] = { shape(4, 0, 3, 1) };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 0, 4, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 10, 2);
        o.shapes[1].min = 1;
        d = ask_for(&o, shapes, 1);
        assert_wants(&d, 1, 3);
        demand_done(&d);
        policy_kit_end(&o);
}

static void test_limits(void **state) {
        const struct demand_shape shapes[] = { shape(4, 0, 10, 1) };
        struct policy_pool pool = { .name = "default",
                                    .weight = 1,
                                    .limit = { UINT64_MAX, UINT64_MAX, UINT32_MAX },
                                    .user_limit = { 4000, UINT64_MAX, UINT32_MAX } };
        struct demand d;
        struct owner o;
        uint32_t index;

        policy_kit_begin(&o, 0, 4, NULL);
        assert_int_equal(policy_pool_set(o.policy, &pool, &index), 0);
        policy_kit_submit(&o, 1, 0, 7, 0, 2, 2);
        policy_kit_submit(&o, 2, 0, 7, 0, 1, 2); /* with the first one, its user is at the limit */
        policy_kit_submit(&o, 3, 0, 8, 0, 1, 4);
        for (unsigned i = 0; i < 2; i++) { /* the ledgers are as before */
                d = ask_for(&o, shapes, 1);
                assert_wants(&d, 1, 1);
                assert_int_equal(of(&d, 2)->verdict, DEMAND_LIMIT);
                assert_wants(&d, 3, 1);
                demand_done(&d);
        }
        policy_kit_end(&o);
}

static bool first_pool(const void *userdata, uint32_t pool, uint64_t job) {
        return pool == 0;
}

static bool not_first_job(const void *userdata, uint32_t pool, uint64_t job) {
        return job != 1;
}

static void test_whose_jobs(void **state) {
        struct demand_shape shapes[] = { shape(4, 0, 10, 1) };
        struct policy_pool pool = { .name = "night", .weight = 1 };
        struct demand d;
        struct owner o;
        uint32_t index;

        pool.limit = pool.user_limit = (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX };
        policy_kit_begin(&o, 0, 4, NULL);
        assert_int_equal(policy_pool_set(o.policy, &pool, &index), 0);
        policy_kit_submit(&o, 1, index, 7, 0, 1, 2);
        policy_kit_submit(&o, 2, 0, 7, 0, 1, 2);
        shapes[0].serves = first_pool;
        d = ask_for(&o, shapes, 1);
        assert_int_equal(of(&d, 1)->verdict, DEMAND_NO_SHAPE);
        assert_wants(&d, 2, 1);
        demand_done(&d);
        policy_kit_end(&o);
}

/* A gang that is larger than anything takes nobody else's hosts away by being dear to look at. */
static void test_one_that_is_dear(void **state) {
        struct demand_shape shapes[16];
        struct demand d;
        struct owner o;

        for (uint32_t i = 0; i < ELEMENTSOF(shapes); i++)
                shapes[i] = shape(4 + i, 0, 5, i + 1);
        policy_kit_begin(&o, 0, 4, NULL);
        policy_kit_submit(&o, 1, 0, 8, 10, 600, 1000);
        for (uint64_t id = 2; id < 40; id++)
                policy_kit_submit(&o, id, 0, 7, 0, 1, 2);
        assert_int_equal(policy_kit_run(&o), 0);
        d = ask_for(&o, shapes, ELEMENTSOF(shapes));
        assert_int_equal(of(&d, 1)->verdict, DEMAND_NO_SHAPE);
        assert_wants(&d, 2, 1);
        assert_int_equal(d.n, 39);
        assert_false(d.cut);
        demand_done(&d);
        policy_kit_end(&o);
}

/* That nothing would do for one says nothing of the next that wants the same, if others may be made for it.
 */
static void test_whose_jobs_alike(void **state) {
        struct demand_shape shapes[] = { shape(4, 0, 10, 1) };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 0, 4, NULL);
        for (uint64_t id = 1; id <= 3; id++)
                policy_kit_submit(&o, id, 0, 7, 0, 1, 2);
        assert_int_equal(policy_kit_run(&o), 0);
        shapes[0].serves = not_first_job;
        d = ask_for(&o, shapes, 1);
        assert_int_equal(of(&d, 1)->verdict, DEMAND_NO_SHAPE);
        assert_wants(&d, 2, 1);
        assert_int_equal(of(&d, 3)->verdict, DEMAND_HERE);
        demand_done(&d);
        policy_kit_end(&o);
}

/* What is on its way counts first, and what takes nothing for the moment but could be had back. */
static void test_coming_and_back(void **state) {
        const struct demand_shape shapes[] = { shape(4, 0, 10, 1) };
        const uint32_t coming[] = { 0, 0, 0 }, back[] = { 0 };
        struct demand_ask ask = { .shapes = shapes, .n_shapes = 1, .coming = coming, .n_coming = 3 };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 1, 4, NULL);
        sched_node_set_usable(o.sched, 0, false);
        policy_kit_submit(&o, 1, 0, 7, 0, 2, 4);
        assert_int_equal(policy_kit_run(&o), 0);
        assert_int_equal(policy_demand(o.policy, o.now, &ask, &d), 0);
        assert_int_equal(of(&d, 1)->verdict, DEMAND_HERE);
        assert_false(d.slots[0]);
        assert_int_equal((d.coming[0] == 1) + (d.coming[1] == 1) + (d.coming[2] == 1), 2);
        demand_done(&d);
        ask.back = back;
        ask.n_back = 1;
        ask.n_coming = 1;
        assert_int_equal(policy_demand(o.policy, o.now, &ask, &d), 0);
        assert_int_equal(of(&d, 1)->verdict, DEMAND_HERE);
        assert_true(d.slots[0]);
        assert_int_equal(d.coming[0], 1);
        demand_done(&d);
        policy_kit_end(&o);
}

/* Who starts by itself before a host would be there does not bring one. */
static void test_soon(void **state) {
        const struct demand_shape shapes[] = { shape(4, 0, 10, 1) };
        struct demand_ask ask = { .shapes = shapes, .n_shapes = 1, .boot_usec = 60 * SECOND };
        struct policy_job job = { .id = 1, .user = 7, .duration_usec = 100 * SECOND };
        struct demand d;
        struct owner o;

        policy_kit_begin(&o, 1, 4, NULL);
        o.shapes[1] = (struct sched_shape){ .min = 1, .max = 1, .cpu_milli = 4000 };
        job.submitted = o.now;
        assert_int_equal(policy_job_add(o.policy, &job), 0);
        assert_int_equal(policy_job_wants(o.policy, 1), 0);
        assert_int_equal(policy_kit_run(&o), 1);
        policy_kit_submit(&o, 2, 0, 7, 0, 1, 4);
        assert_int_equal(policy_kit_run(&o), 0);
        assert_int_equal(policy_demand(o.policy, o.now, &ask, &d), 0);
        assert_wants(&d, 2, 1); /* in 100 s */
        demand_done(&d);
        o.now += 50 * SECOND;
        assert_int_equal(policy_kit_run(&o), 0);
        assert_int_equal(policy_demand(o.policy, o.now, &ask, &d), 0);
        assert_int_equal(of(&d, 2)->verdict, DEMAND_SOON);
        demand_done(&d);
        policy_kit_end(&o);
}

static void test_constraints(void **state) {
        static const char *const here[] = { "zone=a" }, *const there[] = { "zone=b" };
        struct demand_shape shapes[] = { shape(4, 0, 10, 1), shape(4, 0, 10, 2) };
        struct constraint *zone;
        const char *why;
        struct demand d;
        struct owner o;

        shapes[0].description = (struct sched_description){ .labels = here, .n_labels = 1 };
        shapes[1].description = (struct sched_description){ .labels = there, .n_labels = 1 };
        policy_kit_begin(&o, 1, 4, NULL);
        assert_int_equal(constraint_parse("zone=b", &zone, &why), 0);
        policy_kit_submit(&o, 1, 0, 7, 0, 1, 4);
        o.shapes[1].required = (const struct constraint *const *)&zone;
        o.shapes[1].n_required = 1;
        assert_int_equal(policy_kit_run(&o), 0);
        d = ask_for(&o, shapes, 2);
        assert_wants(&d, 1, 0, 1); /* dearer, and the only one that will do */
        demand_done(&d);
        policy_kit_end(&o);
        constraint_free(zone);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_from_nothing),
                cmocka_unit_test(test_beside_what_is_there),
                cmocka_unit_test(test_the_cheapest_set),
                cmocka_unit_test(test_whole_or_nothing),
                cmocka_unit_test(test_elastic),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_whose_jobs),
                cmocka_unit_test(test_whose_jobs_alike),
                cmocka_unit_test(test_one_that_is_dear),
                cmocka_unit_test(test_coming_and_back),
                cmocka_unit_test(test_soon),
                cmocka_unit_test(test_constraints),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
