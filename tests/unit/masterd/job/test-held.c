/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/held.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/clock.h"

static const struct holding two = { .cpu_milli = 2000, .memory = UINT64_C(3) << 30, .gpus = 4 };

static void test_one_day(void **state) {
        uint64_t noon = 10 * DAY_USEC + DAY_USEC / 2;
        struct held h = held_on_day(&two, noon, noon + 90 * USEC_PER_SEC, 10);

        assert_int_equal(h.cpu, 180 * USEC_PER_SEC);
        assert_int_equal(h.memory, 3 * 1024 * 90 * 1000);
        assert_int_equal(h.gpu, 360 * USEC_PER_SEC);
        h = held_on_day(&two, noon, noon + 90 * USEC_PER_SEC, 9);
        assert_int_equal(h.cpu + h.memory + h.gpu, 0);
        h = held_on_day(&two, noon, noon, 10);
        assert_int_equal(h.cpu, 0);
        h = held_on_day(&two, noon, noon - 1, 10);
        assert_int_equal(h.cpu, 0);
}

static void test_over_midnight(void **state) {
        uint64_t from = 10 * DAY_USEC - 1, to = 13 * DAY_USEC + 1;
        struct held h;
        uint64_t sum = 0;

        for (uint32_t day = 8; day < 16; day++) {
                h = held_on_day(&two, from, to, day);
                sum += h.gpu;
                assert_int_equal(h.gpu, (day < 9 || day > 13 ? 0 : day == 9 || day == 13 ? 1 : DAY_USEC) * 4);
        }
        assert_int_equal(sum, (to - from) * 4);
}

/* As much as there can be for a year: nothing wraps, nor on the way there. */
static void test_much(void **state) {
        struct holding most = { .cpu_milli = 4096 * 1000, .memory = UINT64_C(64) << 40, .gpus = 64 };
        struct held h = held_on_day(&most, 0, DAY_USEC, 0);

        assert_int_equal(h.cpu, 4096 * DAY_USEC);
        assert_int_equal(h.memory, (UINT64_C(64) << 20) * 86400 * 1000);
        assert_int_equal(h.gpu, 64 * DAY_USEC);
        assert_true(h.memory < UINT64_MAX / 2 / 365);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_day),
                cmocka_unit_test(test_over_midnight),
                cmocka_unit_test(test_much),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
