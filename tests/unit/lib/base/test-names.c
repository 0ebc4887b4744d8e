/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_names(void **state) {
        assert_true(node_name_valid("n1"));
        assert_true(node_name_valid("gpu-01.rack2"));
        assert_false(node_name_valid("N1"));
        assert_false(node_name_valid("a..b"));
        assert_false(node_name_valid("-a"));
        assert_false(node_name_valid(""));
        assert_true(role_name_valid("worker"));
        assert_false(role_name_valid("wor-ker"));
        assert_false(role_name_valid("1st"));
        assert_false(role_name_valid("abcdefghijklmnopqrstuvwxyzabcdefg"));
}

static void test_distance(void **state) {
        assert_int_equal(edit_distance("comand", "command"), 1);
        assert_int_equal(edit_distance("", "abc"), 3);
        assert_int_equal(edit_distance("same", "same"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_distance),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
