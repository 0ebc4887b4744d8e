/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/verdict.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

/* One role: wanted, percent, succeeded, failed. */
static void test_one_role(void **state) {
        static const struct {
                uint32_t wanted, percent, succeeded, failed;
                enum verdict verdict;
        } table[] = {
                { 4, 100, 0, 0, VERDICT_GO_ON },
                { 4, 100, 3, 0, VERDICT_GO_ON },
                { 4, 100, 4, 0, VERDICT_SUCCEEDED },
                { 4, 100, 3, 1, VERDICT_FAILED },
                { 4, 100, 0, 4, VERDICT_FAILED },
                { 4, 100, 0, 3, VERDICT_GO_ON },
                /* rounded up */
                { 3, 50, 1, 0, VERDICT_GO_ON },
                { 3, 50, 2, 0, VERDICT_SUCCEEDED },
                { 3, 50, 1, 2, VERDICT_FAILED },
                { 3, 50, 2, 1, VERDICT_SUCCEEDED },
                { 1000, 1, 9, 0, VERDICT_GO_ON },
                { 1000, 1, 10, 0, VERDICT_SUCCEEDED },
                { 2, 1, 0, 1, VERDICT_GO_ON },
                { 2, 1, 1, 0, VERDICT_SUCCEEDED },
                { 100, 99, 98, 1, VERDICT_GO_ON },
                { 100, 99, 99, 0, VERDICT_SUCCEEDED },
                { 100000, 100, 99999, 0, VERDICT_GO_ON },
                { UINT32_MAX, 100, UINT32_MAX - 1, 0, VERDICT_GO_ON },
                { UINT32_MAX, 100, UINT32_MAX, 0, VERDICT_SUCCEEDED },
                /* all roles optional: over when all have ended, however */
                { 2, 0, 0, 0, VERDICT_GO_ON },
                { 2, 0, 1, 0, VERDICT_GO_ON },
                { 2, 0, 0, 2, VERDICT_SUCCEEDED },
                { 2, 0, 1, 1, VERDICT_SUCCEEDED },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct role_count r = { "worker", table[i].wanted, table[i].percent, table[i].succeeded,
                                        table[i].failed };
                size_t role = SIZE_MAX;
                char text[VERDICT_TEXT_MAX] = "untouched";
                assert_int_equal(verdict_of(&r, 1, &role, text), table[i].verdict);
                assert_int_equal(strcmp(text, "untouched") == 0, table[i].verdict == VERDICT_GO_ON);
        }
}

/* Failed as soon as so many have, also before the others have ended; and also where the role is optional. */
static void test_fail_percent(void **state) {
        static const struct {
                uint32_t wanted, percent, fail_percent, succeeded, failed;
                enum verdict verdict;
        } table[] = {
                { 4, 50, 50, 0, 1, VERDICT_GO_ON },      { 4, 50, 50, 0, 2, VERDICT_FAILED },
                { 4, 50, 50, 1, 2, VERDICT_FAILED },     { 4, 50, 51, 0, 2, VERDICT_GO_ON },
                { 4, 0, 25, 0, 1, VERDICT_FAILED },      { 4, 50, 1, 0, 0, VERDICT_GO_ON },
                { 4, 50, 1, 2, 0, VERDICT_SUCCEEDED },   { 4, 50, 100, 0, 3, VERDICT_GO_ON },
                { 0, 100, 50, 0, 0, VERDICT_SUCCEEDED }, /* all of it was left out */
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct role_count r = { "worker",           table[i].wanted, table[i].percent,
                                        table[i].succeeded, table[i].failed, table[i].fail_percent };
                size_t role = SIZE_MAX;
                char text[VERDICT_TEXT_MAX];
                assert_int_equal(verdict_of(&r, 1, &role, text), table[i].verdict);
        }
}

static void test_roles_together(void **state) {
        static const struct {
                struct role_count roles[3];
                enum verdict verdict;
                const char *text;
        } table[] = {
                /* the workers decide, a ps that is asked for nothing is stopped */
                { { { "ps", 1, 0, 0, 0 }, { "worker", 3, 100, 3, 0 }, { "evaluator", 1, 0, 0, 0 } },
                  VERDICT_SUCCEEDED,
                  "every required role succeeded" },
                { { { "ps", 1, 0, 0, 1 }, { "worker", 3, 100, 2, 0 }, { "evaluator", 1, 0, 1, 0 } },
                  VERDICT_GO_ON,
                  "" },
                /* one that is reached does not hide another that cannot be any more */
                { { { "ps", 1, 100, 1, 0 }, { "worker", 4, 75, 2, 2 }, { "evaluator", 1, 100, 0, 0 } },
                  VERDICT_FAILED,
                  "2 of 4 executors of role worker succeeded, 3 needed" },
                { { { "ps", 1, 100, 0, 0 }, { "worker", 4, 75, 3, 1 }, { "evaluator", 1, 100, 1, 0 } },
                  VERDICT_GO_ON,
                  "" },
                { { { "ps", 1, 0, 1, 0 }, { "worker", 2, 0, 0, 2 }, { "evaluator", 1, 0, 0, 0 } },
                  VERDICT_GO_ON,
                  "" },
                { { { "ps", 1, 0, 1, 0 }, { "worker", 2, 0, 0, 2 }, { "evaluator", 1, 0, 1, 0 } },
                  VERDICT_SUCCEEDED,
                  "every executor has ended" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                size_t role = SIZE_MAX;
                char text[VERDICT_TEXT_MAX] = "";
                assert_int_equal(verdict_of(table[i].roles, 3, &role, text), table[i].verdict);
                assert_string_equal(text, table[i].text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_role),
                cmocka_unit_test(test_fail_percent),
                cmocka_unit_test(test_roles_together),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
