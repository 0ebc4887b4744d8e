/* SPDX-License-Identifier: Apache-2.0 */
/* The programs on demand: their words, and, where this kernel and user let them, that they load, count and
 * go. */
#include "agentd/probe/latency.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/probe/maps.h"
#include "bpf/trace.h"
#include "starter/observe/tracing.h"

static void test_words(void **state) {
        for (int k = 0; k < _OBSERVE_TRACE_MAX; k++)
                assert_int_equal(observe_trace_from_string(observe_trace_to_string((enum observe_trace)k)),
                                 k);
        assert_int_equal(observe_trace_from_string("no such"), _OBSERVE_TRACE_INVALID);
        assert_string_equal(latency_class_name(OBSERVE_TRACE_IO, TRACE_SYNC), "sync");
        assert_string_equal(latency_class_name(OBSERVE_TRACE_RUNQUEUE, TRACE_READ), "wait");
        assert_null(latency_class_name(OBSERVE_TRACE_RUNQUEUE, TRACE_WRITE));
        assert_null(latency_class_name(OBSERVE_TRACE_IO, _TRACE_CLASS_MAX));
}

static int bpf_write(int fd) {
        struct trace_settings s = { .slice = 1 };
        uint32_t zero = 0;

        return map_update(fd, &zero, &s, 0);
}

/* Control groups of those numbers there are none: nothing is counted. */
static void test_programs(void **state) {
        for (int k = 0; k < _OBSERVE_TRACE_MAX; k++) {
                char why[OBSERVE_WHY_MAX] = "";
                struct tracing *programs = NULL;
                struct latency *l = NULL;
                struct trace_unit u;
                int r = tracing_new((enum observe_trace)k, UINT64_MAX, why, &programs);

                if (r < 0) {
                        assert_true(*why);
                        print_message("%s: %s\n", observe_trace_to_string((enum observe_trace)k), why);
                        skip();
                }
                /* What they look at is not for the agent to say, though it has the descriptor. */
                assert_int_equal(bpf_write(tracing_settings(programs)), -EPERM);
                assert_int_equal(latency_new(fcntl(tracing_settings(programs), F_DUPFD_CLOEXEC, 3),
                                             fcntl(tracing_latencies(programs), F_DUPFD_CLOEXEC, 3), &l),
                                 0);
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
                tracing_free(programs);
        }
}

static void test_stacks_of_nobody(void **state) {
        _cleanup_close_ int fd = tracing_stacks(UINT64_MAX, UINT64_MAX - 1);
        char text[8];

        if (fd < 0)
                skip();
        assert_int_equal(read(fd, text, sizeof(text)), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_programs),
                cmocka_unit_test(test_stacks_of_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
