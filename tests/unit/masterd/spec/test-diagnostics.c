/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/diagnostics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_format(const struct diagnostic *d, const char *expected) {
        _cleanup_free_ char *text = diagnostic_format(d);

        assert_string_equal(text, expected);
}

static void test_format(void **state) {
        struct diagnostics d = {};

        assert_int_equal(diagnostics_add(&d, DIAGNOSTIC_ERROR, 3, 7, "role[0].num", "must be %d", 5), 0);
        assert_int_equal(diagnostics_add(&d, DIAGNOSTIC_WARNING, 0, 0, "", "two\nlines"), 1);
        assert_int_equal(diagnostics_add(&d, DIAGNOSTIC_WARNING, 1, 1, "", "here"), 2);
        assert_int_equal(diagnostics_add(&d, DIAGNOSTIC_WARNING, 0, 0, "b\xc3", "cut: %.2s", "a\xc3\xa9"), 3);
        assert_string_equal(d.items[3].message, "cut: a?");
        assert_string_equal(d.items[3].path, "b?");
        assert_format(&d.items[0], "3:7: role[0].num: must be 5");
        assert_format(&d.items[1], "two?lines");
        assert_format(&d.items[2], "1:1: here");
        assert_int_equal(d.n_errors, 1);
        assert_int_equal(d.n_warnings, 3);
        diagnostics_sort(&d);
        assert_format(&d.items[0], "1:1: here");
        assert_format(&d.items[2], "two?lines");
        assert_ptr_equal(diagnostics_first_error(&d), &d.items[1]);
        diagnostics_done(&d);
        diagnostics_done(&d);
}

static void test_bound(void **state) {
        struct diagnostics d = {};

        for (unsigned i = 0; i < DIAGNOSTICS_MAX + 8; i++)
                assert_int_equal(diagnostics_add(&d, DIAGNOSTIC_WARNING, i + 1, 1, "", "warning"),
                                 i < DIAGNOSTICS_MAX ? i : DIAGNOSTICS_MAX);
        assert_null(diagnostics_first_error(&d));
        assert_int_equal(diagnostics_add(&d, DIAGNOSTIC_ERROR, 1, 1, "", "an error is never lost"),
                         DIAGNOSTICS_MAX - 1);
        assert_string_equal(diagnostics_first_error(&d)->message, "an error is never lost");
        for (unsigned i = 0; i < DIAGNOSTICS_MAX + 8; i++)
                assert_true(diagnostics_add(&d, DIAGNOSTIC_ERROR, 1, 1, "", "error") >= 0);
        assert_int_equal(d.n, DIAGNOSTICS_MAX);
        assert_int_equal(d.n_errors, DIAGNOSTICS_MAX + 9);
        assert_int_equal(d.n_warnings, DIAGNOSTICS_MAX + 8);
        diagnostics_done(&d);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_format), cmocka_unit_test(test_bound) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
