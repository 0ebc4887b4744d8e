/* SPDX-License-Identifier: Apache-2.0 */
/* Whether executors of a shape will ever fit, whoever holds what now. Against what a placement on the empty
 * nodes finds: test-place-random.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

static struct sched_ever ever(struct sched *s, const struct sched_shape *h) {
        struct sched_ever e;

        assert_int_equal(sched_shape_ever(s, h, &e), 0);
        return e;
}

/* What is held, and whether a node is usable, does not matter. */
static void test_whoever_holds_what(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(3, 1);
        struct sched_shape h = sched_kit_cpus(24, 1);
        struct sched_ever e;

        for (uint32_t i = 0; i < 3; i++)
                sched_kit_occupy(s, i, 8);
        sched_node_set_usable(s, 1, false);
        e = ever(s, &h);
        assert_true(e.fits == 24 && e.nodes == 3 && e.short_ == 0);
        h = sched_kit_cpus(25, 1);
        e = ever(s, &h);
        assert_true(e.fits == 24 && e.short_ == 0); /* a single one would fit anywhere */
}

static void test_short(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(2, 1);
        struct sched_shape h = { .min = 1, .max = 1, .cpu_milli = 9000, .memory = 65 * GIB };
        struct sched_ever e = ever(s, &h);

        assert_int_equal(e.fits, 0);
        assert_int_equal(e.short_, SCHED_CPU | SCHED_MEMORY);
        assert_true(e.most.cpu_milli == 8000 && e.most.memory == 64 * GIB && e.most.gpus == 0);
        h = (struct sched_shape){ .min = 1, .max = 1, .gpus = 1 };
        assert_int_equal(ever(s, &h).short_, SCHED_GPUS);
        h = (struct sched_shape){ .min = 1, .max = 1, .ports = 5, .shm = 9 * GIB };
        assert_int_equal(ever(s, &h).short_, SCHED_SHM);
}

static void test_of_those_allowed(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(4, 1);
        const uint32_t allowed[] = { 2, 77 };
        struct sched_shape h = sched_kit_cpus(9, 1);
        struct sched_ever e;

        h.restricted = true;
        h.allowed = allowed;
        h.n_allowed = 2; /* of which one is not there */
        e = ever(s, &h);
        assert_true(e.nodes == 1 && e.fits == 8);
        h.n_allowed = 0;
        e = ever(s, &h);
        assert_true(e.nodes == 0 && e.fits == 0 && e.short_ == 0);
}

static void test_per_node(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(4, 1);
        struct sched_shape h = sched_kit_cpus(8, 1);

        h.max_per_node = 1;
        assert_int_equal(ever(s, &h).fits, 4);
        h = sched_kit_cpus(9, 3);
        h.per_node = 3; /* a node has room for two */
        assert_int_equal(ever(s, &h).fits, 0);
        h.cpu_milli = 0;
        assert_int_equal(ever(s, &h).fits, 9);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whoever_holds_what),
                cmocka_unit_test(test_short),
                cmocka_unit_test(test_of_those_allowed),
                cmocka_unit_test(test_per_node),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
