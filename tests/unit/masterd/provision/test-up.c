/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule of decide.h for what is asked for, at its boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/provision-kit.h"

#define T KIT_NOW
#define MINUTE KIT_MINUTE
#define HOUR KIT_HOUR

static struct provision_instance in_state(enum instance_state state, enum instance_seen seen) {
        return (struct provision_instance){ .state = state, .seen = seen, .made = T, .since = T };
}

static void test_limits_of_demand(void **state) {
        static const struct {
                struct provision_demand demand[3];
                uint32_t ups[3];
                const char *refused[3];
        } cases[] = {
                { { { 0, 6, 1 }, { 0, 5, 2 } },
                  { 0, 5 },
                  { "6 more, with 0 of at most 5 instances there", "" } },
                { { { 1, 3, 1 }, { 1, 2, 2 } },
                  { 0, 2 },
                  { "3 more, with 0 of at most 2 instances of this shape there", "" } },
                { { { 0, 3, 1 }, { 0, 3, 2 }, { 0, 2, 3 } },
                  { 3, 0, 2 },
                  { "", "3 more, with 3 of at most 5 instances there", "" } },
                { { { 1, 1, 1 }, { 1, 1, 2 }, { 0, 3, 3 } },
                  { 1, 1, 0 },
                  { "", "", "they cost 3.00 more an hour; all cost 8.00 of at most 10.00" } },
                { { { 2, 1, 1 }, { UINT32_MAX, 1, 2 }, { 0, 0, 3 } },
                  { 0, 0, 0 },
                  { "there is no such shape", "there is no such shape", "" } },
                { { { 0, UINT32_MAX, 1 }, { 1, 0, 1 }, { 0, 1, 2 } },
                  { 0, 0, 1 },
                  { "4294967295 more, with 0 of at most 5 instances there", "", "" } },
        };
        struct provision_conf c = kit_conf(0, 5);

        c.shapes[1] = (struct provision_shape){ .max = 2, .cost = 4000000 };
        c.n_shapes = 2;
        c.cost_max = 10000000;
        for (size_t k = 0; k < ELEMENTSOF(cases); k++) {
                struct provision_plan p = kit_decide(&c, NULL, 0, cases[k].demand, 3, T);
                size_t n = 0;
                for (uint32_t i = 0; i < 3; i++) {
                        const char *why = cases[k].refused[i] ? cases[k].refused[i] : "";
                        for (uint32_t up = 0; up < cases[k].ups[i]; up++, n++) {
                                assert_true(n < p.n);
                                assert_int_equal(p.actions[n].verb, PROVISION_UP);
                                assert_int_equal(p.actions[n].job, cases[k].demand[i].job);
                                assert_int_equal(p.actions[n].shape, cases[k].demand[i].shape);
                        }
                        assert_string_equal(p.refused[i], why);
                }
                assert_int_equal(p.n, n);
                provision_plan_done(&p);
        }
}

static void test_cost_that_is_beyond_numbers(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance list[] = { kit_busy(T), kit_busy(T), kit_busy(T) };
        struct provision_plan p;

        c.shapes[0].cost = UINT64_MAX / 2;
        c.cost_max = UINT64_MAX;
        p = kit_decide(&c, list, 2, &(struct provision_demand){ .n = 1 }, 1, T);
        assert_int_equal(p.n, 0);
        assert_true(strlen(p.refused[0]) < PROVISION_WHY_MAX);
        assert_true(p.cost == UINT64_MAX - 1);
        provision_plan_done(&p);
        p = kit_decide(&c, list, 3, NULL, 0, T);
        assert_true(p.cost == UINT64_MAX);
        provision_plan_done(&p);
}

static void test_starting_max(void **state) {
        struct provision_conf c = kit_conf(0, 100);
        const struct provision_demand demand[] = { { .n = 4, .job = 1 }, { .n = 1, .job = 2 } };
        struct provision_instance list[] = { in_state(INSTANCE_STARTING, SEEN_PENDING), kit_busy(T) };
        struct provision_plan p;

        c.starting_max = 3;
        list[0].wanted = true;
        p = kit_decide(&c, list, 2, demand, 2, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 2);
        assert_string_equal(p.refused[0], "2 of 4 now: at most 3 are on their way at a time");
        assert_string_equal(p.refused[1], "0 of 1 now: at most 3 are on their way at a time");
        provision_plan_done(&p);
}

static void test_pace(void **state) {
        struct provision_conf c = kit_conf(0, 100);
        const struct provision_demand demand = { .n = 4, .job = 1 };
        /* The last one is of a clock that was put back since. */
        const uint64_t asked[] = { T - 30 * KIT_SECOND, T - MINUTE, T - MINUTE + 1, T + HOUR };
        const struct provision_pace pace = { asked, ELEMENTSOF(asked) };
        struct provision_plan p;

        c.per_minute = 5;
        assert_int_equal(provision_decide(&c, NULL, NULL, 0, &demand, 1, &pace, T, &p), 0);
        assert_int_equal(p.n, 3);
        assert_true(p.next == T + 1);
        assert_string_equal(p.refused[0], "3 of 4 now: at most 5 are asked for in a minute");
        provision_plan_done(&p);
        /* What this plan asks for counts, too. */
        p = kit_decide(&c, NULL, 0, &(struct provision_demand){ .n = 6 }, 1, T);
        assert_int_equal(p.n, 5);
        assert_true(p.next == T + MINUTE);
        provision_plan_done(&p);
}

static void test_min_and_spare(void **state) {
        struct provision_conf c = kit_conf(3, 10);
        struct provision_instance list[] = { kit_busy(T), in_state(INSTANCE_STARTING, SEEN_PENDING) };
        struct provision_plan p;

        list[1].wanted = true;
        p = kit_decide(&c, list, 2, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 1);
        assert_int_equal(p.actions[0].job, 0);
        provision_plan_done(&p);
        /* The one for min is a spare one as well; what is wanted is none. */
        c.spare = 2;
        p = kit_decide(&c, list, 2, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 2);
        provision_plan_done(&p);
        p = kit_decide(&c, list, 2, &(struct provision_demand){ .n = 1, .job = 9 }, 1, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 3);
        provision_plan_done(&p);
        c.max = 3;
        p = kit_decide(&c, list, 2, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 1);
        provision_plan_done(&p);
        /* min is not above max. */
        c = kit_conf(9, 2);
        p = kit_decide(&c, NULL, 0, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 2);
        provision_plan_done(&p);
}

static uint32_t shape_for_min(const struct provision_conf *c, const struct provision_trouble *trouble) {
        struct provision_plan p;
        uint32_t shape;

        assert_int_equal(provision_decide(c, trouble, NULL, 0, NULL, 0, NULL, T, &p), 0);
        shape = p.n == 1 ? p.actions[0].shape : UINT32_MAX;
        if (p.n == 0)
                assert_true(p.next == T + MINUTE);
        provision_plan_done(&p);
        return shape;
}

static void test_cheapest(void **state) {
        struct provision_conf c = kit_conf(1, 10);
        struct provision_trouble trouble[4] = { 0 };

        c.n_shapes = 4;
        c.shapes[0] = (struct provision_shape){ .max = 9, .cost = 3 };
        c.shapes[1] = (struct provision_shape){ .max = 9, .cost = 2 };
        c.shapes[2] = (struct provision_shape){ .max = 9, .cost = 2 };
        c.shapes[3] = (struct provision_shape){ .max = 0, .cost = 1 };
        assert_int_equal(shape_for_min(&c, trouble), 1);
        provision_unavailable(trouble + 1, "none", T);
        assert_int_equal(shape_for_min(&c, trouble), 2);
        provision_unavailable(trouble + 2, "none", T);
        assert_int_equal(shape_for_min(&c, trouble), 0);
        provision_later(trouble, MINUTE, "wait", T);
        assert_int_equal(shape_for_min(&c, trouble), UINT32_MAX);
}

static void test_trouble(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        const struct provision_demand demand[] = { { .shape = 0, .n = 3, .job = 1 },
                                                   { .shape = 1, .n = 2, .job = 2 } };
        struct provision_trouble trouble[2] = { 0 };
        struct provision_plan p;

        c.shapes[1] = c.shapes[0];
        c.n_shapes = 2;
        provision_unavailable(trouble, "no capacity in zone a", T);
        assert_int_equal(provision_decide(&c, trouble, NULL, 0, demand, 2, NULL, T + 1, &p), 0);
        assert_int_equal(p.n, 2);
        assert_int_equal(p.actions[0].shape, 1);
        assert_string_equal(p.refused[0], "there are none to be had: no capacity in zone a");
        assert_true(p.next == T + PROVISION_UNAVAILABLE_USEC);
        provision_plan_done(&p);
        assert_int_equal(
                provision_decide(&c, trouble, NULL, 0, demand, 2, NULL, T + PROVISION_UNAVAILABLE_USEC, &p),
                0);
        assert_int_equal(p.n, 5);
        provision_plan_done(&p);
}

/* After a block by failures one is tried, though more are asked for, until one succeeds. */
static void test_one_is_tried(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        const struct provision_demand demand = { .n = 3, .job = 1 };
        struct provision_instance i = in_state(INSTANCE_STARTING, SEEN_PENDING);
        struct provision_trouble trouble = { 0 };
        struct provision_plan p;

        for (int k = 0; k < 3; k++)
                provision_failed(&trouble, "no", T - MINUTE);
        i.wanted = true;
        for (int on_way = 0; on_way < 2; on_way++) {
                assert_int_equal(provision_decide(&c, &trouble, &i, (size_t)on_way, &demand, 1, NULL, T, &p),
                                 0);
                assert_int_equal(p.n, 1 - on_way);
                assert_non_null(strstr(p.refused[0], "now: its shape has failed, and is tried with one"));
                provision_plan_done(&p);
        }
        provision_succeeded(&trouble);
        assert_int_equal(provision_decide(&c, &trouble, &i, 1, &demand, 1, NULL, T, &p), 0);
        assert_int_equal(p.n, 3);
        provision_plan_done(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_limits_of_demand), cmocka_unit_test(test_cost_that_is_beyond_numbers),
                cmocka_unit_test(test_starting_max),     cmocka_unit_test(test_pace),
                cmocka_unit_test(test_min_and_spare),    cmocka_unit_test(test_cheapest),
                cmocka_unit_test(test_trouble),          cmocka_unit_test(test_one_is_tried),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
