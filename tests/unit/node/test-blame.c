/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/node/blame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define SEC USEC_PER_SEC
#define HOUR (3600 * SEC)
#define T0 (1000 * HOUR)

static const struct blame_policy policy = { .threshold_milli = 5000,
                                            .half_life_usec = HOUR,
                                            .quarantine_usec = 600 * SEC };

static bool strike(struct blame *b, enum strike_kind kind, uint32_t job, uint32_t user, bool alone,
                   uint64_t now) {
        return blame_strike(
                &policy, b,
                &(struct strike){ .kind = (uint8_t)kind, .job = job, .user = user, .alone = alone }, now);
}

/* One job, however often it fails, does not put a host out; several do, and of several users sooner. */
static void test_who_says_it(void **state) {
        struct blame b = {};

        for (int i = 0; i < 100; i++)
                assert_false(strike(&b, STRIKE_EXECUTOR, 7, 1000, false, T0));
        assert_true(blame_score(&policy, &b, T0) < 2000);
        b = (struct blame){};
        for (uint32_t job = 1; job <= 4; job++)
                assert_false(strike(&b, STRIKE_EXECUTOR, job, 1000, false, T0));
        assert_true(strike(&b, STRIKE_EXECUTOR, 5, 1000, false, T0));
        b = (struct blame){};
        for (uint32_t job = 1; job <= 2; job++)
                assert_false(strike(&b, STRIKE_EXECUTOR, job, 1000 + job, false, T0));
        assert_true(strike(&b, STRIKE_EXECUTOR, 3, 1003, false, T0)); /* (1 + 1 + 1) × 2 */
}

/* A job that runs nowhere else cannot tell whose fault it is. */
static void test_alone(void **state) {
        struct blame b = {};

        for (uint32_t job = 1; job <= 19; job++)
                assert_false(strike(&b, STRIKE_EXECUTOR, job, 1000, true, T0));
        assert_true(strike(&b, STRIKE_EXECUTOR, 20, 1000, true, T0));
        b = (struct blame){};
        assert_false(strike(&b, STRIKE_NO_RECORD, 1, 1000, true, T0));
        assert_int_equal(blame_score(&policy, &b, T0), 2000); /* that says something all the same */
}

static void test_fades(void **state) {
        struct blame b = {};

        assert_false(strike(&b, STRIKE_RULE, 1, 1000, false, T0));
        assert_int_equal(blame_score(&policy, &b, T0), 3000);
        assert_int_equal(blame_score(&policy, &b, T0 + HOUR / 2), 2250);
        assert_int_equal(blame_score(&policy, &b, T0 + HOUR), 1500);
        assert_int_equal(blame_score(&policy, &b, T0 + 2 * HOUR), 750);
        assert_int_equal(blame_score(&policy, &b, T0 + 40 * HOUR), 0);
        assert_int_equal(blame_score(&policy, &b, T0 - HOUR), 3000); /* the clock went back */
        /* A host that is lost once a day is never out, one that is every few minutes is. */
        b = (struct blame){};
        for (uint64_t day = 0; day < 100; day++)
                assert_false(strike(&b, STRIKE_LINK, 0, 0, false, T0 + day * 24 * HOUR));
        b = (struct blame){};
        for (uint64_t i = 0; i < 5; i++)
                assert_false(strike(&b, STRIKE_LINK, 0, 0, false, T0 + i * 300 * SEC));
        assert_true(strike(&b, STRIKE_LINK, 0, 0, false, T0 + 1500 * SEC));
}

static void test_withdraw(void **state) {
        char text[BLAME_TEXT_MAX];
        struct blame b = {};

        (void)strike(&b, STRIKE_EXECUTOR, 1, 1000, false, T0);
        (void)strike(&b, STRIKE_BUS, 1, 1000, false, T0);
        (void)strike(&b, STRIKE_RULE, 1, 1000, false, T0);
        (void)strike(&b, STRIKE_NO_RECORD, 1, 1000, false, T0);
        (void)strike(&b, STRIKE_EXECUTOR, 2, 1001, false, T0);
        assert_string_equal(blame_text(&b, text),
                            "2 jobs of 2 users: 2 failed executors, 1 executors gone without a record, "
                            "1 SIGBUS, 1 by exitCodes");
        assert_true(blame_withdraw(&b, 1));
        assert_int_equal(b.n_strikes, 3); /* what the job is not to blame for stays */
        assert_false(blame_withdraw(&b, 1));
        assert_false(blame_withdraw(&b, 3));
        assert_false(blame_withdraw_kind(&b, STRIKE_PROLOG));
        (void)strike(&b, STRIKE_PROLOG, 4, 1000, false, T0);
        assert_true(blame_withdraw_kind(&b, STRIKE_PROLOG));
        assert_int_equal(b.n_strikes, 3);
}

static void test_quarantine(void **state) {
        struct blame b = {};
        uint64_t now = T0;

        assert_false(strike(&b, STRIKE_RULE, 1, 1000, false, now));
        assert_true(strike(&b, STRIKE_RULE, 2, 1000, false, now));
        for (unsigned n = 0; n < 12; n++) {
                uint64_t expected = MIN(600 * SEC << n, BLAME_QUARANTINE_MAX);
                blame_quarantine(&policy, &b, now);
                assert_int_equal(b.state, BLAME_QUARANTINED);
                assert_true(b.until == now + expected);
                assert_false(strike(&b, STRIKE_RULE, 3, 1000, false, now)); /* out already */
                assert_false(blame_probe(&b, now + expected - 1));
                now += expected;
                assert_true(blame_probe(&b, now));
                assert_int_equal(b.state, BLAME_PROBATION);
                now += 10 * HOUR;
                /* The first failure is one too many, whatever the score. */
                assert_true(strike(&b, STRIKE_EXECUTOR, 4, 1000, true, now));
        }
        blame_release(&b, now);
        assert_int_equal(b.state, BLAME_CLEAR);
        assert_int_equal(b.n_strikes, 0);
        assert_false(strike(&b, STRIKE_EXECUTOR, 4, 1000, true, now));
        blame_quarantine(&policy, &b, now);
        assert_true(b.until == now + 600 * SEC); /* it begins anew */
}

static void test_off(void **state) {
        struct blame_policy off = { .half_life_usec = HOUR, .quarantine_usec = SEC };
        struct blame b = {};

        for (uint32_t i = 0; i < 100; i++)
                assert_false(blame_strike(&off, &b, &(struct strike){ .kind = STRIKE_RULE, .job = i }, T0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_says_it), cmocka_unit_test(test_alone),
                cmocka_unit_test(test_fades),       cmocka_unit_test(test_withdraw),
                cmocka_unit_test(test_quarantine),  cmocka_unit_test(test_off),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
