/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/trials.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/job/array.h"
#include "tests/kit/json.h"

static struct search_spec spec_of(enum search_method method, const char *space, const char *points,
                                  uint32_t n) {
        return (struct search_spec){ .method = method,
                                     .space = (char *)(uintptr_t)(space ? json_text(space) : NULL),
                                     .points = (char *)(uintptr_t)(points ? json_text(points) : NULL),
                                     .metric = (char *)(uintptr_t) "loss",
                                     .smaller = true,
                                     .max_time = 9,
                                     .max_trials = n,
                                     .divisor = 3,
                                     .max_rungs = 3,
                                     .seed = 4 };
}

static void expect(const struct trials *t, uint32_t trial, const char *want) {
        _cleanup_free_ char *given = NULL;

        assert_int_equal(trials_given(t, trial, &given), 0);
        assert_string_equal(given, json_text(want));
}

static void test_given(void **state) {
        struct search_spec list = spec_of(SEARCH_LIST, NULL, "[{'x':1},{'y':{'z':2}}]", 2);
        struct search_spec grid =
                spec_of(SEARCH_GRID, "{'x':{'type':'categorical','vals':[1,2,3]}}", NULL, 3);
        struct search_spec random =
                spec_of(SEARCH_RANDOM, "{'x':{'type':'int','minval':0,'maxval':1000000}}", NULL, 3);
        _cleanup_(trials_free_p) struct trials *l = NULL, *g = NULL, *r = NULL, *again = NULL;
        _cleanup_free_ char *one = NULL, *two = NULL;
        char *none;

        assert_int_equal(trials_new(&list, &l), 0);
        assert_int_equal(trials_new(&grid, &g), 0);
        assert_int_equal(trials_new(&random, &r), 0);
        assert_int_equal(trials_new(&random, &again), 0);
        expect(l, 0, "{'x':1}");
        expect(l, 1, "{'y':{'z':2}}");
        assert_int_equal(trials_given(l, 2, &none), -ENOENT);
        expect(g, 2, "{'x':3}");
        assert_int_equal(trials_given(g, 3, &none), -ENOENT);
        assert_int_equal(trials_given(r, 7, &one), 0);
        assert_int_equal(trials_given(again, 7, &two), 0);
        assert_string_equal(one, two);
}

/* What changes something counts, and nothing else: that is what is stored. */
static void test_events(void **state) {
        struct search_spec asha = spec_of(SEARCH_ASHA, "{'x':1}", NULL, 2);
        struct trial_event make = { .kind = TRIAL_CREATED }, good = { TRIAL_VALIDATED, 0, 1, 0.5, 0 },
                           bad = { TRIAL_VALIDATED, 1, 1, NAN, 0 },
                           end = { TRIAL_EXITED, 1, 0, 0, SEARCH_SUCCEEDED },
                           odd = { _TRIAL_EVENT_MAX, 0, 0, 0, 0 };
        _cleanup_(trials_free_p) struct trials *t = NULL;
        struct search_reason why;

        assert_int_equal(trials_new(&asha, &t), 0);
        assert_int_equal(trials_follow(t, &make, &why), 0);
        assert_int_equal(make.trial, 0);
        assert_int_equal(trials_follow(t, &make, &why), 0);
        assert_int_equal(make.trial, 1);
        assert_int_equal(trials_follow(t, &make, &why), -EAGAIN);
        assert_int_equal(trials_follow(t, &good, &why), SEARCH_GOES_ON);
        assert_int_equal(t->n_events, 3);
        assert_int_equal(trials_follow(t, &good, &why), SEARCH_PAST);
        assert_int_equal(t->n_events, 3);
        assert_int_equal(trials_follow(t, &bad, &why), SEARCH_STOP);
        assert_int_equal(trials_follow(t, &end, &why), 0);
        assert_int_equal(trials_follow(t, &end, &why), -ENOENT);
        assert_int_equal(trials_follow(t, &odd, &why), -EINVAL);
        assert_int_equal(t->n_events, 5);
}

/* As the elements of an array: it grows as trials are made, and is over when the search is. */
static void test_array(void **state) {
        struct search_spec random = spec_of(SEARCH_RANDOM, "{'x':1}", NULL, 5);
        struct array *a;
        uint32_t position;
        char text[ARRAY_SUMMARY_MAX];

        random.max_concurrent = 2;
        assert_int_equal(array_new_search(&random, &a), 0);
        assert_int_equal(array_total(a), 5);
        for (uint32_t i = 0; i < 5; i++) {
                struct trial_event make = { .kind = TRIAL_CREATED },
                                   end = { .kind = TRIAL_EXITED, .trial = i };
                struct search_reason why;

                assert_false(array_over(a));
                assert_true(array_wants(a, SIZE_MAX, &position));
                assert_int_equal(position, i);
                assert_int_equal(array_grow(a), 0);
                assert_int_equal(trials_follow(a->trials, &make, &why), 0);
                array_set(a, i, ELEMENT_RUNS);
                assert_int_equal(array_find(a, i, &position), 0);
                if (i == 0)
                        continue;
                assert_true(i == 4 || !search_wants(a->trials->search));
                if (i == 4)
                        assert_string_equal(array_text(a, text, sizeof(text)),
                                            "3 of 5 trials succeeded; 2 run, 0 wait");
                end.trial = i - 1;
                array_set(a, i - 1, ELEMENT_SUCCEEDED);
                assert_int_equal(trials_follow(a->trials, &end, &why), 0);
        }
        assert_false(array_wants(a, SIZE_MAX, &position));
        assert_false(array_over(a));
        array_set(a, 4, ELEMENT_FAILED);
        assert_true(array_over(a));
        assert_string_equal(array_text(a, text, sizeof(text)), "4 of 5 trials succeeded, 1 failed");
        assert_true(array_bytes(a) > search_bytes(a->trials->search));
        array_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_given),
                cmocka_unit_test(test_events),
                cmocka_unit_test(test_array),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
