/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static void test_sizes(void **state) {
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } table[] = {
                { "0", 0, 0 },
                { "512", 0, 512 },
                { "64K", 0, 65536 },
                { "1.5G", 0, 1610612736 },
                { "1 GiB", 0, 1 << 30 },
                { "2MB", 0, 2 << 20 },
                { "100B", 0, 100 },
                { "-1", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "1X", -EINVAL, 0 },
                { "1.", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
                { "99999E", -ERANGE, 0 },
                { "0x10", -EINVAL, 0 },
                { "BB", -EINVAL, 0 },
                { "1BB", -EINVAL, 0 },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                uint64_t v = 0;
                assert_int_equal(parse_size(table[i].text, &v), table[i].r);
                assert_true(v == table[i].value);
        }
}

static void test_durations(void **state) {
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } table[] = {
                { "90", 0, 90 * USEC_PER_SEC },
                { "500ms", 0, 500 * USEC_PER_MSEC },
                { "2h30min", 0, 9000 * USEC_PER_SEC },
                { "1d 2h", 0, 93600 * USEC_PER_SEC },
                { "1.5s", 0, 1500 * USEC_PER_MSEC },
                { "infinity", 0, USEC_INFINITY },
                { "01:30:00", 0, 5400 * USEC_PER_SEC },
                { "10:30", 0, 630 * USEC_PER_SEC },
                { "1-12:00", 0, 129600 * USEC_PER_SEC },
                { "2h 30", -EINVAL, 0 },
                { "-5s", -EINVAL, 0 },
                { "5parsecs", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "1:2:3:4", -EINVAL, 0 },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                uint64_t v = 0;
                assert_int_equal(parse_duration(table[i].text, &v), table[i].r);
                assert_true(v == table[i].value);
        }
}

static void test_formats(void **state) {
        char buf[64];

        assert_string_equal(format_duration(93600 * USEC_PER_SEC, buf, sizeof(buf)), "1d 2h");
        assert_string_equal(format_duration(1500 * USEC_PER_MSEC, buf, sizeof(buf)), "1.5s");
        assert_string_equal(format_duration(0, buf, sizeof(buf)), "0s");
        assert_string_equal(format_size(1536, buf, sizeof(buf)), "1.5K");
        assert_string_equal(format_size(64 << 20, buf, sizeof(buf)), "64M");
        assert_string_equal(format_time(0, buf, sizeof(buf)), "");
        assert_string_equal(format_time(1767225600 * USEC_PER_SEC, buf, sizeof(buf)), "2026-01-01T00:00:00Z");
}

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

static void test_distance(void **state) {
        assert_int_equal(edit_distance("comand", "command"), 1);
        assert_int_equal(edit_distance("", "abc"), 3);
        assert_int_equal(edit_distance("same", "same"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),    cmocka_unit_test(test_durations),
                cmocka_unit_test(test_formats),  cmocka_unit_test(test_names),
                cmocka_unit_test(test_lines),    cmocka_unit_test(test_utf8),
                cmocka_unit_test(test_distance),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
