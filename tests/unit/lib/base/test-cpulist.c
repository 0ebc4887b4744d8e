/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs. */
#include "lib/base/cpulist.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define WORDS 4u

static void check(const char *text, const char *canonical) {
        uint64_t bits[WORDS], again[WORDS];
        _cleanup_free_ char *s = NULL;

        assert_int_equal(cpulist_parse(text, bits, WORDS), 0);
        s = cpulist_format(bits, WORDS);
        assert_string_equal(s, canonical);
        assert_int_equal(cpulist_parse(s, again, WORDS), 0);
        assert_memory_equal(bits, again, sizeof(bits));
}

static void test_lists(void **state) {
        check("", "");
        check("\n", "");
        check("0\n", "0");
        check("0-3,8", "0-3,8");
        check("0,1,2,64-66,255", "0-2,64-66,255");
        check("60-70", "60-70");
        check("0-255", "0-255");
}

static void test_bad(void **state) {
        static const char *const bad[] = { "a",
                                           "-1",
                                           "1-",
                                           "3-1",
                                           "256",
                                           "0-256",
                                           "1,1",
                                           "2,1",
                                           " 1",
                                           "1 ",
                                           "0\n1",
                                           "1;2",
                                           "99999999999999999999" };
        uint64_t bits[WORDS] = { 7 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(cpulist_parse(bad[i], bits, WORDS), -EINVAL);
        assert_int_equal(bits[0], 7);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lists),
                cmocka_unit_test(test_bad),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
