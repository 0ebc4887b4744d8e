/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is. That nobody starves, whoever holds what, is test-sharing.c of executor/feed, in random
 * worlds. */
#include "masterd/data/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const uint64_t now = UINT64_C(1000) * 1000 * 1000;

static void wants(struct takers *s, struct taker *t, uint32_t credits) {
        takers_say(s, t,
                   &(struct taker_word){
                           .credits = credits, .speaks = true, .open = true, .idle = t->n_unread == 0 },
                   now);
}

/* Few tasks are spread over all who want some, in the order in which they came. */
static void test_few_are_spread(void **state) {
        struct takers s = {};
        struct taker t[3] = {};
        struct takers_turn u = takers_begin(3, 3, now);
        uint32_t n;

        for (size_t i = 0; i < 3; i++)
                wants(&s, t + i, 100);
        for (size_t i = 0; i < 3; i++) {
                assert_ptr_equal(takers_next(&s, &u, &n), t + i);
                assert_int_equal(n, 1);
                takers_gave(&s, &u, t + i, n);
                t[i].n_unread += n;
        }
        assert_int_equal(u.pending, 0);
        assert_int_equal(s.credits, 3 * 99);
}

/* Many go in few messages: as much as he takes at once, no more than is good for him. */
static void test_many_at_once(void **state) {
        struct takers s = {};
        struct taker t[2] = {};
        struct takers_turn u = takers_begin(100000, 2, now);
        uint32_t n;

        wants(&s, t, 5);
        wants(&s, t + 1, 100000);
        assert_ptr_equal(takers_next(&s, &u, &n), t);
        assert_int_equal(n, 5);
        takers_gave(&s, &u, t, n);
        assert_int_equal(t[0].list, TAKER_OUT);
        assert_ptr_equal(takers_next(&s, &u, &n), t + 1);
        assert_int_equal(n, TAKERS_CREDITS_MAX);
        takers_gave(&s, &u, t + 1, n);
        assert_null(takers_next(&s, &u, &n));
        assert_false(takers_any(&s));
        assert_int_equal(s.credits, 0);
}

/* Small tasks are read faster than it is told: one that has read all that is known to be with it asks for
 * many, to save messages, and does not get all that is left. */
static void test_rest_is_for_all(void **state) {
        struct takers s = {};
        struct taker t[2] = {};
        struct takers_turn u = takers_begin(40, 2, now);
        uint32_t n;

        wants(&s, t, 2);
        takers_say(&s, t, &(struct taker_word){ .credits = 64, .speaks = true, .open = true }, now);
        assert_ptr_equal(takers_next(&s, &u, &n), t);
        assert_int_equal(n, 10);
        t[0].n_unread = n;
        takers_gave(&s, &u, t, n);
        assert_null(takers_next(&s, &u, &n));
}

/* Who waits and has nothing at hand comes first, also where he holds more than anybody. */
static void test_starved_first(void **state) {
        const struct taker_word starved = {
                .credits = 8, .unserved = 2, .hungry = 2, .speaks = true, .open = true
        };
        struct takers s = {};
        struct taker t[2] = {};
        struct takers_turn u = takers_begin(10, 2, now);
        uint32_t n;

        wants(&s, t, 8);
        t[1].n_unread = 1000;
        takers_say(&s, t + 1, &starved, now);
        assert_int_equal(s.n_hungry, 1);
        assert_ptr_equal(takers_next(&s, &u, &n), t + 1);
        assert_int_equal(n, 2);
        takers_gave(&s, &u, t + 1, n);
        assert_int_equal(t[1].unserved, 0);
        assert_ptr_equal(takers_next(&s, &u, &n), t);
        takers_out(&s, t + 1);
        assert_int_equal(s.n_hungry, 0);
}

/* Who holds unread tasks enough is set aside until he says anything; one of the release before, who cannot
 * say that somebody waits, for a second at most. */
static void test_set_aside(void **state) {
        struct takers s = {};
        struct taker t = { .n_unread = 50 };
        struct takers_turn u = takers_begin(4, 1, now);
        uint32_t n;

        wants(&s, &t, 8);
        assert_null(takers_next(&s, &u, &n));
        assert_int_equal(t.list, TAKER_ASIDE);
        assert_true(takers_any(&s));
        assert_true(takers_due(&s) == UINT64_MAX); /* he speaks */
        u = takers_begin(4, 1, now + 10 * TAKERS_PATIENCE_USEC);
        assert_null(takers_next(&s, &u, &n));
        t.n_unread = 0;
        wants(&s, &t, 8);
        u = takers_begin(4, 1, now);
        assert_ptr_equal(takers_next(&s, &u, &n), &t);
        takers_out(&s, &t);

        t = (struct taker){ .n_unread = 50 };
        takers_say(&s, &t, &(struct taker_word){ .credits = 8, .open = true }, now);
        u = takers_begin(4, 1, now);
        assert_null(takers_next(&s, &u, &n));
        assert_true(takers_due(&s) == now + TAKERS_PATIENCE_USEC);
        u = takers_begin(4, 1, takers_due(&s));
        assert_ptr_equal(takers_next(&s, &u, &n), &t);
        assert_int_equal(n, 1);
}

/* One that cannot be reached, or takes nothing, gets nothing. */
static void test_closed(void **state) {
        struct takers s = {};
        struct taker t = {};
        struct takers_turn u = takers_begin(4, 1, now);
        uint32_t n;

        takers_say(&s, &t, &(struct taker_word){ .credits = 8, .hungry = 1, .unserved = 1, .speaks = true },
                   now);
        assert_int_equal(t.list, TAKER_OUT);
        assert_int_equal(s.n_hungry, 0);
        assert_null(takers_next(&s, &u, &n));
        wants(&s, &t, 0);
        assert_null(takers_next(&s, &u, &n));
        assert_false(takers_any(&s));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_few_are_spread),  cmocka_unit_test(test_many_at_once),
                cmocka_unit_test(test_rest_is_for_all), cmocka_unit_test(test_starved_first),
                cmocka_unit_test(test_set_aside),       cmocka_unit_test(test_closed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
