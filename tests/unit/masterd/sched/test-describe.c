/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions and gangs outside the bounds are refused, and change nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

static void test_bad(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(2, 1);
        const char *twice[] = { "a=1", "a=2" }, *no_label[] = { "a b" }, *keys[] = { "rack", "a b" };
        struct sched_cpuset overlapping[2] = { { { 3 } }, { { 6 } } };
        struct sched_gpu long_name = {
                .model = "0123456789012345678901234567890123456789012345678901234567890123"
        };
        struct sched_shape h = sched_kit_cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p;

        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .labels = twice, .n_labels = 2 }),
                -EINVAL);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .labels = no_label, .n_labels = 1 }),
                -EINVAL);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .numa = overlapping, .n_numa = 2 }),
                -EINVAL);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .gpus = &long_name, .n_gpus = 1 }),
                -EINVAL);
        assert_int_equal(sched_node_describe(s, 9, &(struct sched_description){}), -ENOENT);
        assert_string_equal(sched_node_label(s, 0, "host"), "n0"); /* nothing has changed */
        assert_int_equal(sched_topology_set(s, keys, 2), -EINVAL);
        assert_int_not_equal(sched_node_domain(s, 0, 1), 0);
        h.apart = 2;
        assert_int_equal(sched_kit_place(s, &g, &p), -EINVAL);
        h.apart = 0;
        h.near = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), -EINVAL);
        h.near = 0;
        h.n_amounts = 1;
        h.amounts = &(struct sched_amount){ 3, 1 };
        assert_int_equal(sched_kit_place(s, &g, &p), -EINVAL);
        h.n_amounts = 0;
        g.topology = 9;
        assert_int_equal(sched_kit_place(s, &g, &p), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bad),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
