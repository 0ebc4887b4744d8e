/* SPDX-License-Identifier: Apache-2.0 */
/* Positions, acknowledgements and credits of held tasks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "executor/tasks.h"
#include "lib/base/cleanup.h"

#define PIPE 1000u

static void give(struct tasks *s, uint64_t id, uint64_t size, uint64_t offset) {
        struct task_grant g = { .task = id, .path = (char *)"/x", .size = size, .offset = offset };

        assert_int_equal(tasks_grant(s, &g), 1);
}

/* Writes the first task as a whole. */
static void write_task(struct tasks *s, bool newline) {
        tasks_opened(s, s->todo->granted);
        tasks_wrote(s, s->todo->size - s->todo->granted, true);
        if (newline)
                tasks_wrote(s, 1, false);
        tasks_written(s);
}

static struct task *find(struct tasks *s, uint64_t id) {
        struct task *t;

        HASH_FIND(hh, s->by_id, &id, sizeof(id), t);
        return t;
}

static void test_lag(void **state) {
        struct tasks s;

        tasks_init(&s, ACK_LAG, PIPE);
        give(&s, 1, 500, 0);
        give(&s, 2, 2000, 0);
        write_task(&s, true);
        tasks_opened(&s, 0);
        tasks_wrote(&s, 800, true);
        assert_true(tasks_consumed(&s, 501, NULL));
        assert_int_equal(find(&s, 1)->place, PLACE_WAITING);
        assert_int_equal(find(&s, 1)->read, 500);
        assert_int_equal(find(&s, 1)->acked, 0);
        assert_true(tasks_consumed(&s, 1301, NULL));
        assert_int_equal(find(&s, 1)->acked, 301); /* what was read a pipe ago */
        assert_int_equal(find(&s, 2)->read, 800);
        assert_int_equal(find(&s, 2)->acked, 0);
        tasks_wrote(&s, 1200, true);
        tasks_written(&s);
        assert_true(tasks_consumed(&s, 1501, NULL));
        assert_int_equal(find(&s, 1)->place, PLACE_DONE);
        assert_true(tasks_consumed(&s, 2501, NULL));
        assert_int_equal(find(&s, 2)->acked, 1000);
        assert_int_equal(find(&s, 2)->place, PLACE_WAITING);
        assert_false(tasks_consumed(&s, 2501, NULL));
        tasks_finish(&s, true);
        assert_int_equal(find(&s, 2)->place, PLACE_DONE);
        tasks_done(&s);
}

static void test_modes(void **state) {
        for (enum ack_mode ack = 0; ack < _ACK_MODE_MAX; ack++) {
                struct tasks s;

                tasks_init(&s, ack, PIPE);
                give(&s, 1, 5000, 0);
                write_task(&s, false);
                (void)tasks_consumed(&s, 3000, NULL);
                assert_int_equal(find(&s, 1)->acked, ack == ACK_READ ? 3000 : ack == ACK_LAG ? 2000 : 0);
                (void)tasks_consumed(&s, 5000, NULL);
                assert_int_equal(find(&s, 1)->place, ack == ACK_READ ? PLACE_DONE : PLACE_WAITING);
                tasks_finish(&s, false); /* a failure acknowledges nothing more */
                assert_int_equal(find(&s, 1)->acked, ack == ACK_READ ? 5000 : ack == ACK_LAG ? 4000 : 0);
                tasks_done(&s);
        }
}

/* Going on inside a line: what is handed out twice does not count backwards. */
static void test_resumed(void **state) {
        struct tasks s;

        tasks_init(&s, ACK_READ, PIPE);
        give(&s, 1, 100, 50);
        tasks_opened(&s, 40);
        tasks_wrote(&s, 60, true);
        tasks_written(&s);
        (void)tasks_consumed(&s, 5, NULL);
        assert_int_equal(find(&s, 1)->read, 50);
        (void)tasks_consumed(&s, 20, NULL);
        assert_int_equal(find(&s, 1)->read, 60);
        tasks_done(&s);
}

static void test_empty_and_twice(void **state) {
        struct task_grant g = { .task = 1, .path = (char *)"/x", .size = 10 };
        struct tasks s;

        tasks_init(&s, ACK_LAG, PIPE);
        give(&s, 7, 0, 0);
        write_task(&s, false);
        assert_int_equal(find(&s, 7)->place, PLACE_DONE);
        give(&s, 1, 10, 0);
        assert_int_equal(tasks_grant(&s, &g), 0);
        g.task = 7;
        tasks_reported(&s, find(&s, 7), false);
        assert_int_equal(tasks_grant(&s, &g), 0);
        assert_true(find(&s, 7)->dirty); /* said once more */
        assert_int_equal(s.n_held, 1);
        /* A failed one may be tried again. */
        tasks_fail(&s, find(&s, 1), "why");
        assert_int_equal(s.n_held, 0);
        g.task = 1;
        assert_int_equal(tasks_grant(&s, &g), 1);
        tasks_done(&s);
}

static const char *changed(const struct task *t) {
        return t->id == 1 ? "changed while it was read" : NULL;
}

static void test_check(void **state) {
        struct tasks s;

        tasks_init(&s, ACK_LAG, PIPE);
        give(&s, 1, 10, 0);
        give(&s, 2, 10, 0);
        write_task(&s, false);
        write_task(&s, false);
        (void)tasks_consumed(&s, 20, changed);
        assert_int_equal(tasks_state(find(&s, 1)), TASK_FAILED);
        assert_string_equal(find(&s, 1)->error, "changed while it was read");
        assert_int_equal(find(&s, 2)->place, PLACE_WAITING);
        tasks_reported(&s, find(&s, 1), true);
        assert_non_null(find(&s, 1));
        tasks_report_all(&s);
        assert_true(find(&s, 1)->dirty);
        tasks_reported(&s, find(&s, 1), false);
        assert_null(find(&s, 1));
        tasks_done(&s);
}

static void test_credits(void **state) {
        struct tasks s;

        tasks_init(&s, ACK_LAG, PIPE);
        assert_int_equal(tasks_credits(&s), TASKS_PREFETCH);
        give(&s, 1, 1u << 30, 0);
        assert_int_equal(tasks_credits(&s), 1); /* large ones are held in twos */
        give(&s, 2, 1u << 30, 0);
        assert_int_equal(tasks_credits(&s), 0);
        tasks_done(&s);
        tasks_init(&s, ACK_LAG, PIPE);
        give(&s, 1, 100, 0);
        give(&s, 2, 100, 0);
        assert_int_equal(tasks_credits(&s), TASKS_CREDITS_MAX); /* small ones by the dozen */
        s.last = true;
        assert_int_equal(tasks_credits(&s), 0);
        tasks_done(&s);
}

static void test_memory(void **state) {
        struct tasks s;

        tasks_init(&s, ACK_READ, PIPE);
        for (uint64_t i = 0; i < TASKS_DONE_MAX + 100; i++) {
                give(&s, i, 1, 0);
                write_task(&s, false);
                (void)tasks_consumed(&s, s.written, NULL);
                while (s.dirty)
                        tasks_reported(&s, s.dirty, false);
        }
        assert_int_equal(s.n_done, TASKS_DONE_MAX);
        assert_int_equal(s.n_held, 0);
        tasks_report_all(&s);
        tasks_done(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lag),     cmocka_unit_test(test_modes),
                cmocka_unit_test(test_resumed), cmocka_unit_test(test_empty_and_twice),
                cmocka_unit_test(test_check),   cmocka_unit_test(test_credits),
                cmocka_unit_test(test_memory),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
