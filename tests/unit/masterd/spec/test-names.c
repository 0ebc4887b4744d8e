/* SPDX-License-Identifier: Apache-2.0 */
/* Every value of an enum has a word, each word is of one value, and there is none behind the last. */
#include "masterd/spec/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define CHECK(to_string, enum_, max)                                                                         \
        do {                                                                                                 \
                for (int v = 0; v < (max); v++) {                                                            \
                        assert_non_null(to_string((enum enum_)v));                                           \
                        for (int other = 0; other < v; other++)                                              \
                                assert_string_not_equal(to_string((enum enum_)v),                            \
                                                        to_string((enum enum_)other));                       \
                }                                                                                            \
                assert_null(to_string((enum enum_)(max)));                                                   \
                assert_null(to_string((enum enum_) - 1));                                                    \
        } while (0)

static void test_words(void **state) {
        CHECK(schedule_type_to_string, schedule_type, _SCHEDULE_TYPE_MAX);
        CHECK(schedule_policy_to_string, schedule_policy, _SCHEDULE_POLICY_MAX);
        CHECK(input_policy_to_string, input_policy, _INPUT_POLICY_MAX);
        CHECK(lockstep_to_string, lockstep, _LOCKSTEP_MAX);
        CHECK(restart_type_to_string, restart_type, _RESTART_TYPE_MAX);
        CHECK(failure_policy_to_string, failure_policy, _FAILURE_POLICY_MAX);
        CHECK(role_category_to_string, role_category, _ROLE_CATEGORY_MAX);
        CHECK(spec_on_partition_to_string, spec_on_partition, _SPEC_PARTITION_MAX);
        CHECK(gpu_visibility_to_string, gpu_visibility, _GPU_VISIBILITY_MAX);
        CHECK(visible_to_string, visible, _VISIBLE_MAX);
}

static void test_visible(void **state) {
        for (enum visible v = 0; v < _VISIBLE_MAX; v++)
                assert_int_equal(visible_from_string(visible_to_string(v)), v);
        assert_int_equal(visible_from_string("Owner"), _VISIBLE_INVALID);
        assert_int_equal(visible_from_string(""), _VISIBLE_INVALID);
}

/* Configurations of upstream may have protobuf's numbers in the place of the words. */
static void test_numbers_of_upstream(void **state) {
        assert_string_equal(schedule_type_names[0], "GANG");
        assert_string_equal(schedule_type_names[1], "DYNAMIC");
        assert_string_equal(input_policy_names[0], "ENV");
        assert_string_equal(input_policy_names[1], "STREAMING");
        assert_string_equal(restart_type_names[0], "ON_FAILURE");
        assert_string_equal(failure_policy_names[0], "FAIL_APP");
        assert_string_equal(role_category_names[1], "PS");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_visible),
                cmocka_unit_test(test_numbers_of_upstream),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
