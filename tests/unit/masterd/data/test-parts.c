/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting and sampling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/data/parts.h"
#include "masterd/data/permute.h"

static void test_split(void **state) {
        static const struct {
                uint64_t size, split, n, last_start;
        } cases[] = {
                { 100, 0, 1, 0 },     { 100, 100, 1, 0 }, { 100, 1000, 1, 0 },  { 101, 100, 1, 0 },
                { 125, 100, 2, 100 }, { 124, 100, 1, 0 }, { 200, 100, 2, 100 }, { 210, 100, 2, 100 },
                { 230, 100, 3, 200 }, { 3, 1, 3, 2 },     { 0, 10, 1, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const struct data_file f = { .size = cases[i].size,
                                             .last = cases[i].size,
                                             .split = cases[i].split };
                struct parts p = parts_of(&f, SAMPLE_ALL, 12345);
                uint64_t at = 0, start, end;
                assert_int_equal(p.n, cases[i].n);
                assert_int_equal(p.taken, cases[i].n);
                for (uint64_t k = 0; k < p.n; k++) {
                        parts_range(&p, &f, k, &start, &end);
                        assert_int_equal(start, at);
                        assert_true(end > start || f.size == 0);
                        at = end;
                }
                assert_int_equal(start, cases[i].last_start);
                assert_int_equal(at, f.size);
                assert_int_equal(parts_bytes(&p, &f), f.size);
        }
}

static void test_not_split(void **state) {
        const struct data_file gz = { .size = 1000, .last = TASK_TO_END, .split = 10 },
                               topic = { .size = TASK_UNKNOWN, .first = 7, .last = 9, .split = 1 },
                               huge = { .size = UINT64_MAX - 1, .last = UINT64_MAX - 1, .split = 1 };
        uint64_t start, end;
        struct parts p = parts_of(&gz, SAMPLE_ALL, 0);

        assert_int_equal(p.n, 1);
        parts_range(&p, &gz, 0, &start, &end);
        assert_int_equal(end, TASK_TO_END);
        assert_int_equal(parts_bytes(&p, &gz), 1000);
        p = parts_of(&topic, SAMPLE_ALL, 0);
        parts_range(&p, &topic, 0, &start, &end);
        assert_int_equal(p.n, 1);
        assert_int_equal(start, 7);
        assert_int_equal(end, 9);
        p = parts_of(&huge, SAMPLE_ALL, 0);
        assert_in_range(p.n, FILE_PARTS_MAX / 2, FILE_PARTS_MAX);
        parts_range(&p, &huge, p.n - 1, &start, &end);
        assert_int_equal(end, huge.size);
        assert_int_equal(parts_bytes(&p, &huge), huge.size);
}

static void test_sample(void **state) {
        static const uint32_t shares[] = { 1, 1000, 100000, 333333, 500000, 999999, SAMPLE_ALL };

        for (size_t s = 0; s < ELEMENTSOF(shares); s++) {
                uint64_t taken = 0, all = 0;
                for (uint64_t file = 0; file < 3000; file++) {
                        const struct data_file f = { .size = 1 + file * 7,
                                                     .last = 1 + file * 7,
                                                     .split = 100 };
                        struct parts p = parts_of(&f, shares[s], permute_hash(5, file));
                        uint64_t last = 0, bytes = 0, start, end;
                        for (uint64_t k = 0; k < p.taken; k++) {
                                parts_range(&p, &f, k, &start, &end);
                                assert_true(start >= last && end > start && end <= f.size);
                                assert_int_equal(start % 100, 0);
                                last = end;
                                bytes += end - start;
                        }
                        assert_int_equal(parts_bytes(&p, &f), bytes);
                        taken += p.taken;
                        all += p.n;
                }
                assert_in_range(taken,
                                (uint64_t)((double)all * shares[s] / 1e6 * 0.97 - 20 > 0
                                                   ? (double)all * shares[s] / 1e6 * 0.97 - 20
                                                   : 0),
                                (uint64_t)((double)all * shares[s] / 1e6 * 1.03 + 20));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_split),
                cmocka_unit_test(test_not_split),
                cmocka_unit_test(test_sample),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
