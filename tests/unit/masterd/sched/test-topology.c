/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs that want to be near each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

/* s0 of rack r0 is another switch than s0 of r1. */
static void test_domains(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(8, 2);
        const char *labels[] = { "switch=s0" };

        assert_int_equal(sched_node_domain(s, 0, 0), sched_node_domain(s, 1, 0));
        assert_int_not_equal(sched_node_domain(s, 0, 0), sched_node_domain(s, 2, 0));
        assert_int_not_equal(sched_node_domain(s, 0, 0), sched_node_domain(s, 4, 0));
        assert_int_equal(sched_node_domain(s, 0, 1), sched_node_domain(s, 3, 1));
        assert_int_not_equal(sched_node_domain(s, 3, 1), sched_node_domain(s, 4, 1));
        assert_int_equal(sched_node_domain(s, 0, 2), 0);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .labels = labels, .n_labels = 1 }), 0);
        assert_int_equal(sched_node_domain(s, 0, 0), 0); /* no rack, so no switch of a rack */
}

static void test_pack(void **state) {
        _cleanup_(sched_free_p) struct sched *s =
                sched_kit_cluster(12, 3); /* 2 racks × 2 switches × 3 nodes */
        struct sched_shape h = sched_kit_cpus(6, 4);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1, .topology = SCHED_PACK };
        struct sched_placement p;

        for (uint32_t i = 0; i < 6; i++) /* rack 0 is tight: half of each node */
                sched_kit_occupy(s, i, 4);
        sched_kit_occupy(s, 9, 8);
        assert_int_equal(sched_kit_place(s, &g, &p), 0); /* 3 whole nodes are only at switch 2 */
        assert_int_equal(sched_kit_domains(s, &p, 0), 1);
        assert_int_equal(sched_node_domain(s, p.items[0].hold.slot, 0), sched_node_domain(s, 6, 0));
        sched_kit_release(s, &p);
        h = sched_kit_cpus(5, 8);
        assert_int_equal(sched_kit_place(s, &g, &p), 0); /* one rack, two switches */
        assert_int_equal(sched_kit_domains(s, &p, 1), 1);
        assert_int_equal(sched_kit_domains(s, &p, 0), 2);
        sched_kit_release(s, &p);
        h = sched_kit_cpus(14, 4);
        g.level = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0); /* both racks */
        assert_int_equal(sched_kit_domains(s, &p, 1), 2);
        sched_kit_release(s, &p);
}

static void test_require(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(12, 3);
        struct sched_shape shapes[2] = { sched_kit_cpus(5, 4), sched_kit_cpus(1, 4) };
        struct sched_gang g = { .shapes = shapes, .n_shapes = 2, .topology = SCHED_REQUIRE };
        uint32_t there[] = { 10 };
        struct sched_placement p;
        struct sched_no_fit why;
        char text[SCHED_NO_FIT_TEXT_MAX];

        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(sched_kit_domains(s, &p, 0), 1);
        sched_kit_release(s, &p);
        shapes[1].present = there; /* stays where it is */
        shapes[1].n_present = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        for (size_t i = 0; i < p.n; i++)
                assert_int_equal(sched_node_domain(s, p.items[i].hold.slot, 0), sched_node_domain(s, 10, 0));
        sched_kit_release(s, &p);
        shapes[1].n_present = 0;
        shapes[0].min = shapes[0].max = 7;
        assert_int_equal(sched_place(s, &g, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.scarce, SCHED_TOPOLOGY);
        assert_true(why.never);
        assert_non_null(strstr(sched_no_fit_text(&why, text, sizeof(text)), "one domain of the topology"));
        g.level = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        sched_kit_release(s, &p);
        g.level = 7;
        assert_int_equal(sched_kit_place(s, &g, &p), SCHED_E_NO_FIT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_domains),
                cmocka_unit_test(test_pack),
                cmocka_unit_test(test_require),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
