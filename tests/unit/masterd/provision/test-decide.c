/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule of decide.h for what is there, at its boundary. */
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
#define NOTHING (-1)

/* The verb for the one instance; what else the plan has is checked. */
static int verb_of(const struct provision_conf *c, const struct provision_instance *i, uint64_t now,
                   struct provision_action *ret) {
        struct provision_plan p = kit_decide(c, i, 1, NULL, 0, now);
        int verb = NOTHING;

        for (size_t k = 0; k < p.n; k++)
                if (p.actions[k].verb != PROVISION_UP) {
                        assert_int_equal(verb, NOTHING);
                        assert_int_equal(p.actions[k].instance, 0);
                        assert_int_equal(p.actions[k].shape, i->shape);
                        assert_true(*p.actions[k].why != 0);
                        verb = (int)p.actions[k].verb;
                        if (ret)
                                *ret = p.actions[k];
                }
        provision_plan_done(&p);
        return verb;
}

/* Nothing before `when`, and then the verb; and the plan says when that is. */
static struct provision_action turns_at(const struct provision_conf *c, const struct provision_instance *i,
                                        uint64_t when, enum provision_verb verb) {
        struct provision_action a = { 0 };
        struct provision_plan p = kit_decide(c, i, 1, NULL, 0, when - 1);

        assert_int_equal(p.n, 0);
        assert_true(p.next == when);
        provision_plan_done(&p);
        assert_int_equal(verb_of(c, i, when, &a), verb);
        return a;
}

static struct provision_instance in_state(enum instance_state state, enum instance_seen seen) {
        return (struct provision_instance){ .state = state, .seen = seen, .made = T, .since = T };
}

static void test_defaults(void **state) {
        struct provision_conf c = { .n_shapes = 3 };

        provision_conf_defaults(&c);
        assert_int_equal(c.n_shapes, 0);
        assert_int_equal(c.min, 0);
        assert_int_equal(c.max, 5);
        assert_true(c.idle_usec == 20 * MINUTE && c.start_usec == 20 * MINUTE && c.lost_usec == 10 * MINUTE);
        assert_true(c.absent_usec == MINUTE && c.min_life_usec == 0);
}

static void test_nothing_at_all(void **state) {
        struct provision_conf c;
        struct provision_plan p;

        provision_conf_defaults(&c);
        p = kit_decide(&c, NULL, 0, NULL, 0, T);
        assert_int_equal(p.n, 0);
        assert_true(p.next == UINT64_MAX && p.cost == 0);
        provision_plan_done(&p);
        provision_plan_done(&p);
        provision_plan_done(NULL);
        /* Without a shape nobody can be asked. */
        c.min = 2;
        p = kit_decide(&c, NULL, 0, &(struct provision_demand){ .n = 1 }, 1, T);
        assert_int_equal(p.n, 0);
        assert_string_equal(p.refused[0], "there is no such shape");
        provision_plan_done(&p);
}

static void test_start_timeout(void **state) {
        struct provision_conf c = kit_conf(0, 10);

        for (enum instance_state s = INSTANCE_WANTED; s <= INSTANCE_STARTING; s++) {
                struct provision_instance i = in_state(s, SEEN_NOT_ASKED);
                struct provision_action a;
                i.wanted = true;
                i.since = T + MINUTE; /* of no account: it is asked for since T */
                a = turns_at(&c, &i, T + c.start_usec, PROVISION_STOP);
                assert_true(a.failed);
                assert_string_equal(a.why, "its host has not joined within 20min");
        }
}

static void test_joined_and_of_no_use(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance i = in_state(INSTANCE_JOINED, SEEN_RUNNING);

        i.since = T + 3 * MINUTE;
        assert_true(turns_at(&c, &i, T + 3 * MINUTE + c.start_usec, PROVISION_STOP).failed);
}

static void test_lost(void **state) {
        struct provision_conf c = kit_conf(0, 10);

        c.idle_usec = HOUR;
        for (enum instance_state s = INSTANCE_JOINED; s <= INSTANCE_DRAINING; s++) {
                struct provision_instance i = in_state(s, SEEN_RUNNING);
                struct provision_action a;
                i.lost_since = T + MINUTE;
                i.wanted = s == INSTANCE_READY;
                a = turns_at(&c, &i, T + MINUTE + c.lost_usec, PROVISION_STOP);
                assert_int_equal(a.failed, s == INSTANCE_JOINED);
                assert_string_equal(a.why, "its host has been lost for 10min");
                /* Nothing is known of it at its provider's: the network may be away as a whole. */
                i.seen = SEEN_NOT_ASKED;
                if (s != INSTANCE_JOINED)
                        assert_int_equal(verb_of(&c, &i, T + 10 * HOUR, NULL), NOTHING);
                i.seen = SEEN_ABSENT;
                i.absent = 1;
                if (s != INSTANCE_JOINED)
                        assert_int_equal(verb_of(&c, &i, T + 10 * HOUR, NULL), NOTHING);
        }
}

static void test_listed_as_ended(void **state) {
        struct provision_conf c = kit_conf(0, 10);

        for (int seen = SEEN_STOPPED; seen <= SEEN_FAILED; seen++)
                for (enum instance_state s = INSTANCE_WANTED; s <= INSTANCE_STOPPING; s++) {
                        struct provision_instance i = in_state(s, (enum instance_seen)seen);
                        struct provision_action a = { 0 };
                        bool registered = s >= INSTANCE_JOINED && s < INSTANCE_STOPPING;
                        /* The list lies: the host speaks. */
                        if (registered)
                                assert_int_equal(verb_of(&c, &i, T, NULL), NOTHING);
                        i.lost_since = registered ? T : 0;
                        assert_int_equal(verb_of(&c, &i, T, &a),
                                         s < INSTANCE_STOPPING ? PROVISION_STOP : NOTHING);
                        assert_int_equal(a.failed, s < INSTANCE_READY);
                }
}

static void test_absent(void **state) {
        struct provision_conf c = kit_conf(0, 10);

        c.idle_usec = HOUR;
        for (enum instance_state s = INSTANCE_STARTING; s <= INSTANCE_STOPPING; s++) {
                struct provision_instance i = in_state(s, SEEN_ABSENT);
                bool registered = s >= INSTANCE_JOINED && s < INSTANCE_STOPPING;
                i.absent = 2;
                if (registered)
                        assert_int_equal(verb_of(&c, &i, T + 2 * MINUTE, NULL), NOTHING); /* it speaks */
                i.lost_since = registered ? T : 0;
                if (s == INSTANCE_STOPPING) /* it is expected */
                        assert_int_equal(verb_of(&c, &i, T, NULL), PROVISION_FORGET);
                else
                        assert_int_equal(turns_at(&c, &i, T + MINUTE, PROVISION_FORGET).failed,
                                         s < INSTANCE_READY);
                i.absent = 1;
                assert_int_equal(verb_of(&c, &i, T + 2 * MINUTE, NULL), NOTHING);
                /* The lists before have said so, and none since. */
                i.absent = 9;
                i.seen = SEEN_NOT_ASKED;
                assert_int_equal(verb_of(&c, &i, T + 2 * MINUTE, NULL), NOTHING);
        }
        /* Nobody has said yes yet. */
        assert_int_equal(
                verb_of(&c,
                        &(struct provision_instance){
                                .state = INSTANCE_WANTED, .seen = SEEN_ABSENT, .absent = 9, .made = T },
                        T + 10 * MINUTE, NULL),
                NOTHING);
}

static void test_idle(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance i = in_state(INSTANCE_READY, SEEN_RUNNING), other;

        i.idle_since = T + MINUTE;
        assert_string_equal(turns_at(&c, &i, T + MINUTE + c.idle_usec, PROVISION_DRAIN).why,
                            "it has been empty for 20min");
        other = i;
        other.wanted = true;
        assert_int_equal(verb_of(&c, &other, T + HOUR, NULL), NOTHING);
        other = i;
        other.held = true;
        assert_int_equal(verb_of(&c, &other, T + HOUR, NULL), NOTHING);
        other = i;
        other.idle_since = 0;
        assert_int_equal(verb_of(&c, &other, T + HOUR, NULL), NOTHING);
        c.min = 1;
        assert_int_equal(verb_of(&c, &i, T + HOUR, NULL), NOTHING);
        c.min = 0;
        c.spare = 1;
        assert_int_equal(verb_of(&c, &i, T + HOUR, NULL), NOTHING);
}

static void test_min_life(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance i = in_state(INSTANCE_READY, SEEN_RUNNING);

        i.idle_since = T;
        c.min_life_usec = HOUR;
        (void)turns_at(&c, &i, T + HOUR, PROVISION_DRAIN);
}

/* READY since then because it was kept, and empty for longer: it is not drained at once when demand goes
 * again. */
static void test_kept_begins_anew(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance i = in_state(INSTANCE_READY, SEEN_RUNNING);

        i.made = i.idle_since = T - HOUR;
        (void)turns_at(&c, &i, T + c.idle_usec, PROVISION_DRAIN);
}

static void test_who_is_drained(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance list[6];
        /* The order in which they go. */
        static const uint32_t order[] = { 5, 3, 4, 1, 2, 0 };

        c.shapes[1] = (struct provision_shape){ .max = 10, .cost = 5000000 };
        c.n_shapes = 2;
        for (size_t k = 0; k < ELEMENTSOF(list); k++)
                list[k] = kit_ready(T, HOUR / 2);
        list[1].idle_since--;   /* empty for longer */
        list[2].made++;         /* newer */
        list[3].shape = 1;      /* dearer */
        list[4].shape = 1;      /* as dear, and empty for less long */
        list[4].idle_since++;   /* */
        list[5].failing = true; /* of no use */
        for (uint32_t n = 1; n <= ELEMENTSOF(list); n++) {
                struct provision_plan p;
                c.min = (uint32_t)ELEMENTSOF(list) - n;
                p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);
                assert_int_equal(kit_count(&p, PROVISION_DRAIN), n);
                for (uint32_t k = 0; k < n; k++)
                        assert_non_null(kit_action(&p, order[k]));
                provision_plan_done(&p);
        }
}

/* What fails is none of min and none of the spare ones, but of max. */
static void test_failing(void **state) {
        struct provision_conf c = kit_conf(1, 2);
        struct provision_instance i = kit_ready(T, 0);
        struct provision_plan p;

        i.failing = true;
        p = kit_decide(&c, &i, 1, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 1);
        provision_plan_done(&p);
        c.max = 1;
        p = kit_decide(&c, &i, 1, NULL, 0, T);
        assert_int_equal(p.n, 0);
        provision_plan_done(&p);
        /* So does what its provider takes back. */
        c.max = 2;
        i.failing = false;
        i.seen = SEEN_STOPPING;
        p = kit_decide(&c, &i, 1, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_UP), 1);
        provision_plan_done(&p);
}

static void test_draining(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance i = in_state(INSTANCE_DRAINING, SEEN_RUNNING), other;
        struct provision_action a;

        i.idle_since = T;
        assert_int_equal(verb_of(&c, &i, T, &a), PROVISION_STOP);
        assert_false(a.failed);
        other = i;
        other.idle_since = 0;
        assert_int_equal(verb_of(&c, &other, T + 10 * HOUR, NULL), NOTHING);
        other = i;
        other.wanted = true;
        assert_int_equal(verb_of(&c, &other, T, &a), PROVISION_KEEP);
        assert_string_equal(a.why, "it is wanted again");
        other.idle_since = 0;
        assert_int_equal(verb_of(&c, &other, T, &a), PROVISION_KEEP);
        c.max = 0;
        assert_int_equal(verb_of(&c, &other, T, &a), NOTHING); /* above max it is not brought back */
        other = i;
        other.held = true;
        assert_int_equal(verb_of(&c, &other, T, &a), PROVISION_KEEP);
        assert_string_equal(a.why, "a person keeps it");
        c.max = 10;
        c.min = 1;
        assert_int_equal(verb_of(&c, &i, T, &a), PROVISION_KEEP);
        assert_string_equal(a.why, "fewer would stay than have to");
        c.min = 0;
        c.spare = 1;
        assert_int_equal(verb_of(&c, &i, T, &a), PROVISION_KEEP);
        i.failing = true;
        assert_int_equal(verb_of(&c, &i, T, &a), PROVISION_STOP);
}

/* One is kept of three: who would have gone last. And nobody new is asked for. */
static void test_who_is_kept(void **state) {
        struct provision_conf c = kit_conf(1, 10);
        struct provision_instance list[3];
        struct provision_plan p;

        for (size_t k = 0; k < ELEMENTSOF(list); k++) {
                list[k] = kit_ready(T, HOUR);
                list[k].state = INSTANCE_DRAINING;
        }
        list[1].idle_since += MINUTE;
        p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);
        assert_int_equal(p.n, 3);
        assert_int_equal(kit_action(&p, 1)->verb, PROVISION_KEEP);
        assert_int_equal(kit_count(&p, PROVISION_STOP), 2);
        provision_plan_done(&p);
}

/* STOPPING counts as nothing, and nothing brings it back. */
static void test_stopping(void **state) {
        struct provision_conf c = kit_conf(1, 1);
        struct provision_instance i = in_state(INSTANCE_STOPPING, SEEN_STOPPING);
        struct provision_plan p;

        i.wanted = i.held = true;
        p = kit_decide(&c, &i, 1, NULL, 0, T + 10 * HOUR);
        assert_int_equal(p.n, 1);
        assert_int_equal(p.actions[0].verb, PROVISION_UP);
        assert_int_equal(p.actions[0].instance, UINT32_MAX);
        assert_true(p.cost == 1000000);
        provision_plan_done(&p);
}

/* One that does not go, however long it is asked, costs what it costs: no other is made beside it. */
static void test_stuck(void **state) {
        struct provision_conf c = kit_conf(1, 1);
        struct provision_instance i = in_state(INSTANCE_STOPPING, SEEN_RUNNING);
        struct provision_plan p;

        i.stuck = true;
        p = kit_decide(&c, &i, 1, NULL, 0, T + 10 * HOUR);
        assert_int_equal(p.n, 0);
        assert_true(p.cost == 1000000);
        provision_plan_done(&p);
        i.seen = SEEN_ABSENT;
        i.absent = 2;
        p = kit_decide(&c, &i, 1, NULL, 0, T + 10 * HOUR);
        assert_int_equal(p.n, 2);
        assert_int_equal(p.actions[0].verb, PROVISION_FORGET);
        assert_int_equal(p.actions[1].verb, PROVISION_UP);
        provision_plan_done(&p);
}

/* A person gives it back: that it is wanted, or one of those that have to be, does not keep it. */
static void test_leaves(void **state) {
        struct provision_conf c = kit_conf(1, 2);
        struct provision_instance i = in_state(INSTANCE_DRAINING, SEEN_RUNNING);

        i.wanted = i.leaves = true;
        assert_int_equal(verb_of(&c, &i, T, NULL), NOTHING);
        i.idle_since = T;
        assert_int_equal(verb_of(&c, &i, T, NULL), PROVISION_STOP);
        i.leaves = false;
        assert_int_equal(verb_of(&c, &i, T, NULL), PROVISION_KEEP);
}

static void test_held(void **state) {
        struct provision_conf c = kit_conf(0, 0);

        c.idle_usec = 1;
        for (enum instance_state s = INSTANCE_WANTED; s <= INSTANCE_STOPPING; s++)
                for (int seen = SEEN_NOT_ASKED; seen < _SEEN_MAX; seen++) {
                        struct provision_instance i = in_state(s, (enum instance_seen)seen);
                        int verb;
                        i.held = true;
                        i.idle_since = i.lost_since = T;
                        i.absent = 2;
                        verb = verb_of(&c, &i, T + 10 * HOUR, NULL);
                        if (seen == SEEN_ABSENT && s != INSTANCE_WANTED)
                                assert_int_equal(verb, PROVISION_FORGET);
                        else
                                assert_int_equal(verb, s == INSTANCE_DRAINING ? PROVISION_KEEP : NOTHING);
                }
}

/* max was lowered. On their way first, newest first; then empty ones; what is wanted last; never busy ones.
 */
static void test_above_max(void **state) {
        struct provision_instance list[] = {
                kit_busy(T),
                kit_ready(T, MINUTE),                      /* 4 */
                kit_ready(T, 2 * MINUTE),                  /* 3 */
                in_state(INSTANCE_STARTING, SEEN_PENDING), /* 2 */
                in_state(INSTANCE_WANTED, SEEN_NOT_ASKED), /* 1 */
                in_state(INSTANCE_JOINED, SEEN_RUNNING),   /* 5 */
                kit_ready(T, 3 * MINUTE),                  /* 6 */
        };
        static const uint32_t order[] = { 4, 3, 2, 1, 5, 6 };

        list[3].made = T - MINUTE;
        list[5].wanted = list[6].wanted = true;
        for (uint32_t max = 0; max <= ELEMENTSOF(list); max++) {
                struct provision_conf c = kit_conf(0, max);
                struct provision_plan p = kit_decide(&c, list, ELEMENTSOF(list), NULL, 0, T);
                uint32_t n = MIN((uint32_t)ELEMENTSOF(list) - max, (uint32_t)ELEMENTSOF(order));
                assert_int_equal(p.n, n);
                for (uint32_t k = 0; k < n; k++) {
                        const struct provision_action *a = kit_action(&p, order[k]);
                        assert_non_null(a);
                        assert_int_equal(a->verb, list[order[k]].state == INSTANCE_READY ? PROVISION_DRAIN
                                                                                         : PROVISION_STOP);
                        assert_false(a->failed);
                }
                provision_plan_done(&p);
        }
}

static void test_above_other_limits(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance list[] = { kit_ready(T, MINUTE), kit_ready(T, MINUTE),
                                             kit_ready(T, MINUTE) };
        struct provision_plan p;

        list[2].shape = 7;
        p = kit_decide(&c, list, 3, NULL, 0, T);
        assert_int_equal(p.n, 1);
        assert_string_equal(kit_action(&p, 2)->why, "its shape is not in the settings");
        provision_plan_done(&p);
        c.min = 3;
        p = kit_decide(&c, list, 3, NULL, 0, T);
        assert_int_equal(p.n, 0);
        provision_plan_done(&p);
        c.min = 0;
        list[2].shape = 0;
        c.shapes[0].max = 2;
        p = kit_decide(&c, list, 3, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_DRAIN), 1);
        assert_string_equal(p.actions[0].why, "there are more of its shape than may be");
        provision_plan_done(&p);
        c.shapes[0].max = 3;
        c.cost_max = 1000000;
        p = kit_decide(&c, list, 3, NULL, 0, T);
        assert_int_equal(kit_count(&p, PROVISION_DRAIN), 2);
        assert_string_equal(p.actions[0].why, "all cost more than they may");
        provision_plan_done(&p);
}

/* Not above max they come up, though nobody waits for them any more: they are there for what comes within
 * idle_usec. */
static void test_demand_that_goes(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct provision_instance i = in_state(INSTANCE_STARTING, SEEN_PENDING);

        assert_int_equal(verb_of(&c, &i, T + MINUTE, NULL), NOTHING);
}

static void test_what_stops_makes_room(void **state) {
        struct provision_conf c = kit_conf(0, 1);
        const struct provision_demand one = { .n = 1, .job = 3 };
        struct provision_instance i = kit_busy(T);
        struct provision_plan p;

        i.lost_since = T - HOUR;
        p = kit_decide(&c, &i, 1, &one, 1, T);
        assert_int_equal(p.n, 2);
        assert_int_equal(p.actions[0].verb, PROVISION_STOP);
        assert_int_equal(p.actions[1].verb, PROVISION_UP);
        assert_int_equal(p.actions[1].job, 3);
        provision_plan_done(&p);
        /* What is drained is there until that is over. */
        i = kit_ready(T, HOUR);
        p = kit_decide(&c, &i, 1, &one, 1, T);
        assert_int_equal(p.n, 1);
        assert_int_equal(p.actions[0].verb, PROVISION_DRAIN);
        assert_string_equal(p.refused[0], "1 more, with 1 of at most 1 instances there");
        provision_plan_done(&p);
}

/* A task was placed in the moment in which the host was to be drained, and one while it was drained. */
static void test_demand_that_returns(void **state) {
        struct provision_conf c = kit_conf(0, 10);
        struct kit_provider p;

        kit_provider_init(&p, &c, 4);
        kit_provider_step(&p, T, 1);
        kit_provider_step(&p, T + 2 * MINUTE, 1);
        kit_provider_step(&p, T + 3 * MINUTE, 0);
        kit_provider_step(&p, T + 23 * MINUTE - 1, 0);
        assert_int_equal(p.instances[0].state, INSTANCE_READY);
        kit_provider_step(&p, T + 23 * MINUTE, 1);
        assert_int_equal(p.did[PROVISION_DRAIN], 0);
        p.instances[0].state = INSTANCE_DRAINING;
        p.instances[0].idle_since = T;
        kit_provider_step(&p, T + 24 * MINUTE, 2); /* one placed there before, one that waits */
        assert_int_equal(p.did[PROVISION_KEEP], 1);
        assert_int_equal(p.did[PROVISION_STOP], 0);
        assert_int_equal(p.instances[0].state, INSTANCE_READY);
        assert_int_equal(p.did[PROVISION_UP], 2);
        kit_provider_done(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_nothing_at_all),
                cmocka_unit_test(test_start_timeout),
                cmocka_unit_test(test_joined_and_of_no_use),
                cmocka_unit_test(test_lost),
                cmocka_unit_test(test_listed_as_ended),
                cmocka_unit_test(test_absent),
                cmocka_unit_test(test_idle),
                cmocka_unit_test(test_min_life),
                cmocka_unit_test(test_kept_begins_anew),
                cmocka_unit_test(test_who_is_drained),
                cmocka_unit_test(test_failing),
                cmocka_unit_test(test_draining),
                cmocka_unit_test(test_who_is_kept),
                cmocka_unit_test(test_stopping),
                cmocka_unit_test(test_stuck),
                cmocka_unit_test(test_leaves),
                cmocka_unit_test(test_held),
                cmocka_unit_test(test_above_max),
                cmocka_unit_test(test_above_other_limits),
                cmocka_unit_test(test_demand_that_goes),
                cmocka_unit_test(test_what_stops_makes_room),
                cmocka_unit_test(test_demand_that_returns),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
