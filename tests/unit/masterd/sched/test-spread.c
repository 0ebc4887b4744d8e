/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs that want to be far apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

static void test_spread(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(12, 3);
        struct sched_shape h = sched_kit_cpus(8, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1, .topology = SCHED_SPREAD };
        uint32_t in[16] = {};
        struct sched_placement p;

        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        for (size_t i = 0; i < p.n; i++)
                in[sched_node_domain(s, p.items[i].hold.slot, 0)]++;
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(in[sched_node_domain(s, i * 3, 0)], 2);
        sched_kit_release(s, &p);
        h.max = 200; /* elastic: all that fits */
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.n, 96);
        sched_kit_release(s, &p);
        h = sched_kit_cpus(12, 1);
        h.per_node = 3;
        g.level = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(sched_kit_domains(s, &p, 1), 2);
        sched_kit_release(s, &p);
        /* Over hosts, whatever levels there are: none gets a second one while another has room and none. */
        h = sched_kit_cpus(18, 1);
        g.level = SCHED_LEVEL_NODE;
        memset(in, 0, sizeof(in));
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        for (size_t i = 0; i < p.n; i++)
                in[p.items[i].hold.slot]++;
        for (uint32_t i = 0; i < 12; i++)
                assert_in_range(in[i], 1, 2);
        sched_kit_release(s, &p);
        /* Hosts that have no more room do not hold it up. */
        h = sched_kit_cpus(96, 1);
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        sched_kit_release(s, &p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spread),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
