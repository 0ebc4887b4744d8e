/* SPDX-License-Identifier: Apache-2.0 */
/* Where gangs go. */
#include "masterd/sched/sched.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define GIB (UINT64_C(1) << 30)

static struct sched *cluster(const struct sched_capacity *nodes, size_t n) {
        struct sched *s;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(sched_node_add(s, &nodes[i], &slot), 0);
        return s;
}

static struct sched *uniform(size_t n, uint32_t cpus) {
        struct sched_capacity c = { cpus * 1000, 64 * GIB, 0, 30000, 39999, 1000 };
        struct sched *s = cluster(NULL, 0);
        uint32_t slot;

        for (size_t i = 0; i < n; i++)
                assert_int_equal(sched_node_add(s, &c, &slot), 0);
        return s;
}

static int place(struct sched *s, const struct sched_shape *shapes, size_t n, struct sched_placement *ret,
                 struct sched_no_fit *ret_why) {
        return sched_place(s, &(struct sched_gang){ shapes, n }, ret, ret_why);
}

static void release(struct sched *s, struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++)
                sched_release(s, &p->items[i].hold);
        sched_placement_done(p);
}

static void assert_empty(const struct sched *s) {
        struct sched_usage u;

        for (uint32_t i = 0; sched_node_usage(s, i, &u) == 0; i++)
                assert_true(u.cpu_milli == 0 && u.memory == 0 && u.gpus == 0 && u.ports == 0 &&
                            u.executors == 0);
}

static size_t nodes_used(const struct sched_placement *p) {
        size_t n = 0;

        for (size_t i = 0; i < p->n; i++) {
                size_t k = 0;
                while (k < i && p->items[k].hold.slot != p->items[i].hold.slot)
                        k++;
                n += k == i;
        }
        return n;
}

static void test_all_or_nothing(void **state) {
        _cleanup_(sched_free_p) struct sched *s = uniform(3, 4);
        struct sched_shape shapes[] = { { .min = 1, .max = 1, .cpu_milli = 1000, .ports = 1 },
                                        { .min = 12, .max = 12, .cpu_milli = 1000, .memory = GIB } };
        struct sched_placement p;
        struct sched_no_fit why;

        assert_int_equal(place(s, shapes, 2, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.shape, 0); /* the larger one was placed first */
        assert_int_equal(why.wanted, 1);
        assert_int_equal(why.fits, 0);
        assert_int_equal(why.nodes, 3);
        assert_int_equal(why.scarce, SCHED_CPU);
        assert_empty(s);

        shapes[1].min = shapes[1].max = 11;
        assert_int_equal(place(s, shapes, 2, &p, NULL), 0);
        assert_int_equal(p.n, 12);
        for (size_t i = 0; i < p.n; i++) { /* by shape, then member */
                assert_int_equal(p.items[i].shape, i == 0 ? 0 : 1);
                assert_int_equal(p.items[i].member, i == 0 ? 0 : i - 1);
                assert_int_equal(p.items[i].hold.n_ports, i == 0 ? 1 : 0);
        }
        release(s, &p);
        assert_empty(s);
}

static void test_kept_together(void **state) {
        _cleanup_(sched_free_p) struct sched *s = uniform(10, 8);
        struct sched_shape shapes[] = { { .min = 16, .max = 16, .cpu_milli = 1000 },
                                        { .min = 8, .max = 8, .cpu_milli = 500 } };
        struct sched_placement p;

        assert_int_equal(place(s, shapes, 2, &p, NULL), 0);
        assert_int_equal(nodes_used(&p), 3);
        for (size_t i = 1; i < 16; i++) /* neighbours in rank are neighbours on a node */
                assert_true(p.items[i].hold.slot == p.items[i - 1].hold.slot || i == 8);
        release(s, &p);
}

static void test_tightest_node(void **state) {
        static const struct sched_capacity nodes[] = {
                { 16000, 64 * GIB, 0, 0, 0, 100 },
                { 4000, 64 * GIB, 0, 0, 0, 100 },
                { 8000, 64 * GIB, 0, 0, 0, 100 },
        };
        _cleanup_(sched_free_p) struct sched *s = cluster(nodes, ELEMENTSOF(nodes));
        struct sched_shape h = { .min = 3, .max = 3, .cpu_milli = 1000 };
        struct sched_placement p, q;

        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        assert_int_equal(nodes_used(&p), 1);
        assert_int_equal(p.items[0].hold.slot, 1);
        h.min = h.max = 20; /* the largest first, then what is just enough for the rest */
        assert_int_equal(place(s, &h, 1, &q, NULL), 0);
        assert_int_equal(nodes_used(&q), 2);
        assert_int_equal(q.items[19].hold.slot, 2);
        release(s, &p);
        release(s, &q);
        assert_empty(s);
}

static void test_gpu_nodes_are_spared(void **state) {
        static const struct sched_capacity nodes[] = {
                { 4000, 64 * GIB, 8, 0, 0, 100 },
                { 64000, 64 * GIB, 0, 0, 0, 100 },
        };
        _cleanup_(sched_free_p) struct sched *s = cluster(nodes, ELEMENTSOF(nodes));
        struct sched_shape cpu = { .min = 1, .max = 1, .cpu_milli = 1000 },
                           gpu = { .min = 2, .max = 2, .gpus = 3 };
        struct sched_placement p, q;

        assert_int_equal(place(s, &cpu, 1, &p, NULL), 0);
        assert_int_equal(p.items[0].hold.slot, 1);
        assert_int_equal(place(s, &gpu, 1, &q, NULL), 0);
        assert_true(q.items[0].hold.gpus == 7 && q.items[1].hold.gpus == 56);
        release(s, &p);
        release(s, &q);
        assert_empty(s);
}

static void test_ports_rest(void **state) {
        static const struct sched_capacity node = { 64000, 64 * GIB, 0, 30000, 30003, 100 };
        _cleanup_(sched_free_p) struct sched *s = cluster(&node, 1);
        struct sched_shape h = { .min = 1, .max = 1, .ports = 1 };
        struct sched_placement p;

        for (unsigned i = 0; i < 8; i++) { /* one just given back is not the next to be granted */
                assert_int_equal(place(s, &h, 1, &p, NULL), 0);
                assert_int_equal(p.items[0].hold.ports[0], 30000 + i % 4);
                release(s, &p);
        }
        h.ports = 5;
        assert_int_equal(place(s, &h, 1, &p, NULL), SCHED_E_NO_FIT);
        assert_empty(s);
}

static void test_limits_per_node(void **state) {
        _cleanup_(sched_free_p) struct sched *s = uniform(4, 8);
        struct sched_shape h = { .min = 4, .max = 4, .cpu_milli = 100, .max_per_node = 1 };
        uint32_t present[] = { 0, 1 };
        struct sched_placement p;
        struct sched_no_fit why;

        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        assert_int_equal(nodes_used(&p), 4);
        release(s, &p);
        h.min = h.max = 5;
        assert_int_equal(place(s, &h, 1, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.fits, 4);
        assert_true(why.never);
        h.min = h.max = 2; /* two more of four that are there already */
        h.present = present;
        h.n_present = 2;
        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        assert_true(p.items[0].hold.slot >= 2 && p.items[1].hold.slot >= 2);
        release(s, &p);
        h.min = h.max = 1; /* also on the way of a single one */
        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        assert_true(p.items[0].hold.slot >= 2);
        release(s, &p);
        assert_empty(s);
}

static void test_exactly_per_node(void **state) {
        static const struct sched_capacity nodes[] = {
                { 3000, 64 * GIB, 0, 0, 0, 100 },
                { 9000, 64 * GIB, 0, 0, 0, 100 },
                { 4000, 64 * GIB, 0, 0, 0, 100 },
        };
        _cleanup_(sched_free_p) struct sched *s = cluster(nodes, ELEMENTSOF(nodes));
        struct sched_shape h = { .min = 8, .max = 8, .cpu_milli = 1000, .per_node = 4 };
        uint32_t present[] = { 1, 1, 1 };
        struct sched_placement p;

        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        assert_int_equal(nodes_used(&p), 2);
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(p.items[i].hold.slot, p.items[i < 4 ? 0 : 4].hold.slot);
        release(s, &p);
        h.min = h.max = 12; /* node 0 takes three at most */
        assert_int_equal(place(s, &h, 1, &p, NULL), SCHED_E_NO_FIT);
        h.present = present; /* three of four are on node 1: the fourth goes there */
        h.n_present = 3;
        h.min = h.max = 1;
        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        assert_int_equal(p.items[0].hold.slot, 1);
        release(s, &p);
        assert_empty(s);
}

static void test_allowed_and_excluded(void **state) {
        _cleanup_(sched_free_p) struct sched *s = uniform(6, 4);
        uint32_t allowed[] = { 4, 2, 4, 99 }, excluded[] = { 2 };
        struct sched_shape h = {
                .min = 8, .max = 8, .cpu_milli = 1000, .restricted = true, .allowed = allowed, .n_allowed = 4
        };
        struct sched_placement p;
        struct sched_no_fit why;

        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        for (size_t i = 0; i < p.n; i++)
                assert_true(p.items[i].hold.slot == 2 || p.items[i].hold.slot == 4);
        release(s, &p);
        h.min = h.max = 9;
        assert_int_equal(place(s, &h, 1, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.nodes, 2);
        assert_int_equal(why.fits, 8);
        h.min = h.max = 1;
        h.excluded = excluded;
        h.n_excluded = 1;
        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        assert_int_equal(p.items[0].hold.slot, 4);
        release(s, &p);
        h.n_allowed = 0;
        assert_int_equal(place(s, &h, 1, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.nodes, 0);
        assert_int_equal(why.scarce, SCHED_NODES);

        h = (struct sched_shape){
                .min = 20, .max = 20, .cpu_milli = 1000, .excluded = excluded, .n_excluded = 1
        };
        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        for (size_t i = 0; i < p.n; i++)
                assert_true(p.items[i].hold.slot != 2);
        release(s, &p);
        sched_node_set_usable(s, 0, false);
        assert_int_equal(place(s, &h, 1, &p, NULL), SCHED_E_NO_FIT);
        sched_node_set_usable(s, 0, true);
        assert_int_equal(place(s, &h, 1, &p, NULL), 0);
        release(s, &p);
        assert_empty(s);
}

static void test_elastic(void **state) {
        _cleanup_(sched_free_p) struct sched *s = uniform(2, 4);
        struct sched_shape shapes[] = { { .min = 2, .max = 100, .cpu_milli = 1000 },
                                        { .min = 1, .max = 1, .cpu_milli = 1000 } };
        struct sched_placement p, q;

        assert_int_equal(place(s, shapes, 2, &p, NULL), 0);
        assert_int_equal(p.n, 8); /* the other role got its one before the first was extended */
        assert_int_equal(p.items[7].shape, 1);
        assert_int_equal(place(s, shapes, 2, &q, NULL), SCHED_E_NO_FIT);
        release(s, &p);
        shapes[0].min = 0;
        assert_int_equal(place(s, shapes, 1, &p, NULL), 0);
        assert_int_equal(p.n, 8);
        assert_int_equal(place(s, shapes, 1, &q, NULL), SCHED_E_NO_FIT); /* not even one */
        release(s, &p);
        assert_empty(s);
}

/* Two gangs that each fit alone, in any order and however often: one of them always runs, the other holds
 * nothing. */
static void test_no_deadlock(void **state) {
        _cleanup_(sched_free_p) struct sched *s = uniform(4, 4);
        struct sched_shape a[] = { { .min = 6, .max = 6, .cpu_milli = 1000 },
                                   { .min = 2, .max = 2, .cpu_milli = 2000 } },
                           b[] = { { .min = 3, .max = 3, .cpu_milli = 3000 },
                                   { .min = 4, .max = 4, .cpu_milli = 1000 } };
        struct sched_placement first, second;

        for (int round = 0; round < 10; round++) {
                assert_int_equal(place(s, round % 2 ? a : b, 2, &first, NULL), 0);
                assert_int_equal(place(s, round % 2 ? b : a, 2, &second, NULL), SCHED_E_NO_FIT);
                release(s, &first);
                assert_empty(s); /* so the one that waits can start now */
                assert_int_equal(place(s, round % 2 ? b : a, 2, &second, NULL), 0);
                release(s, &second);
        }
}

/* Filling a node with the first role would leave no room for the second; another way is found. */
static void test_finds_another_way(void **state) {
        static const struct sched_capacity nodes[] = {
                { 8000, 8 * GIB, 0, 0, 0, 100 },
                { 4000, 64 * GIB, 0, 0, 0, 100 },
        };
        _cleanup_(sched_free_p) struct sched *s = cluster(nodes, ELEMENTSOF(nodes));
        struct sched_shape shapes[] = { { .min = 4, .max = 4, .cpu_milli = 1000, .memory = GIB },
                                        { .min = 8, .max = 8, .cpu_milli = 900, .memory = 7 * GIB / 8 } };
        struct sched_placement p;

        assert_int_equal(place(s, shapes, 2, &p, NULL), 0);
        release(s, &p);
        assert_empty(s);
}

static void test_deterministic(void **state) {
        struct sched_shape shapes[] = { { .min = 5, .max = 9, .cpu_milli = 700, .ports = 2 },
                                        { .min = 3, .max = 3, .cpu_milli = 1500, .memory = GIB } };
        struct sched_placement first, second;

        for (int i = 0; i < 2; i++) {
                _cleanup_(sched_free_p) struct sched *s = uniform(7, 3);
                assert_int_equal(place(s, shapes, 2, i ? &second : &first, NULL), 0);
        }
        assert_int_equal(first.n, second.n);
        for (size_t i = 0; i < first.n; i++) {
                assert_int_equal(first.items[i].hold.slot, second.items[i].hold.slot);
                if (first.items[i].hold.n_ports > 0)
                        assert_int_equal(first.items[i].hold.ports[1], second.items[i].hold.ports[1]);
        }
        sched_placement_done(&first);
        sched_placement_done(&second);
}

static void test_bad_gangs(void **state) {
        static const struct sched_shape bad[] = {
                { .min = 2, .max = 1 },
                { .min = 0, .max = 0 },
                { .min = 1, .max = 100001 },
                { .min = 1, .max = 1, .gpus = 65 },
                { .min = 1, .max = 1, .ports = 65 },
                { .min = 1, .max = 1, .cpu_milli = UINT32_MAX },
                { .min = 1, .max = 1, .memory = UINT64_MAX },
        };
        _cleanup_(sched_free_p) struct sched *s = uniform(1, 1);
        struct sched_placement p;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(place(s, &bad[i], 1, &p, NULL), -EINVAL);
        assert_int_equal(place(s, NULL, 0, &p, NULL), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_or_nothing),    cmocka_unit_test(test_kept_together),
                cmocka_unit_test(test_tightest_node),     cmocka_unit_test(test_gpu_nodes_are_spared),
                cmocka_unit_test(test_ports_rest),        cmocka_unit_test(test_limits_per_node),
                cmocka_unit_test(test_exactly_per_node),  cmocka_unit_test(test_allowed_and_excluded),
                cmocka_unit_test(test_elastic),           cmocka_unit_test(test_no_deadlock),
                cmocka_unit_test(test_finds_another_way), cmocka_unit_test(test_deterministic),
                cmocka_unit_test(test_bad_gangs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
