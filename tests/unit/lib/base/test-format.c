/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/clock.h"

static void test_formats(void **state) {
        char buf[64];

        assert_string_equal(format_duration(93600 * USEC_PER_SEC, buf, sizeof(buf)), "1d 2h");
        assert_string_equal(format_duration(1500 * USEC_PER_MSEC, buf, sizeof(buf)), "1.5s");
        assert_string_equal(format_duration(0, buf, sizeof(buf)), "0s");
        assert_string_equal(format_size(1536, buf, sizeof(buf)), "1.5K");
        assert_string_equal(format_size(64 << 20, buf, sizeof(buf)), "64M");
        assert_string_equal(format_time(0, buf, sizeof(buf)), "");
        assert_string_equal(format_time(1767225600 * USEC_PER_SEC, buf, sizeof(buf)), "2026-01-01T00:00:00Z");
}

static void test_hex(void **state) {
        static const uint8_t bytes[] = { 0x00, 0x0f, 0xf0, 0xff, 0x1e };
        char buf[2 * sizeof(bytes) + 2] = "xxxxxxxxxxx";

        assert_string_equal(format_hex(bytes, sizeof(bytes), buf), "000ff0ff1e");
        assert_int_equal(buf[2 * sizeof(bytes) + 1], 0); /* as it was */
        assert_string_equal(format_hex(bytes, 2, buf), "000f");
        assert_string_equal(format_hex(bytes, 0, buf), "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_formats),
                cmocka_unit_test(test_hex),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
