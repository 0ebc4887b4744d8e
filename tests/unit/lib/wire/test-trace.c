/* SPDX-License-Identifier: Apache-2.0 */
/* lib/wire/trace.c: what a host says of a trace, and what is not passed on. */
#include "lib/wire/trace.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"
#include "tests/kit/message-kit.h"

/* An answer of n histograms of that name and so many buckets. */
static sd_bus_message *answer(const char *name, unsigned n, size_t buckets) {
        _cleanup_free_ uint64_t *list = calloc(buckets, sizeof(*list));
        sd_bus_message *m = message_new();

        assert_non_null(list);
        list[0] = UINT64_MAX;
        assert_true(sd_bus_message_append(m, "t", UINT64_C(5)) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "(stttat)") >= 0);
        for (unsigned i = 0; i < n; i++) {
                assert_true(sd_bus_message_open_container(m, 'r', "stttat") >= 0);
                assert_true(sd_bus_message_append(m, "sttt", name, UINT64_C(3), UINT64_MAX, UINT64_C(1)) >=
                            0);
                assert_true(sd_bus_message_append_array(m, 't', list, buckets * sizeof(*list)) >= 0);
                assert_true(sd_bus_message_close_container(m) >= 0);
        }
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_append(m, "a{sv}", 2, "missed", "t", UINT64_C(9), "more", "s",
                                          "\033]0;title\007") >= 0);
        message_seal(m);
        return m;
}

static void test_passed(void **state) {
        _cleanup_(sd_bus_message_unrefp)
                sd_bus_message *from = answer("read", TRACE_ANSWER_HISTOGRAMS_MAX, TRACE_ANSWER_BUCKETS_MAX),
                               *to = message_new();
        const uint64_t *buckets;
        const char *name, *key;
        uint64_t since, count, sum, bytes, missed;
        size_t size;
        unsigned n = 0;

        assert_int_equal(trace_answer_pass(from, to), 1);
        message_seal(to);
        assert_true(sd_bus_message_read(to, "t", &since) > 0);
        assert_int_equal(since, 5);
        assert_true(sd_bus_message_enter_container(to, 'a', "(stttat)") > 0);
        while (sd_bus_message_enter_container(to, 'r', "stttat") > 0) {
                assert_true(sd_bus_message_read(to, "sttt", &name, &count, &sum, &bytes) > 0);
                assert_true(sd_bus_message_read_array(to, 't', (const void **)&buckets, &size) >= 0);
                assert_true(sd_bus_message_exit_container(to) >= 0);
                assert_string_equal(name, "read");
                assert_int_equal(size, TRACE_ANSWER_BUCKETS_MAX * sizeof(uint64_t));
                assert_true(sum == UINT64_MAX && buckets[0] == UINT64_MAX);
                n++;
        }
        assert_int_equal(n, TRACE_ANSWER_HISTOGRAMS_MAX);
        assert_true(sd_bus_message_exit_container(to) >= 0);
        /* Only what is known. */
        assert_true(sd_bus_message_enter_container(to, 'a', "{sv}") > 0);
        assert_true(sd_bus_message_read(to, "{sv}", &key, "t", &missed) > 0);
        assert_string_equal(key, "missed");
        assert_int_equal(missed, 9);
        assert_int_equal(sd_bus_message_at_end(to, false), 1);
}

static void refused(sd_bus_message *from) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = from, *to = message_new();

        assert_int_equal(trace_answer_pass(m, to), -EBADMSG);
}

static void test_refused(void **state) {
        sd_bus_message *m = message_new();

        refused(answer("read", TRACE_ANSWER_HISTOGRAMS_MAX + 1, 40));
        refused(answer("read", 1, TRACE_ANSWER_BUCKETS_MAX + 1));
        refused(answer("read", 1, 1 << 20)); /* the bus would drop who sends that on */
        refused(answer("\033[2J\033]52;c;cm0gLXJm\007", 1, 40));
        refused(answer("two\nlines", 1, 40));
        refused(answer("a name of more bytes than there are for one", 1, 40));
        assert_true(sd_bus_message_append(m, "s", "another message") >= 0);
        message_seal(m);
        refused(m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_passed),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
