/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

/* What could end a line, in whatever reads it, is in none; what only looks odd may stay. */
static void test_lines(void **state) {
        static const char *const neither[] = { "a\nb",     "a\rb",          "\t",           "a\x01",
                                               "a\x1f",    "\x7f",          "a\xc2\x80",    "\xc2\x85",
                                               "\xc2\x9f", "a\xe2\x80\xa8", "\xe2\x80\xa9", "\xff",
                                               "\xc0\x8a", "\xe2\x80" },
                                 *const lines[] = { " a", "a ", "a\\", "\\", "a\\\\", " " },
                                 *const settings[] = { "",
                                                       "/data",
                                                       "a b",
                                                       "a\\b",
                                                       "%h$A\"'`;#",
                                                       "\xc2\xa0",
                                                       "\xe2\x80\xa7",
                                                       "\xe2\x80\xaa",
                                                       "\xf0\x9f\x98\x80",
                                                       "\xc3\xa9t\xc3\xa9" };

        for (size_t i = 0; i < ELEMENTSOF(neither); i++)
                assert_false(text_is_line(neither[i]) || text_is_setting(neither[i]));
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert_true(text_is_line(lines[i]) && !text_is_setting(lines[i]));
        for (size_t i = 0; i < ELEMENTSOF(settings); i++)
                assert_true(text_is_line(settings[i]) && text_is_setting(settings[i]));
}

static void test_utf8(void **state) {
        char buf[16];

        assert_true(utf8_valid("h\xc3\xa9", 3));
        assert_false(utf8_valid("\xc0\x80", 2));     /* overlong NUL */
        assert_false(utf8_valid("\xed\xa0\x80", 3)); /* surrogate */
        assert_false(utf8_valid("\xf5\x80\x80\x80", 4));
        assert_false(utf8_valid("a\0b", 3));
        /* Noncharacters: sd-bus sends no message with one. */
        assert_false(utf8_valid("\xef\xb7\x90", 3)); /* U+FDD0 */
        assert_false(utf8_valid("\xef\xbf\xbe", 3)); /* U+FFFE */
        assert_false(utf8_valid("\xf2\xbf\xbf\xbf", 4));
        assert_true(utf8_valid("\xef\xbf\xbd\xef\xb7\x8f", 6)); /* their neighbours */
        assert_string_equal(utf8_clean("a\xff"
                                       "b",
                                       3, buf, sizeof(buf)),
                            "a?b");
        assert_int_equal(utf8_fit("abc", 3), 3);
        assert_int_equal(utf8_fit("abcd", 3), 3);
        assert_int_equal(utf8_fit("ab\xc3\xa9", 3), 2);
        assert_int_equal(utf8_fit("ab\xc3\xa9", 4), 4);
        assert_int_equal(utf8_fit("\xe2\x82\xac", 2), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_utf8),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
