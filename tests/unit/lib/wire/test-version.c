/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_fit(void **state) {
        assert_true(link_versions_fit(LINK_MAJOR, LINK_MINOR));
        assert_true(link_versions_fit(LINK_MAJOR, LINK_MINOR + 1));
        assert_false(link_versions_fit(LINK_MAJOR, LINK_MINOR + 2));
        if (LINK_MINOR >= 1)
                assert_true(link_versions_fit(LINK_MAJOR, LINK_MINOR - 1));
        if (LINK_MINOR >= 2)
                assert_false(link_versions_fit(LINK_MAJOR, LINK_MINOR - 2));
        assert_false(link_versions_fit(LINK_MAJOR + 1, LINK_MINOR));
        assert_false(link_versions_fit(LINK_MAJOR - 1, LINK_MINOR));
        assert_false(link_versions_fit(LINK_MAJOR, UINT16_MAX));
        assert_false(link_versions_fit(UINT16_MAX, UINT16_MAX));
}

static void test_spoken(void **state) {
        assert_int_equal(link_minor_spoken(LINK_MINOR), LINK_MINOR);
        assert_int_equal(link_minor_spoken(LINK_MINOR + 1), LINK_MINOR);
        assert_int_equal(link_minor_spoken(0), 0);
}

static void test_refusal(void **state) {
        char text[LINK_VERSION_TEXT_MAX], expected[LINK_VERSION_TEXT_MAX], longest[300];

        snprintf(expected, sizeof(expected),
                 "agent 0.3 speaks link %u.%u, this master (" PRIMUS_VERSION ") %u.%u: upgrade the master",
                 LINK_MAJOR, LINK_MINOR + 3, LINK_MAJOR, LINK_MINOR);
        assert_string_equal(link_version_refusal(LINK_MASTER, "0.3", LINK_MAJOR, LINK_MINOR + 3, text),
                            expected);
        assert_non_null(strstr(link_version_refusal(LINK_MASTER, "0", LINK_MAJOR - 1, 99, text),
                               ": upgrade the agent"));
        assert_non_null(strstr(link_version_refusal(LINK_AGENT, "9", LINK_MAJOR + 1, 0, text),
                               "master 9 speaks link"));
        assert_non_null(strstr(text, "this agent ("));
        assert_non_null(strstr(text, ": upgrade the agent"));
        assert_non_null(strstr(link_version_refusal(LINK_AGENT, "0", LINK_MAJOR - 1, 0, text),
                               ": upgrade the master"));
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = 0;
        longest[3] = '\n';
        longest[4] = (char)0xff;
        assert_non_null(strstr(link_version_refusal(LINK_MASTER, longest, UINT16_MAX, UINT16_MAX, text),
                               ": upgrade the master"));
        assert_null(strchr(text, '\n'));
        assert_null(strchr(text, (char)0xff));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fit),
                cmocka_unit_test(test_spoken),
                cmocka_unit_test(test_refusal),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
