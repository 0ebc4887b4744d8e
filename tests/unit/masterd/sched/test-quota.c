/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that nobody gets beyond, and guarantees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/policy-kit.h"

static void test_limits(void **state) {
        struct policy_pool pool = { .name = "small", .weight = 1 };
        struct owner o;
        uint32_t small;

        policy_kit_begin(&o, 1, 16, NULL);
        pool.limit = (struct policy_amount){ 8000, UINT64_MAX, UINT32_MAX };
        pool.user_limit = (struct policy_amount){ 4000, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &small), 0);
        policy_kit_submit(&o, 1, small, 1, 0, 3, 1);
        policy_kit_submit(&o, 2, small, 1, 0, 2, 1);
        policy_kit_submit(&o, 3, small, 2, 0, 4, 1);
        policy_kit_submit(&o, 4, small, 3, 0, 2, 1);
        policy_kit_submit(&o, 5, small, 3, 0, 5, 1);
        policy_kit_submit(&o, 6, 0, 3, 0, 5, 1);
        (void)policy_kit_run(&o);
        assert_true(policy_kit_has_places(&o, 1) && policy_kit_has_places(&o, 3) &&
                    policy_kit_has_places(&o, 6));
        assert_int_equal(o.why[2].reason, POLICY_USER_LIMIT);
        assert_int_equal(o.why[4].reason, POLICY_POOL_LIMIT);
        assert_int_equal(o.why[5].reason, POLICY_NEVER);
        policy_kit_finish(&o, 3);
        assert_int_equal(policy_kit_run(&o), 1);
        assert_true(policy_kit_has_places(&o, 4));
        policy_kit_end(&o);
}

static void test_elastic_stays_within_limits(void **state) {
        struct policy_pool pool = { .name = "small", .weight = 1 };
        struct owner o;
        uint32_t small;

        policy_kit_begin(&o, 4, 16, NULL);
        pool.limit = (struct policy_amount){ 7500, UINT64_MAX, UINT32_MAX };
        pool.user_limit = (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &small), 0);
        policy_kit_submit(&o, 1, small, 1, 0, 2, 1);
        o.shapes[1].max = 20;
        assert_int_equal(policy_kit_run(&o), 1);
        assert_int_equal(o.places[1].n, 7);
        policy_kit_end(&o);
}

/* What is guaranteed to others is lent only to those who can give it back. */
static void test_guarantee(void **state) {
        struct policy_pool pool = { .name = "owner", .weight = 1, .guarantee = { 12000, 0, 0 } };
        struct policy_job job = { .id = 3, .user = 1, .duration_usec = UINT64_MAX, .preemptible = true };
        struct owner o;
        uint32_t index;

        policy_kit_begin(&o, 1, 16, NULL);
        pool.limit = pool.user_limit = (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &index), 0);
        policy_kit_submit(&o, 1, 0, 1, 0, 4, 1);
        policy_kit_submit(&o, 2, 0, 1, 0, 1, 1);
        o.shapes[3] = (struct sched_shape){ .min = 1, .max = 1, .cpu_milli = 1000 };
        assert_int_equal(policy_job_add(o.policy, &job), 0);
        policy_kit_submit(&o, 4, index, 1, 0, 11, 1);
        (void)policy_kit_run(&o);
        assert_true(policy_kit_has_places(&o, 1) && policy_kit_has_places(&o, 3) &&
                    policy_kit_has_places(&o, 4));
        assert_int_equal(o.why[2].reason, POLICY_GUARANTEED);
        policy_kit_end(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_elastic_stays_within_limits),
                cmocka_unit_test(test_guarantee),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
