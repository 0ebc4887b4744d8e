/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/sched/queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/sched.h"

/* What each id answers when it is tried. */
struct script {
        uint32_t lacking[10]; /* 0: starts */
        int error;
        char tried[64];
};

static int try(void *userdata, uint64_t id, uint32_t *ret_lacking) {
        struct script *s = userdata;
        char c[] = { (char)('0' + id), 0 };

        strcat(s->tried, c);
        if (s->error < 0)
                return s->error;
        *ret_lacking = s->lacking[id];
        return s->lacking[id] ? SCHED_E_NO_FIT : 0;
}

static int pass(struct queue *q, struct script *s, uint64_t now, uint64_t patience, unsigned depth) {
        s->tried[0] = 0;
        return queue_pass(q, now, patience, depth, try, s);
}

static void test_order(void **state) {
        _cleanup_(queue_free_p) struct queue *q = NULL;
        struct script s = {};

        assert_int_equal(queue_new(&q), 0);
        assert_int_equal(queue_add(q, 1, 0, SCHED_CPU, 0), 0);
        assert_int_equal(queue_add(q, 2, 5, SCHED_CPU, 0), 0);
        assert_int_equal(queue_add(q, 3, 0, SCHED_CPU, 0), 0);
        assert_int_equal(queue_add(q, 4, 5, SCHED_CPU, 0), 0);
        assert_int_equal(queue_add(q, 5, -1, SCHED_CPU, 0), 0);
        assert_int_equal(queue_add(q, 6, 2, SCHED_CPU, 0), 0);
        assert_int_equal(queue_add(q, 6, 2, SCHED_CPU, 0), -EEXIST);
        assert_int_equal(queue_length(q), 6);
        assert_int_equal(queue_position(q, 6), 2);
        assert_int_equal(queue_position(q, 7), -1);
        assert_true(queue_remove(q, 3));
        assert_false(queue_remove(q, 3));
        assert_int_equal(pass(q, &s, 0, 100, 100), 5);
        assert_string_equal(s.tried, "24615");
        assert_int_equal(queue_length(q), 0);
}

static void test_smaller_ones_pass(void **state) {
        _cleanup_(queue_free_p) struct queue *q = NULL;
        struct script s = { .lacking[1] = SCHED_CPU };

        assert_int_equal(queue_new(&q), 0);
        for (uint64_t id = 1; id <= 3; id++)
                assert_int_equal(queue_add(q, id, 0, SCHED_CPU, 1000), 0);
        assert_int_equal(pass(q, &s, 1050, 100, 100), 2);
        assert_string_equal(s.tried, "123");
        assert_int_equal(queue_length(q), 1);
}

static void test_not_passed_over_for_ever(void **state) {
        _cleanup_(queue_free_p) struct queue *q = NULL;
        struct script s = { .lacking[1] = SCHED_GPUS };

        assert_int_equal(queue_new(&q), 0);
        assert_int_equal(queue_add(q, 1, 0, SCHED_CPU | SCHED_GPUS, 1000), 0);
        assert_int_equal(queue_add(q, 2, 0, SCHED_CPU | SCHED_GPUS, 1050), 0);
        assert_int_equal(queue_add(q, 3, 0, SCHED_CPU, 1050), 0);
        assert_int_equal(pass(q, &s, 1100, 100, 100), 1);
        assert_string_equal(s.tried, "13"); /* 2 would take the GPUs that 1 waits for, 3 does not */
        assert_int_equal(queue_length(q), 2);
        s.lacking[1] = 0;
        assert_int_equal(pass(q, &s, 1200, 100, 100), 2);
        assert_string_equal(s.tried, "12");
}

static void test_depth_and_errors(void **state) {
        _cleanup_(queue_free_p) struct queue *q = NULL;
        struct script s = { .lacking = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } };

        assert_int_equal(queue_new(&q), 0);
        for (uint64_t id = 0; id < 10; id++)
                assert_int_equal(queue_add(q, id, 0, SCHED_CPU, 0), 0);
        assert_int_equal(pass(q, &s, 0, UINT64_MAX, 4), 0);
        assert_string_equal(s.tried, "0123");
        s.error = -ENOMEM;
        assert_int_equal(pass(q, &s, 0, UINT64_MAX, 4), -ENOMEM);
        assert_int_equal(queue_length(q), 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_smaller_ones_pass),
                cmocka_unit_test(test_not_passed_over_for_ever),
                cmocka_unit_test(test_depth_and_errors),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
