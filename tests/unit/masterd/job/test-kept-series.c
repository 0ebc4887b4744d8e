/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/kept-series.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define START (1000 * 120 * USEC_PER_SEC) /* where points of both ranges begin */

static struct series_budget budget = { .max = 1u << 20 };

/* Of an hour, some numbers known and some not; returns the time behind it. */
static uint64_t fill(struct series *s, bool two) {
        float values[_SERIES_MAX];
        uint64_t now = START;

        for (unsigned i = 0; i < 720; i++, now += 5 * USEC_PER_SEC) {
                for (size_t k = 0; k < _SERIES_MAX; k++)
                        values[k] = k % 3 == 2 || (k == 1 && i % 40 < 20) ? NAN : (float)(k * 1000 + i);
                series_add(s, now, values);
                if (!two)
                        continue;
                for (size_t k = 0; k < _SERIES_MAX; k++)
                        values[k] *= 2;
                series_add(s, now, values);
        }
        return now;
}

static void assert_same(const float *a, const float *b, size_t n) {
        for (size_t i = 0; i < n; i++)
                assert_true(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])));
}

static void check_round_trip(bool two, bool coarse) {
        float mean[SERIES_POINTS], max[SERIES_POINTS], mean_read[SERIES_POINTS], max_read[SERIES_POINTS];
        struct series *s;
        uint8_t *bytes;
        size_t size;
        uint64_t now;

        assert_int_equal(series_new(&budget, two, &s), 0);
        now = fill(s, two);
        assert_int_equal(kept_series_write(s, now, coarse, &bytes, &size), 0);
        assert_in_range(size, 1000, 25000);
        for (enum series_range r = 0; r < _SERIES_RANGE_MAX; r++)
                for (enum series_kind k = 0; k < _SERIES_MAX; k++) {
                        size_t n = series_read(s, r, k, now, mean, max);
                        bool known = k % 3 != 2 && !(coarse && r == SERIES_FINE);
                        assert_int_equal(kept_series_read(bytes, size, r, k, mean_read, max_read),
                                         known ? n : 0);
                        if (!known)
                                continue;
                        assert_same(mean, mean_read, n);
                        assert_same(max, max_read, n);
                }
        free(bytes);
        series_free(s);
}

static void test_what_is_written_is_read(void **state) {
        check_round_trip(false, false);
        check_round_trip(true, false);
        check_round_trip(true, true);
        assert_int_equal(budget.bytes, 0);
}

static void test_nothing_is_known(void **state) {
        float values[_SERIES_MAX];
        struct series *s;
        uint8_t *bytes;
        size_t size;

        for (size_t k = 0; k < _SERIES_MAX; k++)
                values[k] = NAN;
        assert_int_equal(series_new(&budget, false, &s), 0);
        for (unsigned i = 0; i < 10; i++)
                series_add(s, START + i * 5 * USEC_PER_SEC, values);
        assert_int_equal(kept_series_write(s, START + 60 * USEC_PER_SEC, false, &bytes, &size), 0);
        assert_int_equal(size, 0);
        free(bytes);
        series_free(s);
}

/* Cut anywhere, and with any byte changed, it is read within its bounds (a sanitizer looks), and what is in
 * front of the cut is as it was. */
static void test_damaged(void **state) {
        float mean[SERIES_POINTS], max[SERIES_POINTS], first[SERIES_POINTS];
        struct series *s;
        uint8_t *bytes;
        size_t size, n;

        assert_int_equal(series_new(&budget, true, &s), 0);
        (void)kept_series_write(s, fill(s, true), false, &bytes, &size);
        n = kept_series_read(bytes, size, SERIES_FINE, SERIES_CPU, first, max);
        assert_int_equal(n, SERIES_POINTS);
        for (size_t cut = 0; cut < size; cut += 1 + cut / 64) {
                uint8_t *part = malloc(cut + 1);
                memcpy(part, bytes, cut);
                part = realloc(part, cut ? cut : 1);
                for (enum series_kind k = 0; k < _SERIES_MAX; k++)
                        assert_true(kept_series_read(part, cut, SERIES_COARSE, k, mean, max) <=
                                    SERIES_POINTS);
                if (kept_series_read(part, cut, SERIES_FINE, SERIES_CPU, mean, max) > 0)
                        assert_same(mean, first, n);
                free(part);
        }
        srand(17);
        for (unsigned i = 0; i < 20000; i++) {
                size_t at = (size_t)rand() % size;
                uint8_t was = bytes[at];
                bytes[at] = (uint8_t)rand();
                assert_true(kept_series_read(bytes, size, SERIES_COARSE, SERIES_NET_TX, mean, max) <=
                            SERIES_POINTS);
                bytes[at] = was;
        }
        bytes[0]++; /* a version that is not known */
        assert_int_equal(kept_series_read(bytes, size, SERIES_FINE, SERIES_CPU, mean, max), 0);
        free(bytes);
        series_free(s);
}

/* A program of another version had other numbers. */
static void test_names_that_are_not_known_are_passed_over(void **state) {
        static const uint8_t bytes[] = {
                1, SERIES_FINE, 5, 1, 1, 'm', 'o', 'o', 'n', 's', 0,    0,    0, 0, 0,    0,   0,
                0, SERIES_FINE, 3, 0, 2, 'c', 'p', 'u', 0,   0,   0x80, 0x3f, 0, 0, 0x20, 0x41
        };
        float mean[SERIES_POINTS], max[SERIES_POINTS];

        assert_int_equal(kept_series_read(bytes, sizeof(bytes), SERIES_FINE, SERIES_CPU, mean, max), 2);
        assert_true(mean[0] == 1 && mean[1] == 10 && max[1] == 10);
        assert_int_equal(kept_series_read(bytes, sizeof(bytes), SERIES_COARSE, SERIES_CPU, mean, max), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_written_is_read),
                cmocka_unit_test(test_nothing_is_known),
                cmocka_unit_test(test_damaged),
                cmocka_unit_test(test_names_that_are_not_known_are_passed_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
