/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/burst.h"

#define START (UINT64_C(1000) * USEC_PER_SEC)

static void test_burst(void **state) {
        struct burst b = {};

        for (int i = 0; i < 3; i++)
                assert_true(burst_admit(&b, START + (uint64_t)i, USEC_PER_SEC, 3));
        assert_false(burst_admit(&b, START + 3, USEC_PER_SEC, 3));
        /* The time is the first one's, and what was too much does not make it longer. */
        assert_false(burst_admit(&b, START + USEC_PER_SEC - 1, USEC_PER_SEC, 3));
        for (int i = 0; i < 3; i++)
                assert_true(burst_admit(&b, START + USEC_PER_SEC, USEC_PER_SEC, 3));
        assert_false(burst_admit(&b, START + USEC_PER_SEC, USEC_PER_SEC, 3));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_burst) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
