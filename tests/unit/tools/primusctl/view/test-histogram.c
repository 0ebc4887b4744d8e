/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/view/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_time(void **state) {
        static const struct {
                uint64_t ns;
                const char *text;
        } cases[] = {
                { 0, "0ns" },
                { 512, "512ns" },
                { 1024, "1.02us" },
                { 16777216, "16.8ms" },
                { 999000000, "999ms" },
                { 1073741824, "1.07s" },
                { 549755813888, "550s" },
        };
        char buf[32];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_string_equal(histogram_time(cases[i].ns, buf, sizeof(buf)), cases[i].text);
}

static void test_numbers(void **state) {
        struct histogram h = { .name = "read" }, before = h, more = h;

        assert_true(histogram_quantile(&h, 500) == 0);
        h.count = 10;
        h.sum_ns = 1000;
        h.bytes = 5;
        h.buckets[4] = 9;
        h.buckets[10] = 1;
        assert_true(histogram_quantile(&h, 500) == 32);
        assert_true(histogram_quantile(&h, 900) == 32);
        assert_true(histogram_quantile(&h, 990) == 2048);
        assert_true(histogram_quantile(&h, 1000) == 2048);
        before.count = 3;
        before.sum_ns = 400;
        before.buckets[4] = 3;
        more = h;
        histogram_subtract(&h, &before);
        assert_true(h.count == 7 && h.sum_ns == 600 && h.buckets[4] == 6 && h.buckets[10] == 1);
        histogram_add(&h, &before);
        assert_true(h.count == 10 && h.buckets[4] == 9);
        /* It was traced anew in between: what is there is new. */
        before.count = 100;
        histogram_subtract(&more, &before);
        assert_true(more.count == 10 && more.sum_ns == 1000);
}

static void test_print(void **state) {
        struct histogram h = { .name = "read", .count = 5, .sum_ns = 5 * 20000000, .bytes = 600 };
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        h.buckets[22] = 1;
        h.buckets[24] = 4;
        histogram_print(f, &h, 2000000, 8, false);
        assert_int_equal(fclose(f), 0);
        assert_non_null(
                strstr(text, "  read: 5 (2.5/s), 300/s, mean 20.0ms, half below 33.6ms, 99% below 33.6ms\n"));
        assert_non_null(strstr(text, "   4.19ms - 8.39ms           1 ##\n"));
        assert_non_null(strstr(text, "   8.39ms - 16.8ms           0 \n"));
        assert_non_null(strstr(text, "   16.8ms - 33.6ms           4 ########\n"));
        assert_null(strstr(text, "2.10ms"));
}

static void test_nothing(void **state) {
        const struct histogram h = { .name = "sync" };
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        histogram_print(f, &h, 0, 8, false);
        assert_int_equal(fclose(f), 0);
        assert_string_equal(text, "  sync: none\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_time),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_print),
                cmocka_unit_test(test_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
