/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say of threads, over a sealed message, and what is refused. */
#include "lib/wire/capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"
#include "tests/kit/message-kit.h"

static void test_classes(void **state) {
        for (int i = 0; i < _CAPTURE_CLASS_MAX; i++)
                assert_int_equal(capture_class_from_string(capture_class_to_string((enum capture_class)i)),
                                 i);
        assert_int_equal(capture_class_from_string("no such"), _CAPTURE_CLASS_INVALID);
        assert_null(capture_class_to_string(_CAPTURE_CLASS_MAX));
}

static void test_round_trip(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        _cleanup_free_ char *long_text = malloc(3 * CAPTURE_PYTHON_MAX);
        struct capture_thread threads[] = {
                { .pid = 7,
                  .tid = 7,
                  .state = 'S',
                  .class = CAPTURE_FUTEX,
                  .name = "python3",
                  .call = "futex",
                  .stack = (char *)"futex_wait do_futex",
                  .python = (char *)"line 1\nl\033ine\xff 2\n" },
                { .pid = 7, .tid = 8, .state = 'R', .class = CAPTURE_RUNNING, .name = "a\nb" },
                { .pid = 9, .tid = 9, .state = 'T', .class = CAPTURE_STOPPED, .name = "x" },
        };
        struct capture in = { .threads = threads, .n = 3, .total = 1000, .note = (char *)"because" }, out;

        memset(long_text, 'x', 3 * CAPTURE_PYTHON_MAX - 1);
        long_text[3 * CAPTURE_PYTHON_MAX - 1] = 0;
        long_text[3 * CAPTURE_PYTHON_MAX - 2] = 'y';
        threads[2].python = long_text;
        assert_true(capture_append(m, &in) >= 0);
        message_seal(m);
        assert_string_equal(sd_bus_message_get_signature(m, true), "a" LINK_THREAD_SIGNATURE "a{sv}");
        assert_int_equal(capture_read(m, &out), 1);
        assert_int_equal(out.n, 3);
        assert_int_equal(out.total, 1000);
        assert_string_equal(out.note, "because");
        assert_string_equal(out.threads[0].stack, "futex_wait do_futex");
        assert_string_equal(out.threads[0].call, "futex");
        assert_string_equal(out.threads[0].python, "line 1\nl?ine? 2\n");
        assert_int_equal(out.threads[1].class, CAPTURE_RUNNING);
        assert_int_equal(out.threads[1].state, 'R');
        assert_null(strchr(out.threads[1].name, '\n'));
        assert_null(out.threads[1].stack);
        assert_null(out.threads[1].python);
        /* Its end is what counts. */
        assert_int_equal(strlen(out.threads[2].python), CAPTURE_PYTHON_MAX);
        assert_int_equal(out.threads[2].python[CAPTURE_PYTHON_MAX - 1], 'y');
        assert_ptr_equal(capture_find(&out, 8), out.threads + 1);
        assert_null(capture_find(&out, 99));
        capture_done(&out);
}

static void test_bad(void **state) {
        struct capture out;

        /* A state of several letters, a name that is too long, more threads than there may be. */
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();

                assert_true(sd_bus_message_open_container(m, 'a', LINK_THREAD_SIGNATURE) >= 0);
                for (unsigned k = 0; k < (i == 2 ? CAPTURE_THREADS_MAX + 1 : 1); k++)
                        assert_true(sd_bus_message_append(m, LINK_THREAD_SIGNATURE, 1, 1, i == 0 ? "SS" : "S",
                                                          "futex", i == 1 ? "0123456789abcdef" : "x", "",
                                                          "") >= 0);
                assert_true(sd_bus_message_close_container(m) >= 0);
                assert_true(link_append_extra_empty(m) >= 0);
                message_seal(m);
                assert_int_equal(capture_read(m, &out), -EBADMSG);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_classes),
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_bad),
        };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
