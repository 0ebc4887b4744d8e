/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/cli/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_clean(void **state) {
        static const struct {
                const char *in, *out;
        } table[] = {
                { "plain", "plain" },
                { "a\nb\tc\rd", "a b c d" },
                { "\033[2Jx\a", "?[2Jx?" },
                { "caf\xc3\xa9", "caf\xc3\xa9" },
                { "\xc2\x9b"
                  "31m",
                  "??31m" },                              /* C1 CSI */
                { "\xff\xc0\x80\xed\xa0\x80", "??????" }, /* no UTF-8, overlong, surrogate */
                { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
                { "cut\xe2\x82", "cut??" },
                { "\x7f", "?" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *s = strdup(table[i].in);
                text_clean(s);
                assert_string_equal(s, table[i].out);
        }
}

static void test_filter(void **state) {
        static const struct {
                const char *in, *out;
        } table[] = {
                { "a\tb\rc\n", "a\tb\rc\n" },
                { "\033[1;31mred\033[0m", "\033[1;31mred\033[0m" },
                { "\033[2J\033[Hx", "x" },
                { "\033]0;title\ax", "x" },
                { "\033]8;;http://h\033\\link", "link" },
                { "\033P+q\033\\x", "x" },
                { "\033]unfinished\nnext", "\nnext" },
                { "\033[6n", "" },
                { "\033cx\033(Bz", "xz" },
                { "\a\b\x0e\x7f", "" },
                { "\xc2\x9b"
                  "2Jx",
                  "2Jx" },
                { "\xff", "?" },
                { "\033", "" },
                { "\033[", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *out = NULL;
                size_t n;
                FILE *f = open_memstream(&out, &n);

                text_filter_terminal(table[i].in, strlen(table[i].in), f);
                fclose(f);
                assert_string_equal(out, table[i].out);
        }
}

static void test_fit(void **state) {
        static const struct {
                const char *in;
                size_t columns;
                const char *out;
        } table[] = {
                { "12345", 5, "12345" },
                { "123456", 5, "1234…" COLOR_RESET },
                { "\033[31m12345\033[0m", 5, "\033[31m12345\033[0m" },
                { "\xc3\xa9\xc3\xa9\xc3\xa9", 2, "\xc3\xa9…" COLOR_RESET },
                { "", 5, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *out = text_fit(table[i].in, table[i].columns);
                assert_string_equal(out, table[i].out);
        }
}

static void test_bar(void **state) {
        char buf[16];

        assert_string_equal(text_bar(0, 10, 12, buf, sizeof(buf)), "[----------]");
        assert_string_equal(text_bar(5, 10, 12, buf, sizeof(buf)), "[#####-----]");
        assert_string_equal(text_bar(99, 10, 12, buf, sizeof(buf)), "[##########]");
        assert_string_equal(text_bar(0, 0, 12, buf, sizeof(buf)), "[----------]");
        assert_string_equal(text_bar(UINT64_MAX, UINT64_MAX, 12, buf, sizeof(buf)), "[##########]");
        assert_int_equal(strlen(text_bar(1, 2, 100, buf, sizeof(buf))),
                         sizeof(buf) - 1); /* never past the buffer */
}

static void test_time(void **state) {
        char buf[TEXT_TIME_MAX];

        setenv("TZ", "UTC", 1);
        assert_string_equal(text_time(0, 1, buf, sizeof(buf)), "-");
        assert_string_equal(
                text_time(UINT64_C(1700000000000000), UINT64_C(1700000100000000), buf, sizeof(buf)),
                "22:13:20");
        assert_string_equal(
                text_time(UINT64_C(1700000000000000), UINT64_C(1700100000000000), buf, sizeof(buf)),
                "2023-11-14 22:13");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_clean), cmocka_unit_test(test_filter), cmocka_unit_test(test_fit),
                cmocka_unit_test(test_bar),   cmocka_unit_test(test_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
