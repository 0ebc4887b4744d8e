/* SPDX-License-Identifier: Apache-2.0 */
/* The permutation of the shuffle: it is one, looks random, and stays the same. */
#include "masterd/data/permute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_permutation(void **state) {
        static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 63, 64, 65, 1000, 65537 };

        for (size_t k = 0; k < ELEMENTSOF(sizes); k++)
                for (uint64_t key = 0; key < 5; key++) {
                        _cleanup_free_ char *seen = calloc(1, sizes[k]);
                        assert_non_null(seen);
                        for (uint64_t i = 0; i < sizes[k]; i++) {
                                uint64_t p = permute(key, sizes[k], i);
                                assert_true(p < sizes[k] && !seen[p]);
                                seen[p] = 1;
                        }
                }
}

/* Neighbours are far apart, and about half of all pairs are in their order: no more can be asked of it here.
 */
static void test_permutation_looks_random(void **state) {
        const uint64_t n = 10000;
        uint64_t rising = 0, near = 0;

        for (uint64_t i = 1; i < n; i++) {
                uint64_t a = permute(42, n, i - 1), b = permute(42, n, i);
                rising += a < b;
                near += (a > b ? a - b : b - a) < n / 100;
        }
        assert_in_range(rising, n * 47 / 100, n * 53 / 100);
        assert_in_range(near, 0, n * 4 / 100);
}

/* The order of a job that was begun by an earlier version must come out the same. */
static void test_format_is_kept(void **state) {
        assert_int_equal(permute_hash(1, 2), UINT64_C(13608149317741381227));
        assert_int_equal(permute(7, 1000, 0), 246);
        assert_int_equal(permute(7, 1000, 999), 598);
        assert_int_equal(permute(7, UINT64_C(1) << 40, 12345), UINT64_C(4020107975));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_permutation),
                cmocka_unit_test(test_permutation_looks_random),
                cmocka_unit_test(test_format_is_kept),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
