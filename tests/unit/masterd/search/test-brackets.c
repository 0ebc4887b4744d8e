/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers are those that Determined's tests have for the same settings; where its logarithms of doubles
 * fall one short, ours are the exact ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/search/search.h"

static void test_units(void **state) {
        static const struct {
                uint32_t n, divisor;
                uint64_t max, units[4];
        } cases[] = {
                { 3, 3, 9, { 1, 3, 9 } },         { 4, 2, 10, { 1, 2, 5, 10 } }, { 1, 3, 9, { 9 } },
                { 3, 3, 900, { 100, 300, 900 } }, { 3, 10, 50, { 1, 5, 50 } }, /* never none */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct search_settings s = { .divisor = cases[i].divisor, .max_time = cases[i].max };

                for (uint32_t k = 0; k < cases[i].n; k++)
                        assert_int_equal(search_units(&s, cases[i].n, k), cases[i].units[k]);
        }
}

static void test_brackets(void **state) {
        static const struct {
                struct search_settings settings;
                size_t n;
                struct search_bracket brackets[5];
        } cases[] = {
                /* rungs that are given */
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 20,
                    .divisor = 3,
                    .max_rungs = 3,
                    .max_time = 900,
                    .rungs = { 3, 2, 1 },
                    .n_rungs = 3 },
                  3,
                  { { 3, 12, 3 }, { 2, 5, 3 }, { 1, 3, 3 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 50,
                    .divisor = 3,
                    .max_rungs = 4,
                    .max_time = 900,
                    .rungs = { 4, 3 },
                    .n_rungs = 2 },
                  2,
                  { { 4, 35, 15 }, { 3, 15, 15 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 50,
                    .divisor = 4,
                    .max_rungs = 3,
                    .max_time = 900,
                    .rungs = { 3, 2 },
                    .n_rungs = 2 },
                  2,
                  { { 3, 37, 13 }, { 2, 13, 13 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 100,
                    .max_concurrent = 11,
                    .divisor = 4,
                    .max_rungs = 4,
                    .max_time = 900,
                    .rungs = { 4, 3, 2 },
                    .n_rungs = 3 },
                  3,
                  { { 4, 70, 4 }, { 3, 22, 4 }, { 2, 8, 3 } } },
                /* of a mode */
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 10,
                    .max_concurrent = 2,
                    .divisor = 4,
                    .max_rungs = 5,
                    .max_time = 100 },
                  2,
                  { { 2, 7, 1 }, { 1, 3, 1 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .mode = SEARCH_CONSERVATIVE,
                    .max_trials = 10,
                    .max_concurrent = 5,
                    .divisor = 3,
                    .max_rungs = 3,
                    .max_time = 1000 },
                  3,
                  { { 3, 7, 2 }, { 2, 2, 2 }, { 1, 1, 1 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 500,
                    .max_concurrent = 16,
                    .divisor = 4,
                    .max_rungs = 5,
                    .max_time = 256 },
                  3,
                  { { 5, 354, 6 }, { 4, 110, 5 }, { 3, 36, 5 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 9,
                    .max_concurrent = 3,
                    .divisor = 3,
                    .max_rungs = 5,
                    .max_time = 90 },
                  2,
                  { { 3, 6, 2 }, { 2, 3, 1 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .mode = SEARCH_AGGRESSIVE,
                    .max_trials = 9,
                    .max_concurrent = 3,
                    .divisor = 3,
                    .max_rungs = 5,
                    .max_time = 90 },
                  1,
                  { { 3, 9, 3 } } },
                /* exact powers: 3^5 and 10^3 */
                { { .method = SEARCH_ADAPTIVE,
                    .mode = SEARCH_AGGRESSIVE,
                    .max_trials = 243,
                    .max_concurrent = 1,
                    .divisor = 3,
                    .max_rungs = 9,
                    .max_time = 243 },
                  1,
                  { { 6, 243, 1 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .mode = SEARCH_AGGRESSIVE,
                    .max_trials = 1000,
                    .max_concurrent = 1,
                    .divisor = 10,
                    .max_rungs = 9,
                    .max_time = 1000 },
                  1,
                  { { 4, 1000, 1 } } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 1,
                    .divisor = 4,
                    .max_rungs = 5,
                    .max_time = 100 },
                  1,
                  { { 1, 1, 1 } } },
                { { .method = SEARCH_ASHA,
                    .max_trials = 10,
                    .max_concurrent = 3,
                    .divisor = 3,
                    .max_rungs = 3,
                    .max_time = 900 },
                  1,
                  { { 3, 10, 3 } } },
                { { .method = SEARCH_ASHA, .max_trials = 100, .divisor = 3, .max_rungs = 3, .max_time = 900 },
                  1,
                  { { 3, 100, 9 } } },
                { { .method = SEARCH_ASHA, .max_trials = 5, .divisor = 3, .max_rungs = 9, .max_time = 9 },
                  1,
                  { { 3, 5, 5 } } },
                /* Hyperband's table for R = 81, eta = 3 has 81, 34, 15, 8, 5 (Li et al. 2018): shares of 143
                 */
                { { .method = SEARCH_HYPERBAND,
                    .max_trials = 143,
                    .max_concurrent = 5,
                    .divisor = 3,
                    .max_rungs = 5,
                    .max_time = 81 },
                  5,
                  { { 5, 81, 1 }, { 4, 34, 1 }, { 3, 15, 1 }, { 2, 8, 1 }, { 1, 5, 1 } } },
                { { .method = SEARCH_HYPERBAND,
                    .max_trials = 2,
                    .divisor = 3,
                    .max_rungs = 5,
                    .max_time = 81 },
                  2,
                  { { 2, 1, 1 }, { 1, 1, 1 } } },
                { { .method = SEARCH_GRID, .max_trials = 10 }, 1, { { 0, 10, 10 } } },
                { { .method = SEARCH_RANDOM, .max_trials = 10, .max_concurrent = 3 }, 1, { { 0, 10, 3 } } },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct search_bracket b[SEARCH_BRACKETS_MAX];

                assert_int_equal(search_brackets(&cases[i].settings, b), cases[i].n);
                for (size_t k = 0; k < cases[i].n; k++) {
                        assert_int_equal(b[k].n_rungs, cases[i].brackets[k].n_rungs);
                        assert_int_equal(b[k].trials, cases[i].brackets[k].trials);
                        assert_int_equal(b[k].at_once, cases[i].brackets[k].at_once);
                }
        }
}

/* What a preview says: 10 trials of two brackets, 7 and 3. */
static void test_expected(void **state) {
        struct search_settings s = { .method = SEARCH_ADAPTIVE,
                                     .max_trials = 10,
                                     .max_concurrent = 5,
                                     .divisor = 3,
                                     .max_rungs = 10,
                                     .max_time = 900 };
        struct search_bracket b[SEARCH_BRACKETS_MAX];
        uint32_t n[SEARCH_RUNGS_MAX];

        assert_int_equal(search_brackets(&s, b), 2);
        search_expect(&s, b + 0, n);
        assert_true(n[0] == 7 && n[1] == 2 && n[2] == 1);
        search_expect(&s, b + 1, n);
        assert_true(n[0] == 3 && n[1] == 1);
}

/* Whatever the settings, the shares are all that there is, and nobody is without one. */
static void test_all_is_given_out(void **state) {
        unsigned seed = 3;

        for (int i = 0; i < 20000; i++) {
                struct search_settings s = {
                        .method = SEARCH_ADAPTIVE + (unsigned)rand_r(&seed) % 2,
                        .mode = (unsigned)rand_r(&seed) % _SEARCH_MODE_MAX,
                        .max_trials = 1 + (unsigned)rand_r(&seed) % (i % 2 ? 20 : SEARCH_TRIALS_MAX),
                        .max_concurrent = (unsigned)rand_r(&seed) % 30,
                        .divisor = 2 + (unsigned)rand_r(&seed) % (i % 3 ? 4 : SEARCH_DIVISOR_MAX - 1),
                        .max_rungs = 1 + (unsigned)rand_r(&seed) % SEARCH_RUNGS_MAX,
                        .max_time = 1 + ((uint64_t)rand_r(&seed) << (rand_r(&seed) % 22)),
                };
                struct search_bracket b[SEARCH_BRACKETS_MAX];
                size_t n = search_brackets(&s, b);
                uint32_t trials = 0;

                assert_in_range(n, 1, SEARCH_BRACKETS_MAX);
                for (size_t k = 0; k < n; k++) {
                        assert_in_range(b[k].n_rungs, 1, s.max_rungs);
                        assert_in_range(b[k].trials, 1, s.max_trials);
                        assert_in_range(b[k].at_once, 1, b[k].trials);
                        assert_true(k == 0 || b[k].n_rungs < b[k - 1].n_rungs);
                        trials += b[k].trials;
                }
                assert_int_equal(trials, s.max_trials);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_units),
                cmocka_unit_test(test_brackets),
                cmocka_unit_test(test_expected),
                cmocka_unit_test(test_all_is_given_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
