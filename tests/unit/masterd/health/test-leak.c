/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/health/leak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MB (UINT64_C(1) << 20)
#define GB (UINT64_C(1) << 30)
#define MINUTE UINT64_C(60000000)

/* n minutes of which each holds f(minute). */
static bool fits(uint64_t (*f)(uint64_t), uint64_t n, struct leak_fit *ret) {
        struct leak l;

        leak_init(&l, 0, 30 * MINUTE);
        for (uint64_t i = 0; i <= n; i++)
                leak_enter(&l, i * MINUTE, f(i));
        return leak_fits(&l, f(n), 32 * GB, ret);
}

static uint64_t line(uint64_t i) {
        return GB + i * 20 * MB;
}
static uint64_t stairs(uint64_t i) {
        return GB + i / 8 * 160 * MB;
}
static uint64_t flat(uint64_t i) {
        return 4 * GB + i % 3 * MB;
}
static uint64_t cache(uint64_t i) {
        return i < 40 ? GB + i * 100 * MB : 5 * GB + (i - 40) * 2 * MB;
}
static uint64_t teeth(uint64_t i) {
        return 4 * GB + i % 4 * 500 * MB;
}
static uint64_t rising_teeth(uint64_t i) {
        return GB + i * 20 * MB + i % 3 * 500 * MB;
}
static uint64_t long_teeth(uint64_t i) {
        return GB + i % 45 * 30 * MB;
}

static void test_fit(void **state) {
        struct leak_fit fit;

        assert_true(fits(line, 60, &fit));
        assert_in_range(fit.bytes_per_hour, 1150 * MB, 1250 * MB);
        assert_in_range(fit.left_usec / MINUTE, 1450, 1600); /* 32 GB - 2.2 GB at 20 MB */
        assert_true(fits(stairs, 60, &fit));
        assert_true(fits(rising_teeth, 60, &fit));
        assert_false(fits(flat, 60, &fit));
        assert_false(fits(teeth, 60, &fit));
        for (uint64_t n = 40; n < 90; n++)
                assert_false(n > 52 && fits(cache, n, &fit));
        for (uint64_t n = 60; n < 180; n++)
                assert_false(fits(long_teeth, n, &fit));
}

/* Of its first time nothing is said: it starts. */
static void test_start(void **state) {
        struct leak_fit fit;

        for (uint64_t n = 1; n < 37; n++)
                assert_false(fits(line, n, &fit));
}

static void test_gaps(void **state) {
        struct leak_fit fit;
        struct leak l;

        leak_init(&l, 0, 30 * MINUTE);
        for (uint64_t i = 0; i <= 60; i++)
                leak_enter(&l, i * MINUTE, line(i));
        leak_enter(&l, 10000 * MINUTE, line(60));
        assert_false(leak_fits(&l, line(60), 32 * GB, &fit));
        assert_true(l.n <= LEAK_BUCKETS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fit),
                cmocka_unit_test(test_start),
                cmocka_unit_test(test_gaps),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
