/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/primus/held.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/wire/tasks.h"

static const uint8_t uid[16] = { 1 };

static size_t tasks_of(const struct held *h, const struct client_ack *now, void **ret, size_t *ret_size) {
        assert_int_equal(held_state(h, uid, now, ret, ret_size), 0);
        assert_int_equal(state_check(*ret, *ret_size), 0);
        return (*ret_size - sizeof(struct client_state)) / sizeof(struct client_ack);
}

static void leave(struct held *h, uint64_t task, uint64_t position) {
        struct client_ack a = { .task = task, .position = position, .records = task };

        assert_int_equal(held_leave(h, &a), 0);
}

/* What is committed stays in the states for a while, and goes then; what is not stays. */
static void test_commits(void **state) {
        struct held h = {};
        void *first, *second, *third;
        size_t first_size, second_size, third_size;

        leave(&h, 1, TASK_TO_END);
        leave(&h, 2, TASK_TO_END);
        assert_int_equal(tasks_of(&h, NULL, &first, &first_size), 2);
        leave(&h, 3, TASK_TO_END);
        held_commit(&h, first, first_size, 1);
        held_committed(&h, 1, 1000);
        held_expire(&h, 1000 + HELD_KEEP_USEC - 1);
        assert_int_equal(tasks_of(&h, NULL, &second, &second_size), 3);
        held_expire(&h, 1000 + HELD_KEEP_USEC);
        assert_int_equal(h.whole.n, 1);
        assert_int_equal(h.whole.tasks[0].at.task, 3);
        /* A commit of a state whose beginning is forgotten already. */
        held_commit(&h, second, second_size, 2);
        held_expire(&h, UINT64_MAX);
        assert_int_equal(h.whole.n, 1);
        held_committed(&h, 2, 5);
        held_expire(&h, 5 + HELD_KEEP_USEC);
        assert_int_equal(tasks_of(&h, NULL, &third, &third_size), 0);
        free(first);
        free(second);
        free(third);
        held_done(&h);
}

static void test_turns(void **state) {
        struct held h = {};
        struct client_ack now = { .task = 7, .position = 50 };
        void *s;
        size_t size;

        leave(&h, 7, 50);
        leave(&h, 8, 60);
        assert_int_equal(tasks_of(&h, NULL, &s, &size), 2);
        free(s);
        held_resume(&h, &now);
        assert_int_equal(now.records, 7);
        assert_int_equal(h.partial.n, 1);
        now = (struct client_ack){ .task = 8, .position = 10 }; /* delivered again from before */
        held_resume(&h, &now);
        assert_int_equal(now.records, 0);
        assert_int_equal(tasks_of(&h, &now, &s, &size), 1);
        held_resume(&h, &now);
        free(s);
        held_done(&h);
}

static void test_load(void **state) {
        struct held h = {}, again = {};
        struct client_ack now = { .task = 3, .position = 9, .skip = 2, .records = 5 };
        void *s, *t;
        size_t size, size_again;

        leave(&h, 1, TASK_TO_END);
        leave(&h, 2, 77);
        assert_int_equal(tasks_of(&h, &now, &s, &size), 3);
        assert_int_equal(held_load(&again, s, size, 100), 0);
        assert_int_equal(tasks_of(&again, NULL, &t, &size_again), 3);
        assert_int_equal(size, size_again);
        assert_memory_equal(s, t, size);
        free(s);
        free(t);
        held_done(&h);
        held_done(&again);
}

static void test_check(void **state) {
        struct {
                struct client_state s;
                struct client_ack a;
        } x = { { .magic = CLIENT_STATE_MAGIC, .version = CLIENT_STATE_VERSION, .n = 1 }, { .task = 1 } };

        assert_int_equal(state_check(&x, sizeof(x)), 0);
        assert_int_equal(state_check(&x, sizeof(x) - 1), -EBADMSG);
        assert_int_equal(state_check(&x, sizeof(x.s)), -EBADMSG);
        assert_int_equal(state_check(&x, 0), -EBADMSG);
        x.s.n = UINT32_MAX;
        assert_int_equal(state_check(&x, sizeof(x)), -EBADMSG);
        x.s.n = 1;
        x.a.task = 0;
        assert_int_equal(state_check(&x, sizeof(x)), -EBADMSG);
        x.a.task = 1;
        x.s.version++;
        assert_int_equal(state_check(&x, sizeof(x)), -EBADMSG);
}

static void test_too_many(void **state) {
        struct held h = {};
        void *s;
        size_t size;

        for (uint64_t i = 0; i <= HELD_STATE_TASKS_MAX; i++)
                leave(&h, i + 1, TASK_TO_END);
        assert_int_equal(held_state(&h, uid, NULL, &s, &size), -E2BIG);
        h.whole.n--;
        assert_int_equal(held_state(&h, uid, NULL, &s, &size), 0);
        assert_true(size <= CLIENT_STATE_MAX);
        held_commit(&h, s, size, 1);
        free(s);
        held_done(&h);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_commits), cmocka_unit_test(test_turns),    cmocka_unit_test(test_load),
                cmocka_unit_test(test_check),   cmocka_unit_test(test_too_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
