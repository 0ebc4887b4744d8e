/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts' names, and defaults that make sense for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/health/health.h"

static void test_names(void **state) {
        for (int k = 0; k < _VERDICT_MAX; k++) {
                const char *name = verdict_kind_to_string((enum verdict_kind)k);

                assert_non_null(name);
                assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
                for (int other = 0; other < k; other++)
                        assert_string_not_equal(name, verdict_kind_to_string((enum verdict_kind)other));
        }
        assert_null(verdict_kind_to_string(_VERDICT_MAX));
        assert_null(verdict_kind_to_string((enum verdict_kind) - 1));
}

/* A share is one of a thousand; what counts within a time has that time; all but what is a fact at once have
 * patience. */
static void test_defaults(void **state) {
        for (int k = 0; k < _VERDICT_MAX; k++) {
                const struct health_rule *r = health_defaults.of + k;

                assert_in_range(r->share_milli, 0, 1000);
                assert_true(r->count == 0 || r->within_usec > 0);
                if (k != VERDICT_OOM && k != VERDICT_CRASH_LOOP)
                        assert_true(r->after_usec > 0);
        }
        assert_int_equal(health_defaults.of[VERDICT_CRASH_LOOP].count, 3);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_defaults),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
