/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are taken: where most is left, whole ones, near an executor of another shape or not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

static void test_worst(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(4, 1);
        struct sched_shape h = sched_kit_cpus(3, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p;

        h.worst = true;
        sched_kit_occupy(s, 0, 2);
        sched_kit_occupy(s, 1, 1);
        h.min = h.max = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 2);
        sched_kit_release(s, &p);
        h.worst = false;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 0);
        sched_kit_release(s, &p);
}

static void test_whole_hosts(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(3, 1);
        struct sched_shape h = sched_kit_cpus(2, 3), small = sched_kit_cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1, .whole_hosts = 7 },
                          other = { .shapes = &small, .n_shapes = 1 };
        uint32_t present[1];
        struct sched_placement p, q;
        struct sched_no_fit why;

        sched_kit_occupy(s, 0, 1);
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_not_equal(p.items[0].hold.slot, 0);
        assert_int_equal(p.items[0].hold.slot, p.items[1].hold.slot);
        small.min = small.max = 16;
        assert_int_equal(sched_place(s, &other, &q, &why), SCHED_E_NO_FIT); /* 7 + 8 */
        small.min = small.max = 15;
        assert_int_equal(sched_kit_place(s, &other, &q), 0);
        h.min = h.max = 1; /* one more of the gang comes beside the others */
        h.cpu_milli = 2000;
        present[0] = p.items[0].hold.slot;
        h.present = present;
        h.n_present = 1;
        struct sched_placement more;
        assert_int_equal(sched_kit_place(s, &g, &more), 0);
        assert_int_equal(more.items[0].hold.slot, present[0]);
        sched_kit_release(s, &q);
        sched_kit_release(s, &p);
        small.min = small.max = 16;
        assert_int_equal(sched_kit_place(s, &other, &q), SCHED_E_NO_FIT); /* it still has its host */
        sched_kit_release(s, &more);
        assert_int_equal(sched_kit_place(s, &other, &q), 0);
        sched_kit_release(s, &q);
}

static void test_near_and_apart(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(4, 1);
        struct sched_shape shapes[2] = { sched_kit_cpus(2, 1), sched_kit_cpus(2, 6) };
        struct sched_gang g = { .shapes = shapes, .n_shapes = 2 };
        struct sched_placement p;

        sched_kit_occupy(s, 0, 6); /* where the small ones would go, were they alone */
        shapes[1].near = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        for (size_t i = 2; i < 4; i++)
                assert_true(p.items[i].hold.slot == p.items[0].hold.slot ||
                            p.items[i].hold.slot == p.items[1].hold.slot);
        sched_kit_release(s, &p);
        shapes[1].near = 0;
        shapes[1].apart = 3; /* from the small ones, and from each other */
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_not_equal(p.items[2].hold.slot, p.items[3].hold.slot);
        for (size_t i = 0; i < 2; i++)
                for (size_t k = 2; k < 4; k++)
                        assert_int_not_equal(p.items[i].hold.slot, p.items[k].hold.slot);
        sched_kit_release(s, &p);
        shapes[0].near = 2;
        shapes[1] = sched_kit_cpus(2, 1);
        shapes[1].near = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), -EINVAL); /* a circle */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_worst),
                cmocka_unit_test(test_whole_hosts),
                cmocka_unit_test(test_near_and_apart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
