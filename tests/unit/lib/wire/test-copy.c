/* SPDX-License-Identifier: Apache-2.0 */
/* lib/wire/copy.c: what is copied is the same, and is bounded. */
#include "lib/wire/copy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/wire/skip.h"
#include "tests/kit/message-kit.h"

static char *dumped(sd_bus_message *m) {
        FILE *f;
        char *text = NULL;
        size_t size;

        assert_true(sd_bus_message_rewind(m, true) >= 0);
        f = open_memstream(&text, &size);
        assert_non_null(f);
        assert_true(sd_bus_message_dump(m, f, SD_BUS_MESSAGE_DUMP_SUBTREE_ONLY) >= 0);
        /* Only closed does the text stand where @text says. */
        assert_int_equal(fclose(f), 0);
        return text;
}

static void test_every_type(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *from = message_of_every_type(), *to = message_new();
        _cleanup_free_ char *before = NULL, *after = NULL;
        size_t size = 0;
        int yes;

        message_seal(from);
        before = dumped(from);
        /* From the beginning, wherever it is read. */
        assert_true(sd_bus_message_rewind(from, true) >= 0);
        assert_true(message_skip(from, "y") >= 0);
        assert_true(sd_bus_message_read_basic(from, 'b', &yes) > 0);
        assert_int_equal(message_copy(to, from, 1 << 20, &size), 0);
        message_seal(to);
        assert_true(size > 100 && size < 1000);
        assert_string_equal(sd_bus_message_get_signature(to, true), MESSAGE_EVERY_TYPE);
        after = dumped(to);
        assert_true(strlen(before) > 100);
        assert_string_equal(after, before);
}

static void test_nothing(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *from = message_new(), *to = message_new();

        message_seal(from);
        assert_int_equal(message_copy(to, from, 0, NULL), 0);
        message_seal(to);
        assert_true(sd_bus_message_is_empty(to) > 0);
}

static void test_too_much(void **state) {
        static const char *const types[] = { "s", "ay", "as", "v", "u" };

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *from = message_new(), *to = message_new(),
                                                                *again = message_new();
                uint8_t bytes[100] = { 0 };
                char text[101];

                memset(text, 'x', 100);
                text[100] = 0;
                if (i == 1)
                        assert_true(sd_bus_message_append_array(from, 'y', bytes, sizeof(bytes)) >= 0);
                else if (i == 2)
                        assert_true(sd_bus_message_append(from, "as", 2, text, text) >= 0);
                else if (i == 3)
                        assert_true(sd_bus_message_append(from, "v", "s", text) >= 0);
                else if (i == 4)
                        for (unsigned k = 0; k < 20; k++)
                                assert_true(sd_bus_message_append(from, "u", k) >= 0);
                else
                        assert_true(sd_bus_message_append(from, "s", text) >= 0);
                message_seal(from);
                assert_int_equal(message_copy(to, from, 100, NULL), -E2BIG);
                assert_int_equal(message_copy(again, from, 1000, NULL), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_type),
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_too_much),
        };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
