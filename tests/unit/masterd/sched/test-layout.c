/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs and CPUs of a node an executor gets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

/* 4 CPUs and 2 GPUs in each of two NUMA nodes. */
static struct sched *numa_node(void) {
        struct sched_gpu gpus[4] = { { "A100", 40960, NULL, 0 },
                                     { "A100", 40960, NULL, 0 },
                                     { "H100", 81559, NULL, 1 },
                                     { "H100", 81559, NULL, 1 } };
        struct sched_cpuset numa[2] = { { { 0x0f } }, { { 0xf0 } } };
        struct sched_capacity c = { 8000, 64 * GIB, 4, 30000, 30999, 100, 0 };
        struct sched *s;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &slot), 0);
        assert_int_equal(sched_node_describe(s, slot,
                                             &(struct sched_description){
                                                     .gpus = gpus, .n_gpus = 4, .numa = numa, .n_numa = 2 }),
                         0);
        return s;
}

static void test_numa(void **state) {
        _cleanup_(sched_free_p) struct sched *s = numa_node();
        struct sched_shape h = sched_kit_cpus(1, 3);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p, q, o;

        h.exclusive_cpus = true;
        h.gpus = 1;
        h.gpu.model = "h100";
        h.numa = SCHED_NUMA_PREFER;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 4);
        assert_int_equal(p.items[0].hold.cpus->bits[0], 0x70); /* those of its GPU */
        assert_int_equal(sched_kit_place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 8);
        assert_int_equal(q.items[0].hold.cpus->bits[0], 0x83); /* as many as are left there, and others */
        sched_kit_release(s, &q);
        h.numa = SCHED_NUMA_REQUIRE;
        assert_int_equal(sched_kit_place(s, &g, &q), SCHED_E_NO_FIT);
        h.cpu_milli = 1000;
        assert_int_equal(sched_kit_place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.cpus->bits[0], 0x80);
        h.gpu.model = NULL; /* the one that is less worth */
        assert_int_equal(sched_kit_place(s, &g, &o), 0);
        assert_int_equal(o.items[0].hold.gpus, 1);
        assert_int_equal(o.items[0].hold.cpus->bits[0], 0x01);
        sched_kit_release(s, &o);
        sched_kit_release(s, &q);
        sched_kit_release(s, &p);
        h = sched_kit_cpus(1, 1); /* shared ones are counted together with these */
        h.min = h.max = 8;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        h.min = h.max = 1;
        h.exclusive_cpus = true;
        assert_int_equal(sched_kit_place(s, &g, &q), SCHED_E_NO_FIT);
        sched_kit_release(s, &p);
        h.cpu_milli = 1500;
        assert_int_equal(sched_kit_place(s, &g, &q), -EINVAL);
}

static void test_parts(void **state) {
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_gpu gpus[3] = { { "A100", 10240, "1g.10gb", 0 },
                                     { "A100", 10240, "1g.10gb", 0 },
                                     { "A100", 40960, NULL, 0 } };
        struct sched_capacity c = { 8000, 64 * GIB, 3, 30000, 30999, 100, 0 };
        struct sched_shape h = sched_kit_cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p, q;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &slot), 0);
        assert_int_equal(
                sched_node_describe(s, slot, &(struct sched_description){ .gpus = gpus, .n_gpus = 3 }), 0);
        h.gpus = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 4); /* a part is no GPU */
        assert_int_equal(sched_kit_place(s, &g, &q), SCHED_E_NO_FIT);
        h.gpu.mig = "1g.10gb";
        h.gpus = 2;
        assert_int_equal(sched_kit_place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 3);
        sched_kit_release(s, &p);
        sched_kit_release(s, &q);
}

/* Two pairs that are joined, of neighbours or not: a pair is given out together, and a single one does not
 * tear a whole pair where one is torn already. */
static void test_links(void **state) {
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_gpu gpus[4] = { { "A100", 40960, NULL, 0, .links = 1 << 2 },
                                     { "A100", 40960, NULL, 0, .links = 1 << 3 },
                                     { "A100", 40960, NULL, 0, .links = 1 << 0 },
                                     { "A100", 40960, NULL, 0, .links = 1 << 1 } };
        struct sched_capacity c = { 8000, 64 * GIB, 4, 30000, 30999, 100, 0 };
        struct sched_shape h = sched_kit_cpus(1, 1), two = sched_kit_cpus(2, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 }, pair = { .shapes = &two, .n_shapes = 1 };
        struct sched_placement p, q;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &slot), 0);
        assert_int_equal(
                sched_node_describe(s, slot, &(struct sched_description){ .gpus = gpus, .n_gpus = 4 }), 0);
        h.gpus = 2;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 5);
        sched_kit_release(s, &p);

        h.gpus = two.gpus = 1; /* two executors of a gang are as one */
        assert_int_equal(sched_kit_place(s, &pair, &p), 0);
        assert_int_equal(p.items[0].hold.gpus | p.items[1].hold.gpus, 5);
        sched_kit_release(s, &p);

        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 1);
        assert_int_equal(sched_kit_place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 4); /* what the first has torn */
        sched_kit_release(s, &q);
        h.gpus = 2;
        assert_int_equal(sched_kit_place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 10);
        sched_kit_release(s, &p);
        sched_kit_release(s, &q);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numa),
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_links),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
