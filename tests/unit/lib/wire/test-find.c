/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/find.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"
#include "tests/kit/message-kit.h"

static void test_question(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        char *patterns[] = { (char *)"CUDA error", (char *)"^a|b$", NULL };
        struct find_question in = { .patterns = patterns, .n = 2 }, out;

        assert_true(find_question_append(m, &in) >= 0);
        message_seal(m);
        assert_int_equal(find_question_read(m, &out), 1);
        assert_int_equal(out.n, 2);
        assert_string_equal(out.patterns[0], "CUDA error");
        assert_string_equal(out.patterns[1], "^a|b$");
        assert_null(out.patterns[2]);
        find_question_done(&out);
}

/* One that is too long, an empty one, more than there may be. */
static void test_bad_question(void **state) {
        char longer[PATTERN_MAX + 2];

        memset(longer, 'a', sizeof(longer));
        longer[PATTERN_MAX + 1] = 0;
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
                struct find_question out;

                assert_true(sd_bus_message_open_container(m, 'a', "s") >= 0);
                for (unsigned k = 0; k < (i == 2 ? FIND_PATTERNS_MAX + 1 : 1); k++)
                        assert_true(sd_bus_message_append(m, "s", i == 0 ? longer : i == 1 ? "" : "a") >= 0);
                assert_true(sd_bus_message_close_container(m) >= 0);
                assert_true(link_append_extra_empty(m) >= 0);
                message_seal(m);
                assert_int_equal(find_question_read(m, &out), -EBADMSG);
        }
}

static void test_lines(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        struct found_line in[4] = { [1] = { .found = true, .text = "a\tline \xff" },
                                    [3] = { .found = true, .text = "" } },
                          out[3] = {};

        assert_true(found_lines_append(m, in, ELEMENTSOF(in)) >= 0);
        message_seal(m);
        /* Of what was not asked for nothing is taken. */
        assert_int_equal(found_lines_read(m, out, ELEMENTSOF(out)), 1);
        assert_false(out[0].found);
        assert_true(out[1].found);
        assert_null(strchr(out[1].text, '\xff'));
        assert_false(out[2].found);
}

static void test_long_line(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        struct found_line out[1] = {};
        char longer[FIND_LINE_MAX + 2];

        memset(longer, 'a', sizeof(longer));
        longer[FIND_LINE_MAX + 1] = 0;
        assert_true(sd_bus_message_append(m, "a(us)a{sv}", 1, 0, longer, 0) >= 0);
        message_seal(m);
        assert_int_equal(found_lines_read(m, out, 1), -EBADMSG);
        assert_false(out[0].found);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_question),
                cmocka_unit_test(test_bad_question),
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_long_line),
        };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
