/* SPDX-License-Identifier: Apache-2.0 */
/* Times in paths, and words in braces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "executor/scan/time-pattern.h"
#include "lib/base/cleanup.h"

static void test_step(void **state) {
        static const struct {
                const char *pattern;
                int step;
        } cases[] = {
                { "/data/x", TIME_STEP_NONE },
                { "/data/{a,b}", TIME_STEP_NONE },
                { "/data/{{YYYY}}{{MM}}{{DD}}", TIME_STEP_DAY },
                { "/data/{{YYYY}}", TIME_STEP_DAY },
                { "/data/{{YYYY}}{{MM}}{{DD}}/{{HH}}/*", TIME_STEP_HOUR },
                { "{{HH}}", TIME_STEP_HOUR },
                { "/data/{{HOUR}}", -EINVAL },
                { "/data/{{yyyy}}", -EINVAL },
                { "/data/{{YYYY}", -EINVAL },
                { "/data/{{", -EINVAL },
                { "/data/{{{YYYY}}", -EINVAL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                enum time_step step = TIME_STEP_NONE;
                int r = time_pattern_step(cases[i].pattern, &step);

                assert_int_equal(r < 0 ? r : (int)step, cases[i].step);
        }
}

static void test_expand(void **state) {
        const struct time_point t = { 2026, 1, 9, 5 }, day = { 987, 12, 31, -1 }, wrong = { 2026, 2, 29, 0 };
        _cleanup_free_ char *a = NULL, *b = NULL, *c = NULL, *at = NULL;
        char limit[PATTERN_BYTES_MAX + 5];

        assert_int_equal(time_pattern_expand("/d/{{YYYY}}{{MM}}{{DD}}/{{HH}}/x-{{HH}}", &t, &a), 0);
        assert_string_equal(a, "/d/20260109/05/x-05");
        assert_int_equal(time_pattern_expand("{{YYYY}}-{{MM}}-{{DD}}T{{HH}}", &day, &b), 0);
        assert_string_equal(b, "0987-12-31T00");
        assert_int_equal(time_pattern_expand("{a,b}/{{MM}}", &t, &c), 0);
        assert_string_equal(c, "{a,b}/01");
        assert_int_equal(time_pattern_expand("{{MM}}", &wrong, &c), -EINVAL);
        assert_int_equal(time_pattern_expand("{{mm}}", &t, &c), -EINVAL);
        memset(limit, 'x', sizeof(limit));
        strcpy(limit + PATTERN_BYTES_MAX - 4, "{{MM}}");
        assert_int_equal(time_pattern_expand(limit, &t, &at), 0);
        assert_int_equal(strlen(at), PATTERN_BYTES_MAX - 2);
        memset(limit, 'x', sizeof(limit));
        strcpy(limit + PATTERN_BYTES_MAX - 1, "{{MM"); /* what is no name is looked at first */
        assert_int_equal(time_pattern_expand(limit, &t, &c), -EINVAL);
        strcpy(limit + PATTERN_BYTES_MAX - 1, "xx");
        assert_int_equal(time_pattern_expand(limit, &t, &c), -ENAMETOOLONG);
}

static void test_calendar(void **state) {
        static const struct {
                struct time_point t, next;
                enum time_step step;
        } cases[] = {
                { { 2026, 11, 20, 5 }, { 2026, 11, 20, 6 }, TIME_STEP_HOUR },
                { { 2026, 11, 20, 23 }, { 2026, 11, 21, 0 }, TIME_STEP_HOUR },
                { { 2026, 12, 31, 23 }, { 2027, 1, 1, 0 }, TIME_STEP_HOUR },
                { { 2024, 2, 28, -1 }, { 2024, 2, 29, -1 }, TIME_STEP_DAY },
                { { 2026, 2, 28, -1 }, { 2026, 3, 1, -1 }, TIME_STEP_DAY },
                { { 2000, 2, 28, -1 }, { 2000, 2, 29, -1 }, TIME_STEP_DAY },
                { { 1900, 2, 28, -1 }, { 1900, 3, 1, -1 }, TIME_STEP_DAY },
                { { 2026, 4, 30, 12 }, { 2026, 5, 1, -1 }, TIME_STEP_DAY },
        };
        struct time_point end = { 9999, 12, 31, 23 }, back;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct time_point t = cases[i].t;

                assert_true(time_point_next(&t, cases[i].step));
                assert_memory_equal(&t, &cases[i].next, sizeof(t));
                assert_true(time_point_batch(&t) > time_point_batch(&cases[i].t));
        }
        assert_false(time_point_next(&end, TIME_STEP_HOUR));
        assert_false(time_point_next(&end, TIME_STEP_DAY));
        assert_int_equal(time_point_batch(&end), UINT64_C(9999123123));
        assert_int_equal(time_point_from_batch(UINT64_C(2026022805), &back), 0);
        assert_int_equal(time_point_batch(&back), UINT64_C(2026022805));
        assert_int_equal(time_point_from_batch(UINT64_C(2026022905), &back), -EINVAL);
        assert_int_equal(time_point_from_batch(0, &back), -EINVAL);
        assert_int_equal(time_point_from_batch(UINT64_MAX, &back), -EINVAL);
}

/* Hours in the order of their batches: what upstream's unpadded key gets wrong. */
static void test_order_of_batches(void **state) {
        struct time_point t = { 2026, 1, 1, 9 }, before;

        for (unsigned i = 0; i < 24 * 400; i++) {
                before = t;
                assert_true(time_point_next(&t, TIME_STEP_HOUR));
                assert_true(time_point_batch(&t) > time_point_batch(&before));
        }
        assert_int_equal(t.year, 2027);
}

static void test_range(void **state) {
        const struct time_point day = { 2026, 1, 1, -1 }, hour = { 2026, 1, 1, 7 };

        assert_int_equal(time_range_first(&day, TIME_STEP_HOUR).hour, 0);
        assert_int_equal(time_range_last(&day, TIME_STEP_HOUR).hour, 23);
        assert_int_equal(time_range_first(&hour, TIME_STEP_HOUR).hour, 7);
        assert_int_equal(time_range_last(&hour, TIME_STEP_HOUR).hour, 7);
        assert_int_equal(time_range_first(&hour, TIME_STEP_DAY).hour, -1);
        assert_int_equal(time_range_last(&hour, TIME_STEP_DAY).hour, -1);
}

static void check_words(const char *pattern, const char *expected) {
        _cleanup_(words_free_p) char **words = NULL;
        char got[1024] = "";
        size_t n = 0;

        assert_int_equal(words_expand(pattern, &words, &n), 0);
        for (size_t i = 0; i < n; i++) {
                strcat(got, i > 0 ? " " : "");
                strcat(got, words[i]);
        }
        assert_null(words[n]);
        assert_string_equal(got, expected);
}

static void test_words(void **state) {
        _cleanup_(words_free_p) char **words = NULL;
        char limit[PATTERN_BYTES_MAX + 2];
        size_t n;

        check_words("/a/b", "/a/b");
        check_words("/a/{x,y}", "/a/x /a/y");
        check_words("{a,b}{1,2}", "a1 a2 b1 b2");
        check_words("x{a,b{1,2}}", "xa xb1 xb2");
        check_words("x{,y}", "x xy");
        check_words("{08..11}", "08 09 10 11");
        check_words("{8..11}", "8 9 10 11");
        check_words("{0..2}", "0 1 2");
        check_words("s-{000..2}", "s-000 s-001 s-002");
        check_words("{x,{1..3}}", "x 1 2 3");
        check_words("{a}{", "{a}{");
        check_words("{{a,b}", "{a {b");
        check_words("{3..1}", "{3..1}");
        check_words("{1..}", "{1..}");
        check_words("\\{a,b}", "\\{a,b}");
        check_words("{a\\,b,c}", "a\\,b c");
        assert_int_equal(words_expand("{1..100000}", &words, &n), 0);
        assert_int_equal(n, 100000);
        words = words_free(words);
        assert_int_equal(words_expand("{0..100000}", &words, &n), -E2BIG);
        assert_int_equal(words_expand("{1..1000}{1..1000}", &words, &n), -E2BIG);
        assert_int_equal(words_expand("{0..4294967297}", &words, &n), 0); /* no number: itself */
        assert_int_equal(n, 1);
        memset(limit, 'x', sizeof(limit));
        limit[PATTERN_BYTES_MAX + 1] = 0;
        assert_int_equal(words_expand(limit, &words, &n), -ENAMETOOLONG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_step),     cmocka_unit_test(test_expand),
                cmocka_unit_test(test_calendar), cmocka_unit_test(test_order_of_batches),
                cmocka_unit_test(test_range),    cmocka_unit_test(test_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
