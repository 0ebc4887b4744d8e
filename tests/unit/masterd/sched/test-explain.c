/* SPDX-License-Identifier: Apache-2.0 */
/* Why a gang did not fit: the numbers, and one line for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

static void test_text(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(2, 1);
        struct sched_shape h = sched_kit_cpus(17, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        char buf[SCHED_NO_FIT_TEXT_MAX];
        struct sched_placement p, q;
        struct sched_no_fit why;

        assert_int_equal(sched_place(s, &g, &p, &why), SCHED_E_NO_FIT);
        assert_true(why.never);
        assert_int_equal(why.lacking, 0);
        h.min = h.max = 9;
        assert_int_equal(sched_place(s, &g, &p, NULL), 0);
        assert_int_equal(sched_place(s, &g, &q, &why), SCHED_E_NO_FIT);
        assert_false(why.never);
        assert_int_equal(why.lacking, SCHED_CPU);
        assert_true(why.wanted == 9 && why.fits == 7 && why.nodes == 2);
        assert_string_equal(sched_no_fit_text(&why, buf, sizeof(buf)),
                            "7 of 9 fit now on 2 usable nodes, short of CPU");
        assert_int_equal(sched_gang_uses(&g), SCHED_CPU | SCHED_EXECUTORS);
        sched_kit_release(s, &p);
}

/* What most nodes have too little of is what is named; all that is short is what the gang waits for. */
static void test_scarce(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(3, 1);
        struct sched_shape h = { .min = 1, .max = 1, .cpu_milli = 4000, .memory = 40 * GIB };
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p;
        struct sched_no_fit why;

        for (uint32_t i = 0; i < 2; i++)
                assert_int_equal(sched_reserve(s, &(struct sched_hold){ .slot = i, .memory = 30 * GIB }), 0);
        sched_kit_occupy(s, 2, 5);
        assert_int_equal(sched_place(s, &g, &p, &why), SCHED_E_NO_FIT);
        assert_false(why.never);
        assert_int_equal(why.scarce, SCHED_MEMORY);
        assert_int_equal(why.lacking, SCHED_MEMORY | SCHED_CPU);
}

/* A buffer that is too small has as much of the line as fits. */
static void test_cut(void **state) {
        const struct sched_no_fit why = {
                .wanted = 9, .fits = 7, .nodes = 2, .scarce = SCHED_CPU, .lacking = SCHED_CPU
        };
        char all[SCHED_NO_FIT_TEXT_MAX], cut[8];

        (void)sched_no_fit_text(&why, all, sizeof(all));
        (void)sched_no_fit_text(&why, cut, sizeof(cut));
        assert_int_equal(strlen(cut), sizeof(cut) - 1);
        assert_memory_equal(all, cut, sizeof(cut) - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_scarce),
                cmocka_unit_test(test_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
