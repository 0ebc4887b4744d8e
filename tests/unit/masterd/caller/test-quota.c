/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/caller/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/clock.h"

#define NOW (1000 * USEC_PER_SEC)
#define ML 1000u
#define EVE 1001u

static int setup(void **state) {
        return quota_new((struct quota **)state);
}

static int teardown(void **state) {
        quota_free(*state);
        return 0;
}

static enum quota_verdict admit(struct quota *q, uint32_t uid, uint64_t now) {
        uint64_t usec;

        return quota_admit(q, uid, now, &usec);
}

static void test_calls(void **state) {
        struct quota *q = *state;

        for (unsigned i = 0; i < QUOTA_CALLS; i++) {
                assert_int_equal(admit(q, EVE, NOW), QUOTA_FREE);
                quota_wait(q, EVE, 100, NOW);
                quota_wait(q, 0, 100, NOW);
        }
        assert_int_equal(admit(q, EVE, NOW), QUOTA_CALLS_WAIT);
        assert_int_equal(admit(q, EVE, NOW + 3600 * USEC_PER_SEC), QUOTA_CALLS_WAIT);
        assert_int_equal(admit(q, ML, NOW), QUOTA_FREE);
        assert_int_equal(admit(q, 0, NOW), QUOTA_FREE);
        quota_waited(q, EVE, 100);
        assert_int_equal(admit(q, EVE, NOW), QUOTA_FREE);

        /* By bytes: one call may have more, and then it is the only one. */
        quota_wait(q, ML, 4 * QUOTA_BYTES, NOW);
        assert_int_equal(admit(q, ML, NOW), QUOTA_CALLS_WAIT);
        quota_waited(q, ML, 4 * QUOTA_BYTES);
        assert_int_equal(admit(q, ML, NOW), QUOTA_FREE);
        quota_waited(q, ML, 1);
        quota_waited(q, 77, 1);
}

static void test_time(void **state) {
        struct quota *q = *state;
        uint64_t usec;

        /* What was saved up, and a debt on top of it. */
        quota_charge(q, EVE, QUOTA_USEC_BURST - 1, 0, NOW);
        assert_int_equal(admit(q, EVE, NOW), QUOTA_FREE);
        quota_charge(q, EVE, QUOTA_USEC_RATE, 0, NOW);
        assert_int_equal(quota_admit(q, EVE, NOW, &usec), QUOTA_TIME_USED);
        assert_in_range(usec, USEC_PER_SEC - 10, USEC_PER_SEC + 10);
        assert_int_equal(admit(q, ML, NOW), QUOTA_FREE);
        assert_int_equal(admit(q, EVE, NOW + usec / 2), QUOTA_TIME_USED);
        assert_int_equal(admit(q, EVE, NOW + usec), QUOTA_FREE);

        /* No more is saved up than that, however long it takes; a clock that stands still gives nothing. */
        quota_charge(q, EVE, QUOTA_USEC_BURST, 0, NOW + 3600 * USEC_PER_SEC);
        assert_int_equal(admit(q, EVE, NOW + 3600 * USEC_PER_SEC), QUOTA_TIME_USED);
        quota_charge(q, EVE, UINT64_MAX, 0, NOW + 3600 * USEC_PER_SEC); /* a minute's worth */
        assert_int_equal(quota_admit(q, EVE, NOW + 3600 * USEC_PER_SEC, &usec), QUOTA_TIME_USED);
        assert_true(usec <= 301 * USEC_PER_SEC);

        /* In the long run it is a fifth, asked however often. */
        uint64_t taken = 0, now = NOW + 7200 * USEC_PER_SEC;
        for (unsigned i = 0; i < 100000; i++, now += 1000)
                if (admit(q, EVE, now) == QUOTA_FREE) {
                        quota_charge(q, EVE, 3000, 0, now);
                        taken += 3000;
                }
        assert_in_range(taken, 100 * QUOTA_USEC_RATE, 100 * QUOTA_USEC_RATE + QUOTA_USEC_BURST + 3000);
}

static void test_answers(void **state) {
        struct quota *q = *state;
        uint64_t usec;

        quota_charge(q, EVE, 0, QUOTA_ANSWER_BURST, NOW);
        assert_int_equal(quota_admit(q, EVE, NOW, &usec), QUOTA_ANSWERS_BIG);
        assert_true(usec < USEC_PER_SEC / 1000);
        quota_charge(q, EVE, 0, 10 * QUOTA_ANSWER_RATE, NOW);
        assert_int_equal(admit(q, EVE, NOW + 9 * USEC_PER_SEC), QUOTA_ANSWERS_BIG);
        assert_int_equal(admit(q, EVE, NOW + 11 * USEC_PER_SEC), QUOTA_FREE);
        quota_charge(q, 0, 0, SIZE_MAX / 2, NOW);
        assert_int_equal(admit(q, 0, NOW), QUOTA_FREE);
}

/* Any number of users; who has something under way is not forgotten. */
static void test_many(void **state) {
        struct quota *q = *state;

        for (unsigned i = 0; i < QUOTA_CALLS; i++)
                quota_wait(q, EVE, 1, NOW);
        for (uint32_t uid = 2000; uid < 2000 + 3 * QUOTA_USERS; uid++)
                quota_charge(q, uid, 10, 10, NOW);
        assert_int_equal(admit(q, EVE, NOW), QUOTA_CALLS_WAIT);
}

int main(void) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = { TEST(test_calls), TEST(test_time), TEST(test_answers),
                                            TEST(test_many) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
