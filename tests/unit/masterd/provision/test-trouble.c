/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/provision-kit.h"

#define T KIT_NOW
#define MINUTE KIT_MINUTE

static void test_three_within_half_an_hour(void **state) {
        struct provision_trouble t = { 0 };

        assert_false(provision_blocked(&t, T));
        provision_failed(&t, "quota", T);
        provision_failed(&t, "quota", T + 1);
        assert_false(provision_blocked(&t, T + 1));
        provision_failed(&t, "the quota is used up", T + 30 * MINUTE);
        assert_true(provision_blocked(&t, T + 30 * MINUTE));
        assert_true(provision_blocked(&t, T + 31 * MINUTE - 1));
        assert_false(provision_blocked(&t, T + 31 * MINUTE));
        assert_string_equal(t.why, "the quota is used up");
        assert_false(t.unavailable);
}

static void test_three_over_more_than_that(void **state) {
        struct provision_trouble t = { 0 };

        for (int i = 0; i < 10; i++)
                provision_failed(&t, "no", T + (uint64_t)i * (15 * MINUTE + 1));
        assert_int_equal(t.backoffs, 0);
        assert_true(t.blocked_until == 0);
}

static void test_back_off(void **state) {
        static const uint32_t minutes[] = { 1, 2, 4, 8, 16, 30, 30, 30 };
        struct provision_trouble t = { 0 };
        uint64_t now = T;

        provision_failed(&t, "no", now);
        provision_failed(&t, "no", now);
        for (size_t i = 0; i < ELEMENTSOF(minutes); i++) {
                provision_failed(&t, "no", now);
                assert_true(t.blocked_until == now + minutes[i] * MINUTE);
                /* It takes a while until one counts as failed: longer than half an hour for three. */
                now = t.blocked_until + 20 * MINUTE;
                assert_false(provision_blocked(&t, now));
        }
        provision_succeeded(&t);
        assert_false(provision_blocked(&t, 0));
        assert_int_equal(t.backoffs, 0);
        assert_string_equal(t.why, "");
        provision_failed(&t, "no", now);
        provision_failed(&t, "no", now);
        assert_false(provision_blocked(&t, now));
        provision_failed(&t, "no", now);
        assert_true(t.blocked_until == now + MINUTE);
}

/* A hundred that were asked for together and fail together. */
static void test_many_at_once(void **state) {
        struct provision_trouble t = { 0 };

        for (uint64_t i = 0; i < 100; i++)
                provision_failed(&t, "no", T + i);
        assert_int_equal(t.backoffs, 1);
        assert_true(t.blocked_until == T + 2 + MINUTE);
}

static void test_success_ends_a_block(void **state) {
        struct provision_trouble t = { 0 };

        for (int i = 0; i < 3; i++)
                provision_failed(&t, "no", T);
        provision_succeeded(&t);
        assert_false(provision_blocked(&t, T));
}

static void test_out_of_stock(void **state) {
        struct provision_trouble t = { 0 };

        provision_unavailable(&t, "no capacity", T);
        assert_true(t.unavailable);
        assert_true(provision_blocked(&t, T + 30 * MINUTE - 1));
        assert_false(provision_blocked(&t, T + 30 * MINUTE));
        /* One that was asked for before comes up: there are none, nevertheless. */
        provision_succeeded(&t);
        assert_true(provision_blocked(&t, T + 1));
        assert_string_equal(t.why, "no capacity");
        /* It is over: what follows is another reason. */
        provision_failed(&t, "no", T + 40 * MINUTE);
        assert_false(t.unavailable);
        assert_false(provision_blocked(&t, T + 40 * MINUTE));
        assert_string_equal(t.why, "no");
}

static void test_later(void **state) {
        struct provision_trouble t = { 0 };

        provision_later(&t, 5 * MINUTE, "rate limit", T);
        assert_false(t.unavailable);
        assert_true(provision_blocked(&t, T + 5 * MINUTE - 1));
        provision_later(&t, MINUTE, "rate limit", T);
        assert_true(t.blocked_until == T + 5 * MINUTE);
        provision_succeeded(&t);
        assert_true(provision_blocked(&t, T + 1));
        assert_false(provision_blocked(&t, T + 5 * MINUTE));
        provision_later(&t, UINT64_MAX, "for ever", T);
        assert_true(t.blocked_until == UINT64_MAX);
}

static void test_stock_is_the_better_reason(void **state) {
        struct provision_trouble t = { 0 };

        provision_unavailable(&t, "no capacity", T);
        provision_later(&t, MINUTE, "rate limit", T);
        assert_true(t.blocked_until == T + 30 * MINUTE);
        assert_true(t.unavailable);
        assert_string_equal(t.why, "no capacity");
}

static void test_what_a_program_says(void **state) {
        char text[1000];
        struct provision_trouble t = { 0 };

        memset(text, 'x', sizeof(text));
        text[sizeof(text) - 1] = 0;
        memcpy(text, "a\nb\377\033[31m", 9);
        provision_failed(&t, text, T);
        assert_true(strlen(t.why) == PROVISION_WHY_MAX - 1);
        for (const char *p = t.why; *p; p++)
                assert_true(*p >= ' ' && *p < 0x7f);
        provision_failed(&t, NULL, T);
        assert_string_equal(t.why, "");
        /* Not cut in a character. */
        memset(text, 'x', PROVISION_WHY_MAX - 2);
        memcpy(text + PROVISION_WHY_MAX - 2, "\303\274", 3);
        provision_unavailable(&t, text, T);
        assert_int_equal(strlen(t.why), PROVISION_WHY_MAX - 2);
}

static void test_a_clock_that_is_put_back(void **state) {
        struct provision_trouble t = { 0 };

        for (int i = 0; i < 3; i++)
                provision_failed(&t, "no", T - (uint64_t)i * KIT_HOUR);
        assert_true(provision_blocked(&t, T - 2 * KIT_HOUR));
        assert_true(t.blocked_until == T - 2 * KIT_HOUR + MINUTE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_three_within_half_an_hour),
                cmocka_unit_test(test_three_over_more_than_that),
                cmocka_unit_test(test_back_off),
                cmocka_unit_test(test_many_at_once),
                cmocka_unit_test(test_success_ends_a_block),
                cmocka_unit_test(test_out_of_stock),
                cmocka_unit_test(test_later),
                cmocka_unit_test(test_stock_is_the_better_reason),
                cmocka_unit_test(test_what_a_program_says),
                cmocka_unit_test(test_a_clock_that_is_put_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
