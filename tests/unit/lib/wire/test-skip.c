/* SPDX-License-Identifier: Apache-2.0 */
/* lib/wire/skip.c: what is passed over, and in what time. */
#include "lib/wire/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tests/kit/message-kit.h"

#define LARGE ((size_t)4 << 20)

/* Something of every type, then a number. */
static sd_bus_message *of_all(void) {
        sd_bus_message *m = message_of_every_type();

        assert_true(sd_bus_message_append(m, "u", 42) >= 0);
        message_seal(m);
        return m;
}

static void assert_next(sd_bus_message *m) {
        uint32_t u;

        assert_true(sd_bus_message_read(m, "u", &u) > 0);
        assert_int_equal(u, 42);
        assert_int_equal(message_skip_any(m), 0);
}

static void test_every_type(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = of_all();

        assert_int_equal(message_skip(m, "ybnqiuxtdsogasa{sv}(s(iay))aabaxa(dd)v"), 1);
        assert_next(m);
        assert_true(sd_bus_message_rewind(m, true) >= 0);
        for (size_t i = 0; i < 12 + 3 + 4; i++)
                assert_int_equal(message_skip_any(m), 1);
        assert_next(m);
}

static void test_another_type(void **state) {
        static const char *const wrong[] = { "q",
                                             "yy",
                                             "ybnqiuxtdsogau",
                                             "ybnqiuxtdsogasa{ss}",
                                             "ybnqiuxtdsogasa{sv}(s)",
                                             "ybnqiuxtdsogasa{sv}(s(iay))aabaxa(dd)vuu" };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = of_all();

                assert_int_equal(message_skip(m, wrong[i]), -ENXIO);
        }
}

/* However large: as bytes alone, and as one of a dictionary. */
static void test_bytes_take_no_time(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        _cleanup_free_ char *bytes = calloc(1, LARGE);
        uint64_t began, ours, theirs;

        assert_non_null(bytes);
        assert_true(sd_bus_message_append_array(m, 'y', bytes, LARGE) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        assert_true(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        assert_true(sd_bus_message_append(m, "s", "env") >= 0);
        assert_true(sd_bus_message_open_container(m, 'v', "aay") >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "ay") >= 0);
        assert_true(sd_bus_message_append_array(m, 'y', bytes, LARGE) >= 0);
        for (size_t i = 0; i < 4; i++)
                assert_true(sd_bus_message_close_container(m) >= 0);
        message_seal(m);
        began = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        assert_int_equal(message_skip(m, "aya{sv}"), 1);
        ours = clock_usec(CLOCK_THREAD_CPUTIME_ID) - began;
        assert_true(sd_bus_message_rewind(m, true) >= 0);
        began = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        assert_true(sd_bus_message_skip(m, "aya{sv}") > 0);
        theirs = clock_usec(CLOCK_THREAD_CPUTIME_ID) - began;
        assert_true(ours < theirs / 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_type),
                cmocka_unit_test(test_another_type),
                cmocka_unit_test(test_bytes_take_no_time),
        };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
