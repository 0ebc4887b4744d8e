/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a pass: when those that do not fit will start, and who may start before them all the same. That
 * promises are kept in random worlds is test-policy-random.c of sim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/policy-kit.h"

static void submit(struct owner *o, uint64_t id, uint32_t n, uint64_t seconds) {
        struct policy_job job = {
                .id = id, .user = 7, .submitted = o->now + id, .duration_usec = seconds * SECOND
        };

        o->shapes[id] = (struct sched_shape){ .min = n, .max = n, .cpu_milli = 1000 };
        assert_int_equal(policy_job_add(o->policy, &job), 0);
}

/* It starts when enough of what runs has ended, by time limits. */
static void test_starts_by(void **state) {
        struct owner o;

        policy_kit_begin(&o, 1, 4, NULL);
        submit(&o, 1, 2, 100);
        submit(&o, 2, 2, 300);
        assert_int_equal(policy_kit_run(&o), 2);
        submit(&o, 3, 2, 50);
        submit(&o, 4, 4, 50);
        assert_int_equal(policy_kit_run(&o), 0);
        assert_true(o.why[3].starts_by == o.now + 100 * SECOND);
        assert_true(o.why[4].starts_by == o.now + 300 * SECOND);
        policy_kit_end(&o);
}

/* Who is behind starts only where no reservation is delayed. */
static void test_holes(void **state) {
        struct owner o;

        policy_kit_begin(&o, 1, 4, NULL);
        submit(&o, 1, 3, 100);
        assert_int_equal(policy_kit_run(&o), 1);
        submit(&o, 2, 4, 100); /* from 100 s on */
        submit(&o, 3, 1, 101); /* one second too long */
        submit(&o, 4, 1, 100);
        assert_int_equal(policy_kit_run(&o), 1);
        assert_true(policy_kit_has_places(&o, 4));
        assert_false(policy_kit_has_places(&o, 3));
        assert_true(o.why[2].starts_by == o.now + 100 * SECOND);
        policy_kit_end(&o);
}

/* It would fit into the hole, but not end in time: it hears before whom it is not to start. */
static void test_ahead(void **state) {
        struct owner o;

        policy_kit_begin(&o, 1, 4, NULL);
        submit(&o, 1, 3, 100);
        assert_int_equal(policy_kit_run(&o), 1);
        submit(&o, 2, 4, 100);
        submit(&o, 3, 1, 101);
        assert_int_equal(policy_kit_run(&o), 0);
        assert_int_equal(o.why[3].reason, POLICY_RESERVED);
        assert_int_equal(o.why[3].ahead, 2);
        policy_kit_end(&o);
}

/* Nobody knows when a run without a limit ends. */
static void test_no_limit(void **state) {
        struct owner o;

        policy_kit_begin(&o, 1, 4, NULL);
        policy_kit_submit(&o, 1, 0, 7, 0, 4, 1);
        assert_int_equal(policy_kit_run(&o), 1);
        submit(&o, 2, 1, 10);
        assert_int_equal(policy_kit_run(&o), 0);
        assert_true(o.why[2].starts_by == UINT64_MAX);
        policy_kit_end(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_starts_by),
                cmocka_unit_test(test_holes),
                cmocka_unit_test(test_ahead),
                cmocka_unit_test(test_no_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
