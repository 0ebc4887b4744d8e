/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/view/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/clock.h"

#define E(t, kind, role, index, text)                                                                        \
        { .sequence = 1, .time = (t)*USEC_PER_SEC, (char *)(kind), (char *)(role), (char *)(text), (index) }

static void test_tell(void **state) {
        static const struct story_event events[] = {
                E(1, "submitted", "", 0, "submitted by uid 1000: 4 executors"),
                E(2, "executor-failed", "w", 2, "attempt 1 on n2: exit status 1"),
                E(2, "executor-failed", "w", 0, "attempt 1 on n1: exit status 1"),
                E(3, "executor-failed", "w", 1, "attempt 1 on n2: exit status 2"),
                E(3, "executor-failed", "w", 3, "attempt 1 on n3: exit status 1"),
                E(4, "running", "", 0, "4 executors run"),
                E(4, "executor-failed", "w", 5, "attempt 1 on n1: exit status 1"),
                E(20, "executor-failed", "w", 6, "attempt 1 on n1: exit status 1"),
                E(20, "executor-failed", "ps", 6, "attempt 1 on n1: exit status 1"),
        };
        static const struct {
                const char *who, *text;
                size_t n;
        } wanted[] = {
                { "", "submitted by uid 1000: 4 executors", 1 },
                { "w/0,2-3", "attempt 1 on n2, n1, n3: exit status 1", 3 },
                { "w/1", "attempt 1 on n2: exit status 2", 1 },
                { "", "4 executors run", 1 },
                { "w/5", "attempt 1 on n1: exit status 1", 1 },
                { "w/6", "attempt 1 on n1: exit status 1", 1 },
                { "ps/6", "attempt 1 on n1: exit status 1", 1 },
        };
        struct story_line *lines = NULL;
        size_t n = 0;

        assert_int_equal(story_tell(events, ELEMENTSOF(events), &lines, &n), 0);
        assert_int_equal(n, ELEMENTSOF(wanted));
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(lines[i].who, wanted[i].who);
                assert_string_equal(lines[i].text, wanted[i].text);
                assert_int_equal(lines[i].n, wanted[i].n);
        }
        story_lines_free(lines, n);
        assert_int_equal(story_tell(NULL, 0, &lines, &n), 0);
        assert_int_equal(n, 0);
        story_lines_free(lines, n);
}

static void test_many(void **state) {
        static struct story_event events[5000];
        static char texts[5000][64];
        struct story_line *lines = NULL;
        size_t n = 0;

        for (uint32_t i = 0; i < 5000; i++) {
                snprintf(texts[i], sizeof(texts[i]), "attempt 1 on node%u: lost", i % 100);
                events[i] = (struct story_event)E(1, "executor-lost", "w", 4999 - i, texts[i]);
        }
        assert_int_equal(story_tell(events, 5000, &lines, &n), 0);
        assert_int_equal(n, 1);
        assert_string_equal(lines[0].who, "w/0-4999");
        assert_string_equal(lines[0].text, "attempt 1 on node0, node1, node2 and others: lost");
        story_lines_free(lines, n);
}

static void test_indices(void **state) {
        uint32_t far[] = { 20, 18, 16, 14, 12, 10, 8, 6, 4, 2 }, one[] = { 7 }, twice[] = { 3, 3, 4 };
        char *text;

        assert_string_equal(text = story_indices(far, 10), "2,4,6,8,10,12,14,16,...");
        free(text);
        assert_string_equal(text = story_indices(one, 1), "7");
        free(text);
        assert_string_equal(text = story_indices(twice, 3), "3-4");
        free(text);
}

static void test_after(void **state) {
        char text[STORY_AFTER_MAX];

        assert_string_equal(story_after(10, 10 + 950000, text, sizeof(text)), "+0.9s");
        assert_string_equal(story_after(0, 123 * USEC_PER_SEC + 1, text, sizeof(text)), "+2min 3s");
        assert_string_equal(story_after(10, 5, text, sizeof(text)), "+0.0s");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tell),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_indices),
                cmocka_unit_test(test_after),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
