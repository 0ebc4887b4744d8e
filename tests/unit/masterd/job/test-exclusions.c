/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/exclusions.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_counts(void **state) {
        struct exclusions x = {};

        assert_int_equal(exclusions_failed(&x, "n1", 0, 100), 1);
        assert_int_equal(exclusions_failed(&x, "n1", 0, 110), 1); /* the same one again */
        assert_int_equal(exclusions_failed(&x, "n1", 5, 90), 2);
        assert_int_equal(exclusions_failed(&x, "n2", 0, 120), 1);
        assert_int_equal(exclusions_hosts_since(&x, 0), 2);
        assert_int_equal(exclusions_hosts_since(&x, 110), 2);
        assert_int_equal(exclusions_hosts_since(&x, 111), 1);
        for (uint32_t i = 0; i < 5000; i++)
                assert_true(exclusions_failed(&x, "n3", i, 130) > 0);
        assert_true(exclusions_failed(&x, "n3", 5000, 130) >= 1000);
        exclusions_done(&x);
}

static void test_until(void **state) {
        struct exclusions x = {};

        assert_int_equal(exclusions_of(&x, "n1", 0), 0);
        assert_int_equal(exclusions_until(&x, "n1", 200), 0);
        assert_int_equal(exclusions_until(&x, "n1", 150), 0);
        assert_int_equal(exclusions_of(&x, "n1", 199), 200);
        assert_int_equal(exclusions_of(&x, "n1", 200), 0);
        assert_int_equal(exclusions_of(&x, "n2", 0), 0);
        assert_int_equal(exclusions_hosts_since(&x, 0), 0); /* nothing has failed */
        exclusions_done(&x);
        exclusions_done(&x);
}

static void test_allow(void **state) {
        struct exclusions x = {};

        assert_int_equal(exclusions_allowed(&x, "n1"), 0);
        assert_int_equal(exclusions_failed(&x, "n1", 0, 100), 1);
        assert_int_equal(exclusions_failed(&x, "n1", 1, 110), 2);
        assert_int_equal(exclusions_until(&x, "n1", 200), 0);
        assert_int_equal(exclusions_allow(&x, "n1", 120), 0);
        assert_int_equal(exclusions_allowed(&x, "n1"), 120);
        assert_int_equal(exclusions_of(&x, "n1", 150), 0);
        assert_int_equal(exclusions_hosts_since(&x, 0), 0);
        assert_int_equal(exclusions_failed(&x, "n1", 2, 120), 0); /* told later, and forgotten as well */
        assert_int_equal(exclusions_hosts_since(&x, 0), 0);
        assert_int_equal(exclusions_failed(&x, "n1", 0, 130), 1); /* counted anew */
        assert_int_equal(exclusions_until(&x, "n1", 300), 0);
        assert_int_equal(exclusions_of(&x, "n1", 150), 300);
        assert_int_equal(exclusions_allow(&x, "n2", 10),
                         0); /* read before anything is known to have failed */
        assert_int_equal(exclusions_allowed(&x, "n2"), 10);
        exclusions_done(&x);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_counts), cmocka_unit_test(test_until),
                                            cmocka_unit_test(test_allow) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
