/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/series.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define START (1000 * 120 * USEC_PER_SEC) /* where points of both ranges begin */

static void assert_near(float a, double b) {
        if (!(fabs(a - b) <= 1e-4 * fmax(1, fabs(b))))
                fail_msg("%g is not %g", (double)a, b);
}

static void test_derive(void **state) {
        uint64_t before[_TELEMETRY_MAX], now[_TELEMETRY_MAX];
        struct series_input in = { .before_usec = 10 * USEC_PER_SEC,
                                   .now_usec = 15 * USEC_PER_SEC,
                                   .before = before,
                                   .now = now,
                                   .cpu = 4,
                                   .memory = 1000 };
        float v[_SERIES_MAX];

        telemetry_clear(before);
        telemetry_clear(now);
        series_derive(&in, v);
        for (size_t i = 0; i < _SERIES_MAX; i++)
                assert_true(isnan(v[i]));

        before[TELEMETRY_CPU_USEC] = 1 * USEC_PER_SEC;
        now[TELEMETRY_CPU_USEC] = 11 * USEC_PER_SEC; /* 10 s in 5 */
        now[TELEMETRY_MEMORY_BYTES] = 250;
        before[TELEMETRY_READ_BYTES] = 0;
        now[TELEMETRY_READ_BYTES] = 5000;
        before[TELEMETRY_NET_TX_BYTES] = 9000; /* the agent began to count anew */
        now[TELEMETRY_NET_TX_BYTES] = 500;
        now[TELEMETRY_GPU_UTILIZATION] = 500;
        before[TELEMETRY_PRESSURE_CPU_USEC] = 0;
        now[TELEMETRY_PRESSURE_CPU_USEC] = USEC_PER_SEC;
        before[TELEMETRY_PRESSURE_IO_USEC] = 0;
        now[TELEMETRY_PRESSURE_IO_USEC] = 2 * USEC_PER_SEC;
        before[TELEMETRY_PROGRESS_STEP] = 100;
        now[TELEMETRY_PROGRESS_STEP] = 110;
        series_derive(&in, v);
        assert_near(v[SERIES_CPU], 2);
        assert_near(v[SERIES_CPU_SHARE], 0.5);
        assert_near(v[SERIES_MEMORY_SHARE], 0.25);
        assert_near(v[SERIES_READ], 1000);
        assert_true(isnan(v[SERIES_WRITE]));
        assert_near(v[SERIES_NET_TX], 100);
        assert_near(v[SERIES_GPU], 0.5);
        assert_near(v[SERIES_PRESSURE], 0.4);
        assert_near(v[SERIES_STEPS], 2);

        /* What the kernel holds it to goes before what was asked for. */
        now[TELEMETRY_CPU_LIMIT_USEC] = 2 * USEC_PER_SEC;
        now[TELEMETRY_MEMORY_LIMIT_BYTES] = 500;
        now[TELEMETRY_PROGRESS_STEP] = 3; /* it went back to a checkpoint */
        series_derive(&in, v);
        assert_near(v[SERIES_CPU_SHARE], 1);
        assert_near(v[SERIES_MEMORY_SHARE], 0.5);
        assert_true(isnan(v[SERIES_STEPS]));

        in.before_usec = 0; /* one sample: what is, but no speed */
        series_derive(&in, v);
        assert_true(isnan(v[SERIES_CPU]));
        assert_near(v[SERIES_MEMORY], 250);
}

static void put(struct series *s, uint64_t usec, float cpu) {
        float values[_SERIES_MAX];

        for (size_t i = 0; i < _SERIES_MAX; i++)
                values[i] = NAN;
        values[SERIES_CPU] = cpu;
        series_add(s, usec, values);
}

static void test_points(void **state) {
        struct series_budget budget = { .max = 1 << 20 };
        float mean[SERIES_POINTS], max[SERIES_POINTS];
        uint64_t step = series_interval(SERIES_FINE);
        struct series *s;

        assert_int_equal(series_new(&budget, true, &s), 0);
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_CPU, START, mean, max), 0);
        put(s, START, 1);
        put(s, START + 1, 3);
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_CPU, START + 2, mean, max), 0);
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_CPU, START + step, mean, max), 1);
        assert_near(mean[0], 2);
        assert_near(max[0], 3);

        put(s, START + 4 * step, 7); /* nothing was heard of 1, 2 and 3 */
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_CPU, START + 5 * step, mean, max), 5);
        assert_near(mean[0], 2);
        assert_true(isnan(mean[1]) && isnan(mean[3]) && isnan(max[2]));
        assert_near(mean[4], 7);
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_READ, START + 5 * step, mean, NULL), 5);
        assert_true(isnan(mean[4]));

        /* It turns over: the latest are kept, in order. */
        for (unsigned i = 5; i < 300; i++)
                put(s, START + i * step, (float)i);
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_CPU, START + 300 * step, mean, max),
                         SERIES_POINTS);
        for (unsigned i = 0; i < SERIES_POINTS; i++)
                assert_near(mean[i], 180 + i);
        assert_int_equal(series_read(s, SERIES_COARSE, SERIES_CPU, START + 300 * step, mean, max), 12);
        assert_near(mean[11], (264 + 287) / 2.0);
        assert_near(max[11], 287);

        /* Long silence costs no more than the ring is long, and a clock that goes back nothing. */
        assert_int_equal(
                series_read(s, SERIES_FINE, SERIES_CPU, START + UINT64_C(1000000000) * step, mean, max),
                SERIES_POINTS);
        for (unsigned i = 0; i < SERIES_POINTS; i++)
                assert_true(isnan(mean[i]));
        put(s, START, 1);
        series_free(s);
        assert_int_equal(budget.bytes, 0);
}

static void test_widen(void **state) {
        struct series_budget budget = { .max = 1 << 20 };
        float mean[SERIES_POINTS], max[SERIES_POINTS];
        uint64_t step = series_interval(SERIES_FINE);
        struct series *s;
        size_t narrow;

        assert_int_equal(series_new(&budget, false, &s), 0);
        narrow = budget.bytes;
        put(s, START, 5);
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_CPU, START + step, mean, max), 1);
        assert_near(max[0], 5); /* of one */
        series_widen(s);
        assert_true(budget.bytes > narrow);
        put(s, START + step, 1);
        put(s, START + step, 2);
        assert_int_equal(series_read(s, SERIES_FINE, SERIES_CPU, START + 2 * step, mean, max), 2);
        assert_near(max[0], 5);
        assert_near(mean[1], 1.5);
        assert_near(max[1], 2);
        series_widen(s);
        series_free(s);
        assert_int_equal(budget.bytes, 0);
}

static void test_budget(void **state) {
        struct series_budget budget = { .max = 16 << 20 };
        float mean[SERIES_POINTS];
        struct series *s[4096];
        size_t n = 0;

        while (n < 4096 && series_new(&budget, true, s + n) == 0)
                n++;
        assert_in_range(n, 1000, 4095);
        assert_true(budget.bytes <= budget.max);
        print_message("%zu bytes of a role's first range\n", budget.bytes / n);
        /* The second range is wanted, and there is no room: that history begins when there is. */
        put(s[0], START, 1);
        assert_int_equal(series_read(s[0], SERIES_COARSE, SERIES_CPU,
                                     START + 3 * series_interval(SERIES_COARSE), mean, NULL),
                         0);
        put(s[0], START + 3 * series_interval(SERIES_COARSE), 1);
        for (size_t i = 1; i < n; i++)
                series_free(s[i]);
        assert_int_equal(series_read(s[0], SERIES_COARSE, SERIES_CPU,
                                     START + 5 * series_interval(SERIES_COARSE), mean, NULL),
                         2);
        assert_near(mean[0], 1);
        assert_true(isnan(mean[1]));
        print_message("%zu bytes of a role\n", budget.bytes);
        assert_in_range(budget.bytes, 1, 28 << 10);
        series_free(s[0]);
        assert_int_equal(budget.bytes, 0);
}

static void test_names(void **state) {
        for (enum series_kind k = 0; k < _SERIES_MAX; k++) {
                assert_non_null(series_name(k));
                for (enum series_kind l = 0; l < k; l++)
                        assert_string_not_equal(series_name(k), series_name(l));
        }
        assert_null(series_name(_SERIES_MAX));
        assert_true(series_adds(SERIES_MEMORY));
        assert_false(series_adds(SERIES_GPU));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_derive), cmocka_unit_test(test_points), cmocka_unit_test(test_widen),
                cmocka_unit_test(test_budget), cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
