/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static void test_sizes(void **state) {
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } table[] = {
                { "0", 0, 0 },
                { "512", 0, 512 },
                { "64K", 0, 65536 },
                { "1.5G", 0, 1610612736 },
                { "1 GiB", 0, 1 << 30 },
                { "2MB", 0, 2 << 20 },
                { "100B", 0, 100 },
                { "-1", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "1X", -EINVAL, 0 },
                { "1.", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
                { "99999E", -ERANGE, 0 },
                { "0x10", -EINVAL, 0 },
                { "BB", -EINVAL, 0 },
                { "1BB", -EINVAL, 0 },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                uint64_t v = 0;
                assert_int_equal(parse_size(table[i].text, &v), table[i].r);
                assert_true(v == table[i].value);
        }
}

static void test_durations(void **state) {
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } table[] = {
                { "90", 0, 90 * USEC_PER_SEC },
                { "500ms", 0, 500 * USEC_PER_MSEC },
                { "2h30min", 0, 9000 * USEC_PER_SEC },
                { "1d 2h", 0, 93600 * USEC_PER_SEC },
                { "1.5s", 0, 1500 * USEC_PER_MSEC },
                { "infinity", 0, USEC_INFINITY },
                { "01:30:00", 0, 5400 * USEC_PER_SEC },
                { "10:30", 0, 630 * USEC_PER_SEC },
                { "1-12:00", 0, 129600 * USEC_PER_SEC },
                { "2h 30", -EINVAL, 0 },
                { "-5s", -EINVAL, 0 },
                { "5parsecs", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "1:2:3:4", -EINVAL, 0 },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                uint64_t v = 0;
                assert_int_equal(parse_duration(table[i].text, &v), table[i].r);
                assert_true(v == table[i].value);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_durations),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
