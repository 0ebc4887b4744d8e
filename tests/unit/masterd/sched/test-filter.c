/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints that nodes meet or do not, and those that only order them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

static void test_preferences(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(12, 3);
        _cleanup_(constraint_free_p) struct constraint *r1 = NULL, *s1 = NULL, *n4 = NULL, *none = NULL;
        struct sched_preference preferred[3];
        struct sched_shape h = sched_kit_cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        const struct constraint *required[1];
        struct sched_placement p;
        struct sched_no_fit why;
        char text[SCHED_NO_FIT_TEXT_MAX];

        assert_int_equal(constraint_parse("rack=r1", &r1, NULL), 0);
        assert_int_equal(constraint_parse("switch=s1", &s1, NULL), 0);
        assert_int_equal(constraint_parse("host=n4", &n4, NULL), 0);
        assert_int_equal(constraint_parse("floor=3", &none, NULL), 0);
        preferred[0] = (struct sched_preference){ r1, 10 };
        preferred[1] = (struct sched_preference){ s1, 5 };
        preferred[2] = (struct sched_preference){ n4, 4 };
        h.preferred = preferred;
        h.n_preferred = 2;
        sched_kit_occupy(s, 0, 7); /* the best fit otherwise */
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 9); /* both */
        sched_kit_release(s, &p);
        for (uint32_t i = 9; i < 12; i++)
                sched_kit_occupy(s, i, 8);
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 6); /* the heavier */
        sched_kit_release(s, &p);
        for (uint32_t i = 6; i < 9; i++)
                sched_kit_occupy(s, i, 8);
        h.n_preferred = 3;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 4);
        sched_kit_release(s, &p);
        h.min = h.max = 3; /* they only order */
        h.max_per_node = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 4);
        sched_kit_release(s, &p);
        required[0] = none;
        h.required = required;
        h.n_required = 1;
        assert_int_equal(sched_place(s, &g, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.unmatched, 12);
        assert_string_equal(sched_no_fit_text(&why, text, sizeof(text)),
                            "none of 12 usable nodes meets its constraints");
        assert_int_equal(sched_constraint_count(s, r1), 6);
        assert_int_equal(sched_constraint_count(s, none), 0);
        assert_string_equal(sched_node_label(s, 4, "host"), "n4");
        assert_null(sched_node_label(s, 4, "floor"));
        assert_null(sched_node_label(s, 99, "host"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_preferences),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
