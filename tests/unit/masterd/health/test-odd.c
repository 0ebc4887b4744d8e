/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/health/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define R WAIT_RUNNING
#define N WAIT_NETWORK
#define F WAIT_FUTEX
#define S WAIT_SLEEP
#define D WAIT_DISK
#define T WAIT_STOPPED
#define U WAIT_UNKNOWN

static const struct {
        enum health_wait waits[8];
        size_t n;
        int odd;
} cases[] = {
        { { R, R, F, R }, 4, 2 }, /* the others spin */
        { { F, F, F, R }, 4, 3 }, /* the others block */
        { { F, T, F, F }, 4, 1 },
        { { F, S, F }, 3, 1 },
        { { N, N, N, N }, 4, -1 }, /* nobody stands out */
        { { F, R, F, R }, 4, -1 }, /* no majority */
        { { F, R, R, F, F, F, F }, 7, -1 },
        { { F, T, T, F, F, F, F }, 7, 1 },
        { { F, F, F, F, S, R, F }, 7, 4 }, /* the more suspicious */
        { { U, F, F, F }, 4, 0 },
        { { U, U, U, F }, 4, -1 },
        { { T, F }, 2, 0 },
        { { F, T }, 2, 1 },
        { { R, S }, 2, 1 },
        { { N, R }, 2, 1 },
        { { F, R }, 2, -1 }, /* who of them waits for the other? */
        { { D, N }, 2, 0 },
        { { F }, 1, -1 },
        { {}, 0, -1 },
};

static void test_odd(void **state) {
        enum health_wait usual;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(health_odd_one(cases[i].waits, cases[i].n, &usual), cases[i].odd);
        assert_int_equal(health_odd_one(cases[0].waits, 4, &usual), 2);
        assert_int_equal(usual, WAIT_RUNNING);
}

static void test_wait_of(void **state) {
        const enum health_wait threads[] = { WAIT_OTHER, WAIT_NETWORK, WAIT_FUTEX, WAIT_NETWORK,
                                             WAIT_RUNNING };
        const bool mains[] = { true, true, true, false, false };

        /* A shell, the feeder, and the trainer; what its helping threads do says nothing. */
        assert_int_equal(health_wait_of(threads, mains, 5), WAIT_FUTEX);
        assert_int_equal(health_wait_of(threads, mains, 1), WAIT_OTHER);
        assert_int_equal(health_wait_of(threads, mains, 0), WAIT_UNKNOWN);
}

static void test_names(void **state) {
        for (int w = 0; w < _WAIT_MAX; w++)
                assert_non_null(health_wait_to_string((enum health_wait)w));
        for (int k = 0; k < _VERDICT_MAX; k++)
                assert_non_null(verdict_kind_to_string((enum verdict_kind)k));
        assert_null(verdict_kind_to_string(_VERDICT_MAX));
        assert_null(health_wait_to_string(_WAIT_MAX));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_odd),
                cmocka_unit_test(test_wait_of),
                cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
