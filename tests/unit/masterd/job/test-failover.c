/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/failover.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define SEC USEC_PER_SEC

static struct failover_policy policy(enum restart_type restart, uint32_t max, enum failure_policy exhausted) {
        return (struct failover_policy){ .restart = restart,
                                         .max_failures = max,
                                         .exhausted = exhausted,
                                         .window_usec = USEC_INFINITY,
                                         .backoff_initial_usec = SEC,
                                         .backoff_max_usec = 60 * SEC };
}

/* What the first ending of an executor leads to. */
static void test_first_ending(void **state) {
        static const struct {
                enum restart_type restart;
                uint32_t max;
                enum failure_policy exhausted;
                enum executor_event event;
                enum failover_action action;
        } table[] = {
                /* maxFailureTimes = 1: no restart */
                { RESTART_ON_FAILURE, 1, FAILURE_FAIL_APP, EXECUTOR_EVENT_FAILED, FAILOVER_FAIL_APP },
                { RESTART_ON_FAILURE, 1, FAILURE_FAIL_ATTEMPT, EXECUTOR_EVENT_FAILED, FAILOVER_FAIL_ATTEMPT },
                { RESTART_ON_FAILURE, 1, FAILURE_NONE, EXECUTOR_EVENT_FAILED, FAILOVER_LEAVE },
                { RESTART_ON_FAILURE, 2, FAILURE_FAIL_APP, EXECUTOR_EVENT_FAILED, FAILOVER_RESTART },
                { RESTART_ON_FAILURE, 1, FAILURE_FAIL_APP, EXECUTOR_EVENT_SUCCEEDED, FAILOVER_DONE },
                { RESTART_ON_FAILURE, 1, FAILURE_FAIL_APP, EXECUTOR_EVENT_KILLED, FAILOVER_RESTART },
                { RESTART_ON_FAILURE, 1, FAILURE_FAIL_APP, EXECUTOR_EVENT_LOST, FAILOVER_RESTART },
                { RESTART_NEVER, 9, FAILURE_FAIL_APP, EXECUTOR_EVENT_FAILED, FAILOVER_LEAVE },
                { RESTART_NEVER, 9, FAILURE_FAIL_APP, EXECUTOR_EVENT_SUCCEEDED, FAILOVER_DONE },
                { RESTART_ALWAYS, 1, FAILURE_FAIL_APP, EXECUTOR_EVENT_SUCCEEDED, FAILOVER_RESTART },
                { RESTART_ALWAYS, 1, FAILURE_FAIL_APP, EXECUTOR_EVENT_FAILED, FAILOVER_FAIL_APP },
                { RESTART_ALWAYS, 2, FAILURE_FAIL_APP, EXECUTOR_EVENT_FAILED, FAILOVER_RESTART },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct failover_policy p = policy(table[i].restart, table[i].max, table[i].exhausted);
                struct failover_history h = {};
                uint64_t delay = 77;
                assert_int_equal(failover_decide(&p, &h, table[i].event, 10 * SEC, 20 * SEC, &delay),
                                 table[i].action);
                /* The first restart does not wait; outputs are written for restarts only. */
                assert_int_equal(delay, table[i].action == FAILOVER_RESTART ? 0 : 77);
                assert_int_equal(failover_count(&p, &h, 20 * SEC), table[i].event == EXECUTOR_EVENT_FAILED);
        }
}

/* Nothing but failures brings the limit nearer. */
static void test_only_failures_count(void **state) {
        struct failover_policy p = policy(RESTART_ALWAYS, 2, FAILURE_FAIL_APP);
        struct failover_history h = {};
        uint64_t delay, now = SEC;

        for (int i = 0; i < 100; i++)
                for (int k = 0; k < 3; k++) {
                        static const enum executor_event events[] = { EXECUTOR_EVENT_SUCCEEDED,
                                                                      EXECUTOR_EVENT_KILLED,
                                                                      EXECUTOR_EVENT_LOST };
                        now += SEC;
                        assert_int_equal(failover_decide(&p, &h, events[k], now - 1, now, &delay),
                                         FAILOVER_RESTART);
                }
        assert_int_equal(failover_count(&p, &h, now), 0);
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, now, now, &delay), FAILOVER_RESTART);
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, now, now, &delay), FAILOVER_FAIL_APP);
}

static void test_window(void **state) {
        struct failover_policy p = policy(RESTART_ON_FAILURE, 3, FAILURE_FAIL_APP);
        struct failover_history h = {};
        uint64_t delay;

        p.window_usec = 100 * SEC;
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, 1000 * SEC, &delay),
                         FAILOVER_RESTART);
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, 1060 * SEC, &delay),
                         FAILOVER_RESTART);
        assert_int_equal(failover_count(&p, &h, 1100 * SEC), 2); /* the edge belongs to the window */
        assert_int_equal(failover_count(&p, &h, 1100 * SEC + 1), 1);
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, 1110 * SEC, &delay),
                         FAILOVER_RESTART);
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, 1160 * SEC, &delay),
                         FAILOVER_FAIL_APP);
        assert_int_equal(failover_count(&p, &h, 5000 * SEC), 0);
}

/* The limit is reached exactly at maxFailureTimes, also where that is more than is dated one by one. */
static void test_many_failures(void **state) {
        static const uint32_t limits[] = {
                1, 2, FAILOVER_REMEMBERED - 1, FAILOVER_REMEMBERED, FAILOVER_REMEMBERED + 1, 100, 5000
        };
        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                struct failover_policy p = policy(RESTART_ON_FAILURE, limits[i], FAILURE_FAIL_APP);
                struct failover_history h = {};
                uint64_t delay, now = SEC;
                for (uint32_t k = 1; k < limits[i]; k++)
                        assert_int_equal(
                                failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, now += SEC, &delay),
                                FAILOVER_RESTART);
                assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, now += SEC, &delay),
                                 FAILOVER_FAIL_APP);
        }
}

/* At a steady rate the count settles at what the window holds; it does not creep up to the limit. */
static void test_steady_rate(void **state) {
        static const uint64_t spacing[] = { 60, 90, 100, 227, 228, 240, 300, 1000 };

        for (size_t i = 0; i < ELEMENTSOF(spacing); i++) {
                struct failover_policy p = policy(RESTART_ON_FAILURE, 1000, FAILURE_FAIL_APP);
                struct failover_history h = {};
                uint64_t delay, now = 10 * SEC;
                p.window_usec = 3600 * SEC;
                for (int k = 0; k < 5000; k++) {
                        uint32_t real = (uint32_t)MIN((uint64_t)k + 1, 3600 / spacing[i] + 1), count;
                        now += spacing[i] * SEC;
                        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, now, &delay),
                                         FAILOVER_RESTART);
                        count = failover_count(&p, &h, now);
                        assert_true(count <= real);
                        assert_true(count >= real - real / 4);
                        if (real <= FAILOVER_REMEMBERED)
                                assert_int_equal(count, real);
                }
        }
}

static void test_backoff(void **state) {
        static const uint64_t expected[] = { 0, 1, 2, 4, 8, 16, 32, 60, 60, 60 };
        struct failover_policy p = policy(RESTART_ON_FAILURE, 1000, FAILURE_FAIL_APP);
        struct failover_history h = {};
        uint64_t delay, now = 1000 * SEC;

        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                now += 60 * SEC; /* exactly max: not longer */
                assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, now - 60 * SEC, now, &delay),
                                 FAILOVER_RESTART);
                assert_int_equal(delay, expected[i] * SEC);
        }
        /* One that never ran does not start afresh, however long that took. */
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, 0, now += 3600 * SEC, &delay),
                         FAILOVER_RESTART);
        assert_int_equal(delay, 60 * SEC);
        /* A run longer than max does. */
        now += 100 * SEC;
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, now - 61 * SEC, now, &delay),
                         FAILOVER_RESTART);
        assert_int_equal(delay, 0);
        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, now, now, &delay), FAILOVER_RESTART);
        assert_int_equal(delay, SEC);
}

static void test_backoff_edges(void **state) {
        static const struct {
                uint64_t initial, max, third;
        } table[] = {
                { 0, 0, 0 },
                { 0, SEC, 0 },
                { SEC, SEC, SEC },
                { 5 * SEC, 8 * SEC, 8 * SEC },
                { USEC_INFINITY / 2 + 1, USEC_INFINITY, USEC_INFINITY },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct failover_policy p = policy(RESTART_ON_FAILURE, 1000000, FAILURE_FAIL_APP);
                struct failover_history h = {};
                uint64_t delay = 1;
                p.backoff_initial_usec = table[i].initial;
                p.backoff_max_usec = table[i].max;
                for (int k = 0; k < 3; k++)
                        assert_int_equal(failover_decide(&p, &h, EXECUTOR_EVENT_FAILED, SEC, SEC, &delay),
                                         FAILOVER_RESTART);
                assert_true(delay == table[i].third);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_ending),  cmocka_unit_test(test_only_failures_count),
                cmocka_unit_test(test_window),        cmocka_unit_test(test_many_failures),
                cmocka_unit_test(test_steady_rate),   cmocka_unit_test(test_backoff),
                cmocka_unit_test(test_backoff_edges),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
