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

static const struct blame_policy policy = {
        .threshold_milli = 5000, .half_life_usec = HOUR, .quarantine_usec = 600 * SEC, .users = 2
};

static enum blame_due strike_by(const struct blame_policy *p, struct blame *b, enum strike_kind kind,
                                uint32_t job, uint32_t user, bool alone, uint64_t now) {
        struct strike s = { .kind = (uint8_t)kind, .job = job, .user = user, .alone = alone };

        return blame_strike(p, b, &s, now);
}

/* Whether the host is out by it. */
static bool strike(struct blame *b, enum strike_kind kind, uint32_t job, uint32_t user, bool alone,
                   uint64_t now) {
        return strike_by(&policy, b, kind, job, user, alone, now) == BLAME_QUARANTINE;
}

/* One job, however often it fails, does not put a host out, nor do all of one user; of several users, few do.
 */
static void test_who_says_it(void **state) {
        struct blame b = {};

        for (int i = 0; i < 100; i++)
                assert_int_equal(strike_by(&policy, &b, STRIKE_EXECUTOR, 7, 1000, false, T0), BLAME_NOTHING);
        assert_true(blame_score(&policy, &b, T0) < 2000);
        b = (struct blame){};
        for (uint32_t job = 1; job <= 2; job++)
                assert_false(strike(&b, STRIKE_EXECUTOR, job, 1000 + job, false, T0));
        assert_true(strike(&b, STRIKE_EXECUTOR, 3, 1003, false, T0)); /* (1 + 1 + 1) × 2 */
        b = (struct blame){};
        for (uint32_t job = 1; job <= 2; job++)
                assert_false(strike(&b, STRIKE_EXECUTOR, job, 1000, false, T0));
        assert_false(strike(&b, STRIKE_EXECUTOR, 3, 1001, false, T0));
        assert_true(strike(&b, STRIKE_EXECUTOR, 4, 1001, false, T0)); /* two of each of two */
}

/* Whatever one user says, of every kind and of as many jobs as there is room for. */
static void test_one_user(void **state) {
        for (int kind = 0; kind < _STRIKE_MAX; kind++) {
                struct blame b = {};
                for (uint32_t job = 1; job <= 1000; job++)
                        assert_false(strike(&b, (enum strike_kind)kind, job, 1000, job % 2, T0 + job));
                assert_true(blame_score(&policy, &b, T0 + 1000) <= 1667);
                /* One failure of somebody else changes nothing of that, */
                assert_false(strike(&b, STRIKE_EXECUTOR, 2000, 1001, false, T0 + 1000));
                /* and nothing that is long over makes him two. */
                assert_false(strike(&b, (enum strike_kind)kind, 3000, 1000, false, T0 + 8 * HOUR));
        }
}

/* As many as the policy asks for, and not one fewer, each at the most that counts. */
static void test_users(void **state) {
        for (uint32_t users = 1; users <= 16; users++) {
                struct blame_policy p = policy;
                struct blame b = {};
                p.users = users;
                for (uint32_t u = 1; u <= users; u++) {
                        enum blame_due due = BLAME_NOTHING;
                        for (uint32_t i = 0; i < 2 && due != BLAME_QUARANTINE; i++)
                                due = strike_by(&p, &b, STRIKE_RULE, 10 * u + i, u, false, T0);
                        assert_int_equal(due == BLAME_QUARANTINE, u == users);
                }
        }
}

/* Nobody drives out what others say. */
static void test_room(void **state) {
        struct blame b = {};

        assert_false(strike(&b, STRIKE_LINK, 0, 0, false, T0));
        assert_false(strike(&b, STRIKE_EXECUTOR, 1, 1001, true, T0));
        for (uint32_t job = 10; job < 1000; job++)
                assert_false(strike(&b, STRIKE_EXECUTOR, job, 1000, true, T0));
        assert_int_equal(b.n_strikes, BLAME_STRIKES_MAX);
        assert_int_equal(b.strikes[0].kind, STRIKE_LINK);
        assert_int_equal(b.strikes[1].user, 1001);
        assert_int_equal(b.strikes[BLAME_STRIKES_MAX - 1].job, 999);
}

/* The host is kept from who has trouble there, for longer each time, until one of his jobs does well. */
static void test_shun(void **state) {
        struct blame b = {};
        uint64_t now = T0, until;

        assert_int_equal(strike_by(&policy, &b, STRIKE_RULE, 1, 1000, false, now), BLAME_NOTHING);
        assert_int_equal(strike_by(&policy, &b, STRIKE_RULE, 2, 1000, false, now), BLAME_SHUN);
        assert_int_equal(blame_shunned(&b, 1000, now), 0);
        for (unsigned n = 0; n < 10; n++) {
                until = blame_shun(&policy, &b, 1000, now);
                assert_true(until == now + MIN(600 * SEC << n, BLAME_QUARANTINE_MAX));
                assert_true(blame_shunned(&b, 1000, until - 1) == until);
                assert_int_equal(blame_shunned(&b, 1000, until), 0);
                assert_int_equal(blame_shunned(&b, 1001, now), 0);
                /* What still ran there says nothing new. */
                assert_int_equal(strike_by(&policy, &b, STRIKE_RULE, 10 + n, 1000, false, now),
                                 BLAME_NOTHING);
                assert_false(blame_reconcile(&b, 1000, now));
                now = until;
        }
        assert_int_equal(strike_by(&policy, &b, STRIKE_EXECUTOR, 3, 1001, false, now), BLAME_NOTHING);
        assert_false(blame_reconcile(&b, 1001, now));
        assert_true(blame_reconcile(&b, 1000, now));
        assert_int_equal(b.n_shuns, 0);
        assert_int_equal(b.n_strikes, 1); /* the other's */
        assert_int_equal(strike_by(&policy, &b, STRIKE_RULE, 4, 1000, false, now), BLAME_NOTHING);
        assert_true(blame_shun(&policy, &b, 1000, now) == now + 600 * SEC); /* it begins anew, */
        now += 2 * BLAME_QUARANTINE_MAX;
        assert_true(blame_shun(&policy, &b, 1000, now) == now + 600 * SEC); /* also after long enough */
        for (uint32_t user = 1; user <= 2 * BLAME_SHUNS_MAX; user++)
                (void)blame_shun(&policy, &b, user, now + user);
        assert_int_equal(b.n_shuns, BLAME_SHUNS_MAX);
        assert_true(blame_shunned(&b, 2 * BLAME_SHUNS_MAX, now) > 0);
}

/* A job that runs nowhere else cannot tell whose fault it is; the same holds when it vanished. */
static void test_alone(void **state) {
        struct blame b = {};

        for (uint32_t job = 1; job <= 19; job++)
                assert_int_equal(strike_by(&policy, &b, STRIKE_EXECUTOR, job, 1000, true, T0), BLAME_NOTHING);
        assert_int_equal(strike_by(&policy, &b, STRIKE_EXECUTOR, 20, 1000, true, T0), BLAME_SHUN);
        b = (struct blame){};
        assert_false(strike(&b, STRIKE_NO_RECORD, 1, 1000, true, T0));
        assert_int_equal(blame_score(&policy, &b, T0), 500);
}

static void test_fades(void **state) {
        struct blame b = {};

        for (int i = 0; i < 3; i++)
                assert_false(strike(&b, STRIKE_LINK, 0, 0, false, T0));
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
        assert_int_equal(b.n_strikes, 2); /* what the job is not to blame for stays */
        assert_false(blame_withdraw(&b, 1));
        assert_false(blame_withdraw(&b, 3));
        assert_false(blame_withdraw_kind(&b, STRIKE_PROLOG));
        (void)strike(&b, STRIKE_PROLOG, 4, 1000, false, T0);
        assert_true(blame_withdraw_kind(&b, STRIKE_PROLOG));
        assert_int_equal(b.n_strikes, 2);
}

static void test_quarantine(void **state) {
        struct blame b = {};
        uint64_t now = T0;

        assert_false(strike(&b, STRIKE_RULE, 1, 1000, false, now));
        assert_true(strike(&b, STRIKE_RULE, 2, 1001, false, now));
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
                /* The first failure of a second user is one too many, whatever the score. */
                assert_false(strike(&b, STRIKE_EXECUTOR, 4, 1000, true, now));
                assert_false(strike(&b, STRIKE_EXECUTOR, 5, 1000, true, now));
                assert_true(strike(&b, STRIKE_EXECUTOR, 6, 1001, true, now));
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
                assert_int_equal(strike_by(&off, &b, STRIKE_RULE, i, i, false, T0), BLAME_NOTHING);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_says_it), cmocka_unit_test(test_one_user),
                cmocka_unit_test(test_users),       cmocka_unit_test(test_room),
                cmocka_unit_test(test_shun),        cmocka_unit_test(test_alone),
                cmocka_unit_test(test_fades),       cmocka_unit_test(test_withdraw),
                cmocka_unit_test(test_quarantine),  cmocka_unit_test(test_off),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
