/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_states(void **state) {
        char text[ARRAY_SUMMARY_MAX];
        struct array *a = NULL;
        uint32_t p;

        assert_int_equal(array_new("7-9,1%2", &a), 0);
        assert_int_equal(array_find(a, 7, &p), 0);
        assert_int_equal(p, 1);
        assert_int_equal(array_find(a, 1, &p), 0);
        assert_int_equal(p, 0);
        assert_true(array_find(a, 0, &p) < 0);
        assert_true(array_find(a, 2, &p) < 0);
        assert_true(array_find(a, 10, &p) < 0);

        /* Two at a time, in order. */
        for (uint32_t i = 0; i < 2; i++) {
                assert_true(array_wants(a, SIZE_MAX, &p));
                assert_int_equal(p, i);
                array_set(a, p, ELEMENT_WAITS);
        }
        assert_false(array_wants(a, SIZE_MAX, &p));
        array_set(a, 0, ELEMENT_RUNS);
        assert_false(array_wants(a, SIZE_MAX, &p));
        assert_int_equal(array_active(a), 2);
        assert_string_equal(array_text(a, text, sizeof(text)), "0 of 4 succeeded; 1 run, 3 wait");
        array_set(a, 0, ELEMENT_FAILED);
        assert_true(array_wants(a, SIZE_MAX, &p));
        assert_int_equal(p, 2);
        array_set(a, 2, ELEMENT_SUCCEEDED);
        array_set(a, 1, ELEMENT_KILLED);
        assert_false(array_over(a));
        array_set(a, 3, ELEMENT_SUCCEEDED);
        assert_true(array_over(a));
        assert_false(array_wants(a, SIZE_MAX, &p));
        assert_string_equal(array_text(a, text, sizeof(text)), "2 of 4 succeeded, 1 failed, 1 killed");

        /* What did not succeed, again. */
        assert_int_equal(array_again(a), 2);
        assert_false(array_over(a));
        assert_true(array_wants(a, SIZE_MAX, &p));
        assert_int_equal(p, 0);
        array_set(a, 0, ELEMENT_SUCCEEDED);
        assert_true(array_wants(a, SIZE_MAX, &p));
        assert_int_equal(p, 1);
        array_free(a);
}

static void test_window(void **state) {
        struct array *a = NULL;
        uint32_t p, n = 0;

        assert_int_equal(array_new("0-99999%5000", &a), 0);
        while (array_wants(a, SIZE_MAX, &p)) {
                array_set(a, p, ELEMENT_WAITS);
                n++;
        }
        assert_int_equal(n, ARRAY_WINDOW);
        array_free(a);
}

/* A user's arrays share one window; each goes on with one at least. */
static void test_shared_window(void **state) {
        struct array *a = NULL, *b = NULL;
        struct array_share shared = {};
        uint32_t p, n = 0, m = 0;

        assert_int_equal(array_new("0-99999", &a), 0);
        assert_int_equal(array_new("0-9", &b), 0);
        array_set(b, 0, ELEMENT_RUNS);
        array_join(a, &shared);
        array_join(b, &shared);
        assert_int_equal(shared.n, 1);
        for (; array_wants(a, SIZE_MAX, &p); n++)
                array_set(a, p, ELEMENT_WAITS);
        assert_int_equal(n, ARRAY_WINDOW - 1);
        assert_false(array_wants(b, SIZE_MAX, &p));
        array_set(b, 0, ELEMENT_SUCCEEDED);
        for (; array_wants(b, SIZE_MAX, &p); m++)
                array_set(b, p, ELEMENT_WAITS);
        assert_int_equal(m, 1);
        array_set(a, 0, ELEMENT_FAILED);
        assert_true(array_wants(b, SIZE_MAX, &p));
        array_free(a);
        assert_int_equal(shared.n, 1);
        for (; array_wants(b, SIZE_MAX, &p); m++)
                array_set(b, p, ELEMENT_WAITS);
        assert_int_equal(m, 9);
        array_free(b);
        assert_int_equal(shared.n, 0);
}

/* The bytes of what is under way have a bound as well, and each array goes on with one all the same. */
static void test_shared_bytes(void **state) {
        struct array_share shared = {};
        struct array *a = NULL, *b = NULL;
        uint32_t p, n = 0, m = 0;

        assert_int_equal(array_new("0-99", &a), 0);
        assert_int_equal(array_new("0-9", &b), 0);
        array_join(a, &shared);
        array_join(b, &shared);
        for (; array_wants(a, 1000, &p); n++) {
                array_set(a, p, ELEMENT_WAITS);
                if (n == 0) /* known when the first is made */
                        array_weigh(a, 300);
        }
        assert_int_equal(n, 3);
        assert_int_equal(shared.bytes, 900);
        array_weigh(b, 2000);
        for (; array_wants(b, 1000, &p); m++)
                array_set(b, p, ELEMENT_WAITS);
        assert_int_equal(m, 1);
        assert_int_equal(shared.bytes, 2900);
        array_set(a, 0, ELEMENT_SUCCEEDED);
        assert_false(array_wants(a, 1000, &p));
        array_set(b, 0, ELEMENT_FAILED);
        assert_int_equal(shared.bytes, 600);
        assert_true(array_wants(a, 1000, &p));
        array_free(b);
        array_free(a);
        assert_int_equal(shared.n, 0);
        assert_int_equal(shared.bytes, 0);
}

static void test_of_jobs(void **state) {
        assert_int_equal(element_state_of(JOB_SUBMITTED), ELEMENT_WAITS);
        assert_int_equal(element_state_of(JOB_QUEUED), ELEMENT_WAITS);
        for (enum job_state s = JOB_STARTING; s <= JOB_STOPPING; s++)
                assert_int_equal(element_state_of(s), ELEMENT_RUNS);
        assert_int_equal(element_state_of(JOB_SUCCEEDED), ELEMENT_SUCCEEDED);
        assert_int_equal(element_state_of(JOB_FAILED), ELEMENT_FAILED);
        assert_int_equal(element_state_of(JOB_KILLED), ELEMENT_KILLED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_states),        cmocka_unit_test(test_window),
                cmocka_unit_test(test_shared_window), cmocka_unit_test(test_shared_bytes),
                cmocka_unit_test(test_of_jobs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
