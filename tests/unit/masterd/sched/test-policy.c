/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/kit/policy-kit.h"

static void test_bad_calls(void **state) {
        struct policy_pool pool = { .name = "x", .weight = 1 };
        struct policy_job job = { .id = 1, .pool = 9 };
        struct policy_why why;
        struct owner o;

        policy_kit_begin(&o, 1, 2, NULL);
        assert_int_equal(policy_job_add(o.policy, &job), -EINVAL);
        job.pool = 0;
        job.priority = POLICY_PRIORITY_MAX + 1;
        assert_int_equal(policy_job_add(o.policy, &job), -EINVAL);
        assert_int_equal(policy_job_update(o.policy, &job), -ENOENT);
        assert_int_equal(policy_why(o.policy, 1, &why), -ENOENT);
        assert_int_equal(policy_job_wants(o.policy, 1), -ENOENT);
        policy_kit_submit(&o, 2, 0, 1, 0, 1, 1);
        job = (struct policy_job){ .id = 2 };
        assert_int_equal(policy_job_add(o.policy, &job), -EEXIST);
        assert_int_equal(policy_why(o.policy, 2, &why), 0);
        assert_int_equal(why.reason, POLICY_NOT_TRIED);
        assert_int_equal(policy_last_why(o.policy, 2, &why), 0);
        assert_int_equal(policy_last_why(o.policy, 1, &why), -ENOENT);
        pool.weight = 0;
        assert_int_equal(policy_pool_set(o.policy, &pool, NULL), -EINVAL);
        pool.weight = 1;
        for (uint32_t i = 1; i < POLICY_POOLS_MAX; i++) {
                snprintf(pool.name, sizeof(pool.name), "p%u", i);
                assert_int_equal(policy_pool_set(o.policy, &pool, NULL), 0);
        }
        snprintf(pool.name, sizeof(pool.name), "one-more");
        assert_int_equal(policy_pool_set(o.policy, &pool, NULL), -E2BIG);
        policy_kit_end(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bad_calls),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
