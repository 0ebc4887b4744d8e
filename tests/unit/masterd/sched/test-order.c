/* SPDX-License-Identifier: Apache-2.0 */
/* Who is next: priority, what waiting adds to it, and who came first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/policy-kit.h"

static void test_priority_then_arrival(void **state) {
        struct owner o;

        policy_kit_begin(&o, 1, 2, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 1, 1);
        policy_kit_submit(&o, 2, 0, 7, 5, 1, 1);
        policy_kit_submit(&o, 3, 0, 7, 5, 1, 1);
        assert_int_equal(policy_kit_run(&o), 2);
        assert_order(&o, 2, 3);
        assert_int_equal(o.why[1].reason, POLICY_NO_FIT);
        policy_kit_finish(&o, 3);
        assert_int_equal(policy_kit_run(&o), 1);
        assert_order(&o, 2, 3, 1);
        policy_kit_end(&o);
}

static void test_aging(void **state) {
        struct owner o;
        uint64_t ids[3];

        policy_kit_begin(&o, 1, 1, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 1, 2); /* never fits: they only wait */
        o.now += 3601 * SECOND;
        policy_kit_submit(&o, 2, 0, 7, 1, 1, 2);
        policy_kit_submit(&o, 3, 0, 7, 2, 1, 2);
        assert_int_equal(policy_order(o.policy, o.now, ids, 3), 3);
        assert_true(ids[0] == 3 && ids[1] == 1 && ids[2] == 2); /* one hour is one level */
        assert_int_equal(policy_order(o.policy, o.now + 7201 * SECOND, ids, 3), 3);
        assert_true(ids[0] == 3); /* all have aged by as much */
        policy_kit_end(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_priority_then_arrival),
                cmocka_unit_test(test_aging),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
