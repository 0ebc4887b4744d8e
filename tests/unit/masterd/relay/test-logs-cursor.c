/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/relay/logs-cursor.h"

static int parse(const char *s, struct log_cursor *c) {
        return log_cursor_parse(s, strlen(s), c);
}

static void test_round_trip(void **state) {
        static const char *const good[] = {
                "", "kept:0", "kept:18446744073709551614", "agent:0:s=1;i=2", "agent:77:a:b:", "agent:5:"
        };
        char buf[LOG_CURSOR_MAX];
        struct log_cursor c;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_int_equal(parse(good[i], &c), 0);
                assert_int_equal(log_cursor_format(&c, buf), strlen(good[i]));
                assert_memory_equal(buf, good[i], strlen(good[i]));
        }
}

static void test_refused(void **state) {
        static const char *const bad[] = { "k",
                                           "kept:",
                                           "kept:-",
                                           "kept:-1",
                                           "kept:+1",
                                           "kept: 1",
                                           "kept:1x",
                                           "kept:18446744073709551615",
                                           "kept:99999999999999999999999999",
                                           "agent:",
                                           "agent:1",
                                           "agent:-:x",
                                           "agent::x",
                                           "agent:0x1:x",
                                           "s=1;i=2" };
        char big[LOG_CURSOR_MAX + 100];
        struct log_cursor c;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(parse(bad[i], &c), -EINVAL);
        memset(big, 'x', sizeof(big));
        memcpy(big, "agent:1:", 8);
        assert_int_equal(log_cursor_parse(big, 8 + LOG_CURSOR_AGENT_MAX, &c), 0);
        assert_int_equal(log_cursor_parse(big, 9 + LOG_CURSOR_AGENT_MAX, &c), -EINVAL);
        assert_int_equal(log_cursor_parse("kept:1\0", 7, &c), -EINVAL);
}

static void test_advance(void **state) {
        char buf[LOG_CURSOR_MAX], big[LOG_CURSOR_AGENT_MAX + 1] = "";
        struct log_cursor c;

        assert_int_equal(parse("", &c), 0);
        assert_int_equal(log_cursor_advance(&c, 10, "ab", 2), 0);
        assert_int_equal(log_cursor_advance(&c, 5, "c", 1), 0);
        assert_int_equal(log_cursor_format(&c, buf), 10);
        assert_memory_equal(buf, "agent:15:c", 10);
        assert_int_equal(log_cursor_advance(&c, 5, NULL, 0), 0);
        assert_int_equal(log_cursor_format(&c, buf), 9);
        assert_memory_equal(buf, "agent:20:", 9);
        c.offset = UINT64_MAX - 3;
        assert_int_equal(log_cursor_advance(&c, 5, NULL, 0), -EINVAL);
        c.offset = 0;
        assert_int_equal(log_cursor_advance(&c, 5, big, sizeof(big)), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip), cmocka_unit_test(test_refused),
                                            cmocka_unit_test(test_advance) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
