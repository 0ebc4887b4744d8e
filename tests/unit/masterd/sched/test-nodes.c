/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, and what is held on them. */
#include "masterd/sched/sched.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const struct sched_capacity small = { 4000, UINT64_C(8) << 30, 2, 30000, 30009, 100 };

static void test_add_and_remove(void **state) {
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_usage u;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        for (uint32_t i = 0; i < 1000; i++) {
                assert_int_equal(sched_node_add(s, &small, &slot), 0);
                assert_int_equal(slot, i);
        }
        assert_int_equal(sched_node_remove(s, 500), 0);
        assert_int_equal(sched_node_remove(s, 500), -ENOENT);
        assert_int_equal(sched_node_usage(s, 500, &u), -ENOENT);
        assert_int_equal(sched_node_add(s, &small, &slot), 0);
        assert_int_equal(slot, 500);
        assert_int_equal(sched_node_usage(s, 500, &u), 0);
        assert_int_equal(u.capacity.gpus, 2);
        assert_true(u.usable);
        assert_int_equal(sched_node_usage(s, 5000, &u), -ENOENT);
}

static void test_bad_capacities(void **state) {
        static const struct sched_capacity bad[] = {
                { .gpus = 65 },           { .cpu_milli = UINT32_MAX },
                { .memory = UINT64_MAX }, { .port_first = 10, .port_last = 9 },
                { .port_last = 9 },       { .executors = UINT32_MAX },
        };
        _cleanup_(sched_free_p) struct sched *s = NULL;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(sched_node_add(s, &bad[i], &slot), -EINVAL);
}

static void test_reserve(void **state) {
        static const uint16_t ports[] = { 30000, 30009 }, twice[] = { 30001, 30001 }, outside[] = { 30010 };
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_hold h = {
                .cpu_milli = 1000, .memory = 1 << 30, .gpus = 2, .ports = ports, .n_ports = 2
        };
        struct sched_usage u;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_reserve(s, &h), -ENOENT);
        assert_int_equal(sched_node_add(s, &small, &slot), 0);
        assert_int_equal(sched_reserve(s, &h), 0);
        assert_int_equal(sched_reserve(s, &h), SCHED_E_CONFLICT); /* the GPU */
        h.gpus = 0;
        assert_int_equal(sched_reserve(s, &h), SCHED_E_CONFLICT); /* the ports */
        h.gpus = 4;
        h.n_ports = 0;
        assert_int_equal(sched_reserve(s, &h), SCHED_E_CONFLICT); /* there is no GPU 2 */
        h.gpus = 0;
        h.ports = twice;
        h.n_ports = 2;
        assert_int_equal(sched_reserve(s, &h), SCHED_E_CONFLICT);
        h.ports = outside;
        h.n_ports = 1;
        assert_int_equal(sched_reserve(s, &h), SCHED_E_CONFLICT);
        assert_int_equal(sched_node_usage(s, slot, &u), 0);
        assert_int_equal(u.executors, 1);
        assert_int_equal(u.ports, 2);
        assert_true(u.gpus == 2 && u.cpu_milli == 1000);
        assert_int_equal(sched_node_remove(s, slot), -EBUSY);

        h = (struct sched_hold){
                .cpu_milli = 1000, .memory = 1 << 30, .gpus = 2, .ports = ports, .n_ports = 2
        };
        sched_release(s, &h);
        assert_int_equal(sched_node_usage(s, slot, &u), 0);
        assert_true(u.executors == 0 && u.ports == 0 && u.gpus == 0 && u.cpu_milli == 0 && u.memory == 0);
        assert_int_equal(sched_node_remove(s, slot), 0);
}

static void test_overcommitted_node_takes_nothing(void **state) {
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_capacity c = small;
        struct sched_hold h = { .cpu_milli = 3000, .memory = 1 << 30 };
        struct sched_shape one = { .min = 1, .max = 1, .cpu_milli = 500 };
        struct sched_gang g = { &one, 1 };
        struct sched_placement p;
        struct sched_no_fit why;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &h.slot), 0);
        assert_int_equal(sched_reserve(s, &h), 0);
        c.cpu_milli = 2000; /* the host came back with fewer CPUs */
        assert_int_equal(sched_node_update(s, h.slot, &c), 0);
        assert_int_equal(sched_place(s, &g, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.scarce, SCHED_CPU);
        assert_int_equal(sched_reserve(s, &h), 0); /* what runs is held all the same */
        sched_release(s, &h);
        sched_release(s, &h);
        assert_int_equal(sched_place(s, &g, &p, NULL), 0);
        sched_placement_done(&p);
}

static void test_port_range_change(void **state) {
        static const uint16_t port = 30005;
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_capacity c = small;
        struct sched_hold h = { .ports = &port, .n_ports = 1 };

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &h.slot), 0);
        assert_int_equal(sched_reserve(s, &h), 0);
        c.port_last = 40000;
        assert_int_equal(sched_node_update(s, h.slot, &c), -EBUSY);
        sched_release(s, &h);
        assert_int_equal(sched_node_update(s, h.slot, &c), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_add_and_remove),
                cmocka_unit_test(test_bad_capacities),
                cmocka_unit_test(test_reserve),
                cmocka_unit_test(test_overcommitted_node_takes_nothing),
                cmocka_unit_test(test_port_range_change),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
