/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/data/ids.h"
#include "masterd/data/permute.h"

#define N 3000u

static char there[N]; /* what should be in it; the value is the address */

static void check(const struct ids *t, uint64_t first, uint64_t step) {
        uint64_t from = 0;

        for (unsigned i = 0; i < N; i++)
                assert_ptr_equal(ids_find(t, first + i * step), there[i] ? there + i : NULL);
        for (unsigned i = 0; i < N; i++)
                if (there[i]) {
                        assert_ptr_equal(ids_next(t, from), there + i);
                        from = first + i * step + 1;
                }
        assert_null(from > first ? ids_next(t, from) : NULL);
}

static void random_walk(uint64_t first, uint64_t step) {
        struct ids t = {};
        uint64_t random = first;

        memset(there, 0, sizeof(there));
        for (unsigned k = 0; k < 20000; k++) {
                unsigned i = (unsigned)((random = permute_hash(random, k)) % N);
                uint64_t id = first + i * step;
                if (k % 3 != 2) {
                        assert_int_equal(ids_add(&t, id, there + i), there[i] ? -EEXIST : 0);
                        there[i] = 1;
                } else {
                        assert_ptr_equal(ids_remove(&t, id), there[i] ? there + i : NULL);
                        there[i] = 0;
                }
                if (k % 1000 == 0)
                        check(&t, first, step);
        }
        check(&t, first, step);
        for (unsigned i = 0; i < N; i++)
                (void)ids_remove(&t, first + i * step);
        assert_null(t.root);
        assert_int_equal(t.n_nodes, 0);
}

static void test_close(void **state) {
        random_walk(1, 1);
}

static void test_far(void **state) {
        random_walk(0, 1000003);
        random_walk(5, UINT64_C(1) << 50);
}

static void test_ends(void **state) {
        struct ids t = {};
        char a, b;

        assert_null(ids_find(&t, 0));
        assert_null(ids_next(&t, 0));
        assert_null(ids_remove(&t, 7));
        assert_int_equal(ids_add(&t, 0, &a), 0);
        assert_int_equal(ids_add(&t, UINT64_MAX, &b), 0);
        assert_ptr_equal(ids_find(&t, 0), &a);
        assert_ptr_equal(ids_find(&t, UINT64_MAX), &b);
        assert_ptr_equal(ids_next(&t, 1), &b);
        ids_replace(&t, 0, &b);
        assert_ptr_equal(ids_find(&t, 0), &b);
        assert_true(ids_memory(&t) > 0);
        ids_done(&t);
        assert_int_equal(t.n_nodes, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_close),
                cmocka_unit_test(test_far),
                cmocka_unit_test(test_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
