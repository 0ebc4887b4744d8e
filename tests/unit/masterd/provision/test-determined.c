/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of Determined's scale decider, and what ours answers to them. Where it answers otherwise, that is
 * on purpose, and said. Everywhere: Determined ends an idle instance at once, ours drains it and ends it when
 * a second look finds nothing there; and Determined subtracts what is on its way from a number, while ours is
 * only asked for what no instance on its way would do for, those being `wanted`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/provision-kit.h"

#define T KIT_NOW
#define MINUTE KIT_MINUTE
#define HOUR KIT_HOUR

static const struct provision_demand ones[16] = {
        { .n = 1, .job = 1 },
        { .n = 1, .job = 2 },
        { .n = 1, .job = 3 },
        { .n = 1, .job = 4 },
};

static struct provision_instance starting(uint64_t ago) {
        return (struct provision_instance){
                .state = INSTANCE_STARTING, .seen = SEEN_PENDING, .made = T - ago, .since = T - ago
        };
}

static struct provision_instance lost(uint64_t ago) {
        struct provision_instance i = kit_busy(T);

        i.lost_since = T - ago;
        return i;
}

static struct provision_instance stopped(void) {
        struct provision_instance i = lost(HOUR);

        i.seen = SEEN_STOPPED;
        return i;
}

static void assert_verbs(const struct provision_plan *p, const int *verbs, size_t n) {
        for (uint32_t k = 0; k < n; k++) {
                const struct provision_action *a = kit_action(p, k);
                assert_int_equal(a ? (int)a->verb : -1, verbs[k]);
        }
}

static void test_states(void **state) {
        struct provision_conf c = kit_conf(0, 100);
        struct provision_instance list[] = {
                stopped(),          /* for an hour */
                starting(MINUTE),   /* recently launched */
                starting(MINUTE),   /* */
                kit_busy(T),        /* was disconnected for an hour */
                lost(0),            /* found disconnected now */
                lost(HOUR),         /* known to be */
                kit_busy(T),        /* was idle for an hour */
                kit_ready(T, 0),    /* found idle now */
                kit_ready(T, HOUR), /* known to be */
                kit_busy(T),        /* occupied all along */
        };
        static const int verbs[] = { PROVISION_STOP,  -1, -1, -1, -1, PROVISION_STOP, -1, -1,
                                     PROVISION_DRAIN, -1 };
        struct provision_plan p;

        c.idle_usec = c.start_usec = c.lost_usec = 10 * MINUTE;
        p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);
        assert_verbs(&p, verbs, ELEMENTSOF(verbs));
        provision_plan_done(&p);
}

static void test_terminate_one(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        const struct provision_instance list[] = { stopped(), kit_ready(T, HOUR), lost(HOUR),
                                                   starting(HOUR) };
        static const int verbs[] = { PROVISION_STOP, PROVISION_DRAIN, PROVISION_STOP, PROVISION_STOP };

        for (uint32_t k = 0; k < ELEMENTSOF(list); k++) {
                struct provision_plan p = kit_decide(&c, list + k, 1, NULL, 0, T);
                assert_int_equal(p.n, 1);
                assert_verbs(&p, verbs + k, 1);
                provision_plan_done(&p);
        }
}

/* Determined ends the newest one as well, to get down to max, with what runs there. Ours lets it end. */
static void test_over_max(void **state) {
        struct provision_conf c = kit_conf(0, 1);
        struct provision_instance list[] = { kit_busy(T), kit_busy(T), kit_ready(T, 0), kit_ready(T, HOUR) };
        static const int verbs[] = { -1, -1, PROVISION_DRAIN, PROVISION_DRAIN };
        struct provision_plan p;

        list[1].made = T - MINUTE;
        p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);
        assert_verbs(&p, verbs, ELEMENTSOF(verbs));
        provision_plan_done(&p);
        /* On its way it is ended, too. */
        list[1] = starting(MINUTE);
        p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);
        assert_int_equal(kit_action(&p, 1)->verb, PROVISION_STOP);
        assert_false(kit_action(&p, 1)->failed);
        provision_plan_done(&p);
}

static void test_under_min(void **state) {
        struct provision_conf c = kit_conf(6, 10);
        const struct provision_instance list[] = {
                stopped(),   lost(HOUR),  kit_ready(T, HOUR), kit_busy(T),
                kit_busy(T), kit_busy(T), kit_busy(T),        kit_busy(T)
        };
        static const int verbs[] = { PROVISION_STOP, PROVISION_STOP, -1, -1, -1, -1, -1, -1 };
        struct provision_plan p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);

        assert_verbs(&p, verbs, ELEMENTSOF(verbs));
        assert_int_equal(kit_count(&p, PROVISION_UP), 0);
        provision_plan_done(&p);
        /* One less: what goes nevertheless is replaced by the same plan. */
        p = kit_decide(&c, list, ELEMENTSOF(list) - 1, NULL, 0, T);
        assert_verbs(&p, verbs, ELEMENTSOF(verbs) - 1);
        assert_int_equal(kit_count(&p, PROVISION_UP), 1);
        provision_plan_done(&p);
}

/* Of stopped ones Determined subtracts from a number that they are not in, and lets too few idle ones go. */
static void test_stopped_ones_do_not_keep_idle_ones(void **state) {
        struct provision_conf c = kit_conf(1, 10);
        const struct provision_instance list[] = { stopped(), stopped(), kit_ready(T, HOUR),
                                                   kit_ready(T, HOUR) };
        struct provision_plan p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);

        assert_int_equal(kit_count(&p, PROVISION_STOP), 2);
        assert_int_equal(kit_count(&p, PROVISION_DRAIN), 1);
        provision_plan_done(&p);
}

static void test_launch(void **state) {
        static const struct {
                uint32_t min, max, running, coming, want, ups;
        } cases[] = {
                { 1, 10, 0, 0, 1, 1 },  { 0, 2, 1, 0, 4, 1 }, { 0, 10, 1, 1, 3, 3 }, /* they want 4, of which
                                                                                        one is on its way */
                { 0, 10, 0, 2, 0, 0 },                                               /* they want 1 */
                { 0, 100, 0, 0, 4, 4 }, { 0, 1, 0, 0, 3, 1 }, { 3, 10, 0, 0, 1, 3 }, { 0, 0, 0, 0, 1, 0 },
        };

        for (size_t k = 0; k < ELEMENTSOF(cases); k++) {
                struct provision_conf c = kit_conf(cases[k].min, cases[k].max);
                struct provision_instance list[4];
                struct provision_plan p;
                size_t n = 0;
                for (uint32_t i = 0; i < cases[k].running; i++)
                        list[n++] = kit_busy(T);
                for (uint32_t i = 0; i < cases[k].coming; i++) {
                        list[n] = starting(MINUTE);
                        list[n++].wanted = true;
                }
                p = kit_decide(&c, list, n, ones, cases[k].want, T);
                assert_int_equal(kit_count(&p, PROVISION_UP), cases[k].ups);
                assert_int_equal(p.n, cases[k].ups);
                provision_plan_done(&p);
        }
}

/* The same number for one gang: Determined starts what max allows, which waits there, and costs, for ever. */
static void test_launch_a_gang(void **state) {
        struct provision_conf c = kit_conf(0, 3);
        const struct provision_demand gang = { .n = 4, .job = 7 };
        struct provision_plan p = kit_decide(&c, NULL, 0, &gang, 1, T);

        assert_int_equal(p.n, 0);
        assert_string_equal(p.refused[0], "4 more, with 0 of at most 3 instances there");
        provision_plan_done(&p);
        c.max = 4;
        p = kit_decide(&c, NULL, 0, &gang, 1, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 4);
        assert_string_equal(p.refused[0], "");
        provision_plan_done(&p);
}

/* First pass: nothing. Later: both go; ours in two steps. */
static void test_idle_over_passes(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance list[] = { kit_ready(T, 0), kit_ready(T, 0) };
        struct provision_plan p;

        c.idle_usec = 50000;
        p = kit_decide(&c, list, 2, NULL, 0, T);
        assert_int_equal(p.n, 0);
        assert_true(p.next == T + 50000);
        provision_plan_done(&p);
        p = kit_decide(&c, list, 2, NULL, 0, T + 100000);
        assert_int_equal(kit_count(&p, PROVISION_DRAIN), 2);
        assert_int_equal(p.n, 2);
        provision_plan_done(&p);
        for (int i = 0; i < 2; i++)
                list[i].state = INSTANCE_DRAINING;
        /* Something was placed there meanwhile. Determined would have ended it. */
        list[1].idle_since = 0;
        p = kit_decide(&c, list, 2, NULL, 0, T + 100000);
        assert_int_equal(p.n, 1);
        assert_int_equal(kit_action(&p, 0)->verb, PROVISION_STOP);
        provision_plan_done(&p);
}

/* Five passes, two wanted: launched once. */
static void test_launch_once(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct kit_provider provider;

        kit_provider_init(&provider, &c, 10);
        for (uint64_t k = 0; k < 5; k++)
                kit_provider_step(&provider, T + k * 5 * KIT_SECOND, 2);
        assert_int_equal(provider.did[PROVISION_UP], 2);
        kit_provider_done(&provider);
}

static void test_lost_over_passes(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance list[] = { lost(0), starting(MINUTE) };
        struct provision_plan p;

        c.lost_usec = 50000;
        c.start_usec = 3 * MINUTE;
        p = kit_decide(&c, list, 2, NULL, 0, T);
        assert_int_equal(p.n, 0);
        provision_plan_done(&p);
        p = kit_decide(&c, list, 2, NULL, 0, T + 100000);
        assert_int_equal(p.n, 1);
        assert_int_equal(kit_action(&p, 0)->verb, PROVISION_STOP);
        provision_plan_done(&p);
}

/* Failures. Determined tries again every five seconds, and makes of a number of failures an error of the jobs
 * that need a launch. Ours waits longer each time; the shape says why, and a job only waits. */
static void test_errors(void **state) {
        struct provision_conf c = kit_conf(0, 4);
        struct provision_trouble trouble[PROVISION_SHAPES_MAX] = { 0 };
        uint32_t tries = 0;
        uint64_t now = T;

        for (; now < T + HOUR; now += 5 * KIT_SECOND) {
                struct provision_plan p;
                assert_int_equal(provision_decide(&c, trouble, NULL, 0, ones, 4, NULL, now, &p), 0);
                tries += (uint32_t)p.n;
                for (size_t k = 0; k < p.n; k++)
                        provision_failed(trouble, "the quota is used up", now);
                if (provision_blocked(trouble, now + 5 * KIT_SECOND) && p.n == 0) {
                        assert_string_equal(p.refused[0], "none is asked for now: the quota is used up");
                        assert_true(p.next == trouble->blocked_until);
                }
                provision_plan_done(&p);
        }
        /* Four at once, then one after 1, 2, 4, 8, 16, 30 minutes; 4 x 720 are Determined's. */
        assert_int_equal(tries, 4 + 5);
}

/* One a call, as a provider may have it: no error, and all are there in the end. */
static void test_one_after_another(void **state) {
        struct provision_conf c = kit_conf(0, 4);
        struct kit_provider provider;

        c.starting_max = 1;
        kit_provider_init(&provider, &c, 10);
        for (uint64_t k = 0; k < 5; k++)
                kit_provider_step(&provider, T + k * 2 * MINUTE, 4);
        assert_int_equal(provider.did[PROVISION_UP], 4);
        assert_int_equal(provider.waiting, 0);
        kit_provider_done(&provider);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_states),
                cmocka_unit_test(test_terminate_one),
                cmocka_unit_test(test_over_max),
                cmocka_unit_test(test_under_min),
                cmocka_unit_test(test_stopped_ones_do_not_keep_idle_ones),
                cmocka_unit_test(test_launch),
                cmocka_unit_test(test_launch_a_gang),
                cmocka_unit_test(test_idle_over_passes),
                cmocka_unit_test(test_launch_once),
                cmocka_unit_test(test_lost_over_passes),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_one_after_another),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
