/* SPDX-License-Identifier: Apache-2.0 */
/* Captures from records: every thread once, within the bounds, whoever wrote the records. */
#include "agentd/capture/found.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static struct stream_item item;

static int add(struct capture *c, enum stream_type type, uint32_t number, const char *text) {
        item = (struct stream_item){ .type = type, .number = number };
        item.thread = (struct stream_thread){
                .pid = number, .tid = number, .call = STREAM_NO_CALL, .state = 'S', .name = "w"
        };
        snprintf(item.text, sizeof(item.text), "%s", text);
        return found_add(c, &item);
}

static void test_once(void **state) {
        struct capture c = {};

        assert_int_equal(add(&c, STREAM_THREAD, 7, "futex_wait"), 0);
        assert_int_equal(add(&c, STREAM_THREAD, 7, "another"), 0);
        assert_int_equal(c.n, 1);
        assert_string_equal(c.threads[0].stack, "futex_wait");
        assert_int_equal(add(&c, STREAM_STACK, 7, "a better one"), 0);
        assert_string_equal(c.threads[0].stack, "a better one");
        assert_int_equal(add(&c, STREAM_STACK, 7, ""), 0); /* nothing is not better */
        assert_int_equal(add(&c, STREAM_STACK, 8, "of nobody"), 0);
        assert_int_equal(add(&c, STREAM_PYTHON, 8, "of nobody"), 0);
        assert_int_equal(add(&c, STREAM_END, 7, ""), 0);
        assert_string_equal(c.threads[0].stack, "a better one");
        assert_int_equal(c.n, 1);
        capture_done(&c);
}

static void test_bounds(void **state) {
        struct capture c = {};
        unsigned pythons = 0;

        for (uint32_t i = 1; i <= CAPTURE_THREADS_MAX + 10; i++)
                assert_int_equal(add(&c, STREAM_THREAD, i, ""), 0);
        assert_int_equal(c.n, CAPTURE_THREADS_MAX);
        for (uint32_t i = 1; i <= CAPTURE_PYTHONS_MAX + 10; i++)
                assert_int_equal(add(&c, STREAM_PYTHON, i, "File \"train.py\""), 0);
        for (size_t i = 0; i < c.n; i++)
                pythons += c.threads[i].python != NULL;
        assert_int_equal(pythons, CAPTURE_PYTHONS_MAX);
        assert_int_equal(add(&c, STREAM_PYTHON, 1, "once more"), 0);
        assert_string_equal(capture_find(&c, 1)->python, "File \"train.py\"");
        assert_int_equal(add(&c, STREAM_TOTAL, UINT32_MAX - 1, ""), 0);
        assert_int_equal(add(&c, STREAM_TOTAL, 5, ""), 0);
        assert_true(c.total == UINT32_MAX);
        capture_done(&c);
}

static void test_call_names(void **state) {
        char name[32];

        call_name(SYS_read, name, sizeof(name));
        assert_string_equal(name, "read");
        call_name(1 << 20, name, sizeof(name));
        assert_string_equal(name, "call 1048576");
        call_name(-7, name, sizeof(name));
        assert_string_equal(name, "call -7");
        call_name(SYS_sched_get_priority_max, name, 6); /* cut */
        assert_string_equal(name, "sched");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_once),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_call_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
