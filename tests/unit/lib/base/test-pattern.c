/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static bool matches(const char *text, const char *line, size_t size) {
        _cleanup_(pattern_free_p) struct pattern *p = NULL;

        assert_int_equal(pattern_new(text, &p), 0);
        return pattern_match(p, line, size);
}

static void test_match(void **state) {
        static const struct {
                const char *text, *line;
                bool found;
        } table[] = {
                { "CUDA error", "RuntimeError: CUDA error: an illegal memory access", true },
                { "CUDA error", "cuda error", false },
                { "(?i)cuda error", "CUDA Error", true },
                { "^NCCL WARN.*(timeout|closed)$", "NCCL WARN remote closed", true },
                { "^NCCL WARN.*(timeout|closed)$", "x NCCL WARN remote closed", false },
                { "Xid [0-9]{2,3}\\b", "Xid 31, pid 7", true },
                { "^$", "", true },
                { "a", "", false },
                { "\xff.b",
                  "\xff\x80"
                  "b",
                  true }, /* bytes, whatever they are */
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (matches(table[i].text, table[i].line, strlen(table[i].line)) != table[i].found)
                        fail_msg("'%s' and '%s'", table[i].text, table[i].line);
        assert_true(matches("a.b", "a\0b", 3));
}

static void test_long_line(void **state) {
        static char line[PATTERN_LINE_MAX + 2];

        memset(line, 'x', sizeof(line));
        line[PATTERN_LINE_MAX - 1] = 'a';
        line[PATTERN_LINE_MAX] = 'b';
        assert_true(matches("a", line, sizeof(line)));
        assert_false(matches("b", line, sizeof(line)));
}

static void test_invalid(void **state) {
        char nested[64] = "", longer[PATTERN_MAX + 2] = "";
        const char *const table[] = {
                "(",       "[a",      "*",
                "a{2,1}",  "(?<n>a",  "\\C",
                "(*UTF)a", "(*UCP)a", "((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}",
                nested,    longer
        };
        const char *why = NULL;
        struct pattern *p;

        for (unsigned i = 0; i < 20; i++) {
                nested[i] = '(';
                nested[21 + i] = ')';
        }
        nested[20] = 'a';
        memset(longer, 'a', PATTERN_MAX + 1);
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                if (pattern_valid(table[i], &why) || pattern_new(table[i], &p) != -EINVAL)
                        fail_msg("'%s' is taken", table[i]);
                assert_non_null(strstr(why, "is no regular expression (pcre2pattern(3)): "));
        }
        assert_false(pattern_valid("abc(", &why));
        assert_non_null(strstr(why, "at its byte 5"));
        longer[PATTERN_MAX] = 0;
        assert_true(pattern_valid(longer, &why));
}

/* What would take until the end of the world takes milliseconds, and is not found. */
static void test_steps(void **state) {
        static const char *const evil[] = { "(a+)+$", "(a|aa)+$", "(?=(a+))*b(a*)*c", "(x?){30}x{30}(a|a)*$",
                                            "^(?:(a)|(a)|(a))*$(?R)?b" };
        static char line[PATTERN_LINE_MAX];
        struct timespec before, after;

        memset(line, 'a', sizeof(line));
        line[sizeof(line) - 1] = '!';
        for (size_t i = 0; i < ELEMENTSOF(evil); i++) {
                const char *why;

                if (!pattern_valid(evil[i], &why))
                        fail_msg("%s: %s", evil[i], why);
                assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before), 0);
                assert_false(matches(evil[i], line, sizeof(line)));
                assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after), 0);
                /* A hundred times what it takes, for sanitizers and slow machines. */
                if ((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 > 200)
                        fail_msg("'%s' takes too long", evil[i]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_match), cmocka_unit_test(test_long_line),
                                            cmocka_unit_test(test_invalid), cmocka_unit_test(test_steps) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
