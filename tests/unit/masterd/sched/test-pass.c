/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over those that wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/policy-kit.h"

static void test_told_once(void **state) {
        struct owner o;

        policy_kit_begin(&o, 1, 2, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 2, 1);
        policy_kit_submit(&o, 2, 0, 7, 0, 1, 1);
        policy_kit_submit(&o, 3, 0, 7, 0, 3, 1);
        (void)policy_kit_run(&o);
        (void)policy_kit_run(&o);
        assert_int_equal(o.waits[2], 1);
        assert_int_equal(o.why[3].reason, POLICY_NEVER);
        assert_true(o.why[3].no_fit.never);
        policy_kit_end(&o);
}

/* Jobs that nobody could ever let in hold up nobody. */
static void test_never_is_passed_over(void **state) {
        struct owner o;

        policy_kit_begin(&o, 1, 2, NULL);
        policy_kit_submit(&o, 1, 0, 7, 9, 3, 1);
        policy_kit_submit(&o, 2, 0, 7, 0, 2, 1);
        assert_int_equal(policy_kit_run(&o), 1);
        assert_true(policy_kit_has_places(&o, 2));
        assert_int_equal(o.why[1].reason, POLICY_NEVER);
        policy_kit_end(&o);
}

/* A call does not do more than it may, and says that there is more to do. */
static void test_tired(void **state) {
        struct policy_conf conf;
        struct owner o;
        uint64_t next = UINT64_MAX;
        int placed = 0;

        policy_conf_defaults(&conf);
        conf.work = 1;
        policy_kit_begin(&o, 8, 4, &conf);
        for (uint64_t id = 1; id <= 16; id++)
                policy_kit_submit(&o, id, 0, 7, 0, 2, 1);
        for (unsigned calls = 0; placed < 16; calls++) {
                int n = policy_run(o.policy, o.now, &next);

                assert_true(n >= 0 && calls < 100);
                placed += n;
                assert_true(placed == 16 || next <= o.now);
        }
        assert_int_equal(o.n_order, 16);
        for (size_t i = 0; i < o.n_order; i++)
                assert_int_equal(o.order[i], i + 1); /* in order, however often it was cut short */
        policy_kit_end(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_told_once),
                cmocka_unit_test(test_never_is_passed_over),
                cmocka_unit_test(test_tired),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
