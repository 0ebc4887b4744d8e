/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Determined's documentation: two trials, ten checkpoints, smaller is better. */
#include "masterd/checkpoint/policy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N 10u

static struct checkpoint ten[N];

static void lay_out(bool smaller) {
        static const double values[N] = { NAN, NAN, 0.6, 0.5, 0.4, NAN, 0.2, 0.3, NAN, NAN };

        memset(ten, 0, sizeof(ten));
        for (uint32_t i = 0; i < N; i++)
                ten[i] = (struct checkpoint){ .id = i + 1,
                                              .facts = { .trial = i < 5 ? 0 : 1,
                                                         .step = 100 * (i % 5),
                                                         .value = smaller ? values[i] : -values[i],
                                                         .smaller = smaller } };
}

/* "10 8 7": the numbers of those that stay, the highest first. */
static void stay(uint32_t best, uint32_t trial_best, uint32_t trial_latest, const char *expected) {
        const struct checkpoint_policy p = { best, trial_best, trial_latest };
        struct checkpoint_choice list[N];
        char text[64] = "";

        for (uint32_t turn = 0; turn < N; turn++) { /* in whatever order they come */
                for (uint32_t i = 0; i < N; i++)
                        list[i] = (struct checkpoint_choice){ .checkpoint = ten + (i * 7 + turn) % N,
                                                              .stays = true };
                checkpoint_policy_choose(&p, list, N);
                *text = 0;
                for (uint64_t id = N; id > 0; id--)
                        for (uint32_t i = 0; i < N; i++)
                                if (list[i].checkpoint->id == id && list[i].stays)
                                        sprintf(text + strlen(text), "%s%u", *text ? " " : "", (unsigned)id);
                assert_string_equal(text, expected);
        }
}

static void try_table(void) {
        stay(0, 0, 0, "");
        stay(2, 0, 0, "8 7");
        stay(5, 0, 0, "8 7 5 4 3");
        stay(UINT32_MAX, 0, 0, "8 7 5 4 3");
        stay(0, 1, 0, "7 5");
        stay(0, 3, 0, "8 7 5 4 3");
        stay(0, UINT32_MAX, 0, "8 7 5 4 3");
        stay(0, 0, 1, "10 5");
        stay(0, 0, 3, "10 9 8 5 4 3");
        stay(2, 1, 0, "8 7 5");
        stay(2, 0, 1, "10 8 7 5");
        stay(0, 1, 1, "10 7 5");
        stay(2, 1, 1, "10 8 7 5");
}

static void test_table(void **state) {
        lay_out(true);
        try_table();
        lay_out(false); /* the highest is the best */
        try_table();
}

static void test_pinned(void **state) {
        lay_out(true);
        ten[0].pinned = ten[3].pinned = true;
        stay(0, 0, 0, "4 1");
        stay(1, 0, 1, "10 7 5 4 1"); /* and takes nobody's place */
}

/* Of equal ones the earlier step is the better one; a job without trials is one trial. */
static void test_equal(void **state) {
        lay_out(true);
        for (uint32_t i = 0; i < N; i++) {
                ten[i].facts.value = 1;
                ten[i].facts.step = i;
                ten[i].facts.trial = CHECKPOINT_NO_TRIAL;
        }
        stay(2, 0, 0, "2 1");
        stay(0, 1, 1, "10 1");
        for (uint32_t i = 0; i < N; i++)
                ten[i].facts.value = i % 2 ? INFINITY : -INFINITY;
        stay(1, 0, 0, "1");
}

static void test_none(void **state) {
        checkpoint_policy_choose(&(struct checkpoint_policy){ 1, 1, 1 }, NULL, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_pinned),
                cmocka_unit_test(test_equal),
                cmocka_unit_test(test_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
