/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/log/find.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"

#define LINES "step 1\nNCCL WARN closed\nstep 2\n\xff\x80 CUDA error\nNCCL WARN again\nno end of line"

static void test_first_of_each(void **state) {
        char *patterns[] = { (char *)"^NCCL", (char *)"CUDA", (char *)"nothing", (char *)"line$",
                             (char *)"1.NCCL" };
        struct found_line found[ELEMENTSOF(patterns)] = {};

        assert_int_equal(find_lines(LINES, sizeof(LINES) - 1, patterns, ELEMENTSOF(patterns), found), 1);
        assert_true(found[0].found);
        assert_string_equal(found[0].text, "NCCL WARN closed");
        assert_true(found[1].found);
        assert_string_equal(found[1].text, "?? CUDA error");
        assert_false(found[2].found);
        assert_true(found[3].found);
        assert_false(found[4].found); /* lines are apart */
}

static void test_nothing(void **state) {
        char *patterns[] = { (char *)"^$" };
        struct found_line found[1] = {};

        assert_int_equal(find_lines("", 0, patterns, 1, found), 1);
        assert_false(found[0].found);
        assert_int_equal(find_lines("\n", 1, patterns, 1, found), 1);
        assert_true(found[0].found);
        assert_int_equal(find_lines("a\n", 2, NULL, 0, NULL), 1);
        patterns[0] = (char *)"(";
        assert_int_equal(find_lines("a\n", 2, patterns, 1, found), -EINVAL);
}

static void test_long_line(void **state) {
        static char line[3 * FIND_LINE_MAX];
        char *patterns[] = { (char *)"a" };
        struct found_line found[1] = {};

        memset(line, 'a', sizeof(line));
        assert_int_equal(find_lines(line, sizeof(line), patterns, 1, found), 1);
        assert_int_equal(strlen(found[0].text), FIND_LINE_MAX);
}

/* Expressions that take all the steps they may, on many lines: it ends in time, and says that it is not all.
 */
static void test_time(void **state) {
        static char text[256 << 10];
        char *patterns[FIND_PATTERNS_MAX];
        struct found_line found[FIND_PATTERNS_MAX] = {};
        uint64_t before = now_boot();

        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = i % 64 == 63 ? '\n' : 'a';
        for (size_t i = 0; i < FIND_PATTERNS_MAX; i++)
                patterns[i] = (char *)"(a+)+(a|aa)+[!?]";
        assert_int_equal(find_lines(text, sizeof(text), patterns, FIND_PATTERNS_MAX, found), 0);
        assert_in_range(now_boot() - before, FIND_USEC_MAX, FIND_USEC_MAX + 20 * USEC_PER_SEC);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_of_each),
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_long_line),
                cmocka_unit_test(test_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
