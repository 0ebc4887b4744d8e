/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/dependency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_judge(void **state) {
        static const enum job_state ends[] = { JOB_SUCCEEDED, JOB_FAILED, JOB_KILLED };
        static const enum dependency wanted[_AFTER_CONDITION_MAX][3] = {
                [AFTER_OK] = { DEPENDENCY_HOLDS, DEPENDENCY_NEVER, DEPENDENCY_NEVER },
                [AFTER_FAIL] = { DEPENDENCY_NEVER, DEPENDENCY_HOLDS, DEPENDENCY_HOLDS },
                [AFTER_ANY] = { DEPENDENCY_HOLDS, DEPENDENCY_HOLDS, DEPENDENCY_HOLDS },
        };

        for (enum after_condition c = 0; c < _AFTER_CONDITION_MAX; c++) {
                for (size_t i = 0; i < 3; i++)
                        assert_int_equal(dependency_judge(c, ends[i]), wanted[c][i]);
                for (enum job_state s = 0; s < JOB_SUCCEEDED; s++)
                        assert_int_equal(dependency_judge(c, s), DEPENDENCY_WAITS);
        }
}

static void test_text(void **state) {
        static const struct after_entry whole = { .job = 417, .index = AFTER_WHOLE, .condition = AFTER_OK },
                                        other = { .job = 417, .index = AFTER_WHOLE, .condition = AFTER_FAIL },
                                        element = { .job = 417, .index = 2, .condition = AFTER_OK };
        char text[DEPENDENCY_TEXT_MAX];

        assert_string_equal(dependency_never_text(&whole, JOB_FAILED, text, sizeof(text)),
                            "job 417 failed, and this one was to run after its success (after 417:ok)");
        assert_string_equal(dependency_never_text(&other, JOB_SUCCEEDED, text, sizeof(text)),
                            "job 417 succeeded, and this one was to run after its failure (after 417:fail)");
        assert_string_equal(
                dependency_never_text(&element, JOB_KILLED, text, sizeof(text)),
                "job 417[2] was killed, and this one was to run after its success (after 417[2]:ok)");
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_judge), cmocka_unit_test(test_text) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
