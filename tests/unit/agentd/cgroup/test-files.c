/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/cgroup/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define UNTOUCHED UINT64_C(777)

static void test_numbers(void **state) {
        static const struct {
                const char *text;
                uint64_t expected;
        } cases[] = {
                { "0\n", 0 },
                { "42\n", 42 },
                { "18446744073709551615", UINT64_MAX },
                { "max\n", UINT64_MAX },
                { "max", UINT64_MAX },
                { "18446744073709551616\n", UNTOUCHED },
                { "maximum\n", UNTOUCHED },
                { "-1\n", UNTOUCHED },
                { "4x\n", UNTOUCHED },
                { "", UNTOUCHED },
                { "\n", UNTOUCHED },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                uint64_t n = UNTOUCHED;
                cgroup_parse_number(cases[i].text, &n);
                assert_true(n == cases[i].expected);
        }
}

static void test_keys(void **state) {
        uint64_t usage = UNTOUCHED, throttled = UNTOUCHED, max = UNTOUCHED;
        const struct cgroup_key keys[] = {
                { "usage_usec", &usage },
                { "throttled_usec", &throttled },
                { "max", &max },
                { NULL, NULL },
        };

        cgroup_parse_keys("usage_usec 12\nuser_usec 10\nthrottled_usecs 9\nthrottled_usec x\nmax", keys);
        assert_true(usage == 12 && throttled == UNTOUCHED && max == UNTOUCHED);
        cgroup_parse_keys("low 0\nhigh 3\nmax 4\nthrottled_usec 5", keys);
        assert_true(throttled == 5 && max == 4);
        cgroup_parse_keys("", keys);
        cgroup_parse_keys("\n\n usage_usec 1\nusage_usec  2\nusage_usec", keys);
        assert_true(usage == 12);
}

static void test_cpu_max(void **state) {
        uint64_t n = UNTOUCHED;

        cgroup_parse_cpu_max("150000 100000\n", &n);
        assert_true(n == 1500000);
        cgroup_parse_cpu_max("max 100000\n", &n);
        assert_true(n == UINT64_MAX);
        n = UNTOUCHED;
        cgroup_parse_cpu_max("150000 0\n", &n);
        cgroup_parse_cpu_max("150000\n", &n);
        cgroup_parse_cpu_max("150000", &n);
        cgroup_parse_cpu_max("", &n);
        assert_true(n == UNTOUCHED);
}

static void test_pressure(void **state) {
        uint64_t some = UNTOUCHED, full = UNTOUCHED;

        cgroup_parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=19\n"
                              "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
                              &some, &full);
        assert_true(some == 19 && full == 7);
        cgroup_parse_pressure("some avg10=0.00\nfull total=8", &some, &full);
        assert_true(some == 19 && full == 8);
        cgroup_parse_pressure("other total=1\n\nsome", &some, &full);
        assert_true(some == 19 && full == 8);
}

static void test_io(void **state) {
        uint64_t read = UNTOUCHED, written = UNTOUCHED;

        cgroup_parse_io(
                "8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n253:1 rbytes=5 wbytes=6 rios=1\n",
                &read, &written);
        assert_true(read == 15 && written == 26);
        cgroup_parse_io("8:0 rbytes= wbytes=x\n8:1", &read, &written);
        assert_true(read == 0 && written == 0);
        cgroup_parse_io("", &read, &written);
        assert_true(read == 0 && written == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers),  cmocka_unit_test(test_keys), cmocka_unit_test(test_cpu_max),
                cmocka_unit_test(test_pressure), cmocka_unit_test(test_io),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
