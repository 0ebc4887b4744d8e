/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/search/rank.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static uint32_t put(struct rank_node **root, struct rank_node *n, double value, uint64_t age) {
        n->value = value;
        n->age = age;
        return rank_insert(root, n);
}

static void test_places(void **state) {
        static const struct {
                double had[3], more;
                size_t n_had;
                uint32_t place;
        } cases[] = {
                { { 0, 1.5, 2.1 }, 1.2, 3, 1 }, { { 0, 1.5, 2 }, 3.0, 3, 3 },
                { { -3, -2, -1 }, -3.4, 3, 0 }, { {}, 7, 0, 0 },
                { { 1, 1, 2 }, 1, 3, 0 }, /* before equal ones that were there */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct rank_node nodes[4], *root = NULL;

                for (size_t k = 0; k < cases[i].n_had; k++)
                        put(&root, nodes + k, cases[i].had[k], k);
                assert_int_equal(put(&root, nodes + 3, cases[i].more, 3), cases[i].place);
                assert_int_equal(rank_count(root), cases[i].n_had + 1);
        }
}

/* Against counting. */
static void test_random(void **state) {
        enum {
                N = 2000
        };
        struct rank_node *nodes = calloc(N, sizeof(*nodes)), *root = NULL;
        bool in[N] = {};
        unsigned seed = 7;

        for (uint64_t step = 0; step < 5 * N; step++) {
                size_t i = (size_t)rand_r(&seed) % N;
                uint32_t smaller = 0, n = 0;

                if (in[i]) {
                        rank_remove(&root, nodes + i);
                        in[i] = false;
                        continue;
                }
                double value = rand_r(&seed) % 100;
                for (size_t k = 0; k < N; k++) {
                        n += in[k];
                        smaller += in[k] && nodes[k].value < value;
                }
                assert_int_equal(put(&root, nodes + i, value, step), smaller);
                in[i] = true;
                assert_int_equal(rank_count(root), n + 1);
        }
        free(nodes);
}

/* However they come, it stays shallow: 100,000 in order are no recursion of 100,000. */
static void test_ordered(void **state) {
        enum {
                N = 100000
        };
        struct rank_node *nodes = calloc(N, sizeof(*nodes)), *root = NULL;

        for (uint32_t i = 0; i < N; i++)
                assert_int_equal(put(&root, nodes + i, i, i), i);
        for (uint32_t i = 0; i < N; i++)
                rank_remove(&root, nodes + i);
        assert_null(root);
        free(nodes);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_places),
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_ordered),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
