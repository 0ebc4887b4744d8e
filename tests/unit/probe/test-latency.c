/* SPDX-License-Identifier: Apache-2.0 */
/* The programs on demand: their words, and, where this kernel and user let them, that they load, count and
 * go. */
#include "agentd/probe/latency.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_words(void **state) {
        for (int k = 0; k < _LATENCY_KIND_MAX; k++)
                assert_int_equal(latency_kind_from_string(latency_kind_to_string((enum latency_kind)k)), k);
        assert_int_equal(latency_kind_from_string("no such"), _LATENCY_KIND_INVALID);
        assert_string_equal(latency_class_name(LATENCY_IO, TRACE_SYNC), "sync");
        assert_string_equal(latency_class_name(LATENCY_RUNQUEUE, TRACE_READ), "wait");
        assert_null(latency_class_name(LATENCY_RUNQUEUE, TRACE_WRITE));
        assert_null(latency_class_name(LATENCY_IO, _TRACE_CLASS_MAX));
}

/* Control groups of those numbers there are none: nothing is counted. */
static void test_programs(void **state) {
        for (int k = 0; k < _LATENCY_KIND_MAX; k++) {
                char why[LATENCY_WHY_MAX] = "";
                struct latency *l = NULL;
                struct trace_unit u;
                int r = latency_new((enum latency_kind)k, UINT64_MAX, why, &l);

                if (r < 0) {
                        assert_true(*why);
                        print_message("%s: %s\n", latency_kind_to_string((enum latency_kind)k), why);
                        skip();
                }
                assert_int_equal(latency_add(l, UINT64_MAX - 1), 0);
                assert_int_equal(latency_add(l, UINT64_MAX - 1), -EEXIST);
                memset(&u, 0xff, sizeof(u));
                assert_int_equal(latency_read(l, UINT64_MAX - 1, &u), 0);
                assert_true(u.classes[TRACE_READ].count == 0 && u.classes[TRACE_SYNC].buckets[7] == 0);
                assert_int_equal(latency_read(l, 7, &u), -ENOENT);
                for (uint64_t i = 1; i < TRACE_UNITS_MAX; i++)
                        assert_int_equal(latency_add(l, i), 0);
                assert_int_equal(latency_add(l, TRACE_UNITS_MAX), -E2BIG);
                latency_remove(l, 7);
                assert_int_equal(latency_add(l, TRACE_UNITS_MAX), 0);
                assert_true(latency_missed(l) == 0);
                latency_free(l);
        }
}

static void test_stacks_of_nobody(void **state) {
        assert_null(latency_stacks(UINT64_MAX, UINT64_MAX - 1));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_programs),
                cmocka_unit_test(test_stacks_of_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
