/* SPDX-License-Identifier: Apache-2.0 */
/* Held tasks: who delivers them, what counts, what is reported, credits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "executor/feed/tasks.h"
#include "lib/base/cleanup.h"

static int anybody, somebody;

static int give(struct tasks *s, uint64_t id, uint64_t size, uint64_t offset) {
        struct task_grant g = { .task = id, .path = "/x", .size = size, .end = size, .offset = offset };

        return tasks_grant(s, &g);
}

static struct task_mark at(uint64_t position) {
        return (struct task_mark){ position, 0 };
}

/* Reported, as agentd gets it: '-' nothing, 'r', 'd', 'f', 'b' (back). */
static char told(struct tasks *s, uint64_t id) {
        struct task *t = tasks_find(s, id);
        struct task_progress p;

        if (!t || !t->dirty)
                return '-';
        p = tasks_progress(s, t);
        tasks_reported(s, t, false);
        return "rdfb"[p.state];
}

static void deliver(struct tasks *s, struct task *t, uint64_t upto, bool whole) {
        tasks_delivered(s, t, at(upto));
        tasks_read(s, t, upto, 1);
        if (whole)
                tasks_whole(s, t);
}

static void test_life(void **state) {
        struct tasks s;
        struct task *t;

        tasks_init(&s, ACK_RELEASE);
        assert_int_equal(give(&s, 7, 100, 20), 1);
        assert_int_equal(give(&s, 7, 100, 20), 0);
        assert_int_equal(told(&s, 7), 'r');
        t = tasks_take(&s, &anybody);
        assert_true(t && t->id == 7 && t->from.position == 20);
        assert_null(tasks_take(&s, &anybody));
        deliver(&s, t, 60, false);
        assert_int_equal(tasks_ack(&s, t, at(61), 1), -ERANGE);
        assert_int_equal(tasks_ack(&s, t, at(TASK_TO_END), 1), -ERANGE);
        assert_int_equal(tasks_ack(&s, t, at(40), 2), 0);
        assert_int_equal(tasks_ack(&s, t, at(30), 0), 0); /* known */
        assert_true(t->acked.position == 40 && t->records == 2);
        assert_int_equal(told(&s, 7), 'r');
        deliver(&s, t, 100, true);
        assert_int_equal(t->place, PLACE_HELD);
        assert_false(s.urgent);
        assert_int_equal(tasks_ack(&s, t, at(TASK_TO_END), 3), 0);
        assert_true(s.urgent);
        assert_int_equal(told(&s, 7), 'd');
        assert_int_equal(give(&s, 7, 100, 20), 0); /* done: said once more */
        assert_int_equal(told(&s, 7), 'd');
        assert_int_equal(s.n_held, 0);
        tasks_done(&s);
}

/* Acknowledged only by the trainer's exit 0. */
static void test_exit(void **state) {
        for (unsigned success = 0; success < 2; success++) {
                struct tasks s;
                struct task *t;

                tasks_init(&s, ACK_EXIT);
                give(&s, 1, 100, 10);
                give(&s, 2, 100, 0);
                t = tasks_take(&s, &anybody);
                deliver(&s, t, 100, true);
                assert_int_equal(tasks_ack(&s, t, at(100), 5), 0);
                assert_int_equal(t->place, PLACE_SETTLED);
                assert_int_equal(tasks_progress(&s, t).acked, 10);
                t = tasks_take(&s, &somebody);
                deliver(&s, t, 50, false);
                assert_int_equal(tasks_ack(&s, t, at(50), 1), 0);
                tasks_give_back(&s, &anybody); /* a process of the trainer ends: what it had still counts */
                assert_int_equal(tasks_find(&s, 1)->place, PLACE_SETTLED);
                tasks_finish(&s, success);
                assert_int_equal(tasks_progress(&s, tasks_find(&s, 1)).acked, success ? 100 : 10);
                assert_int_equal(tasks_progress(&s, tasks_find(&s, 1)).state,
                                 success ? TASK_DONE : TASK_RUNNING);
                assert_int_equal(tasks_progress(&s, tasks_find(&s, 2)).acked, success ? 50 : 0);
                tasks_done(&s);
        }
}

/* A process of the trainer goes: others get what does not count yet, from there on. */
static void test_give_back(void **state) {
        struct tasks s;
        struct task *t;

        tasks_init(&s, ACK_RELEASE);
        give(&s, 1, 100, 0);
        give(&s, 2, 100, 0);
        give(&s, 3, 100, 0);
        t = tasks_take(&s, &anybody);
        deliver(&s, t, 80, false);
        assert_int_equal(tasks_ack(&s, t, (struct task_mark){ 30, 4 }, 1), 0);
        assert_int_equal(tasks_take(&s, &somebody)->id, 2);
        tasks_give_back(&s, &anybody);
        assert_int_equal(tasks_find(&s, 2)->place, PLACE_HELD);
        t = tasks_take(&s, &somebody);
        assert_true(t->id == 1 && t->from.position == 30 && t->from.skip == 4);
        assert_int_equal(t->delivered.position, 30);
        assert_int_equal(tasks_take(&s, &somebody)->id, 3);
        tasks_done(&s);
}

/* A stream that has nothing now: it goes back once all that was delivered counts. */
static void test_again(void **state) {
        struct tasks s;
        struct task *t;

        tasks_init(&s, ACK_EXPLICIT);
        give(&s, 1, 100, 0);
        t = tasks_take(&s, &anybody);
        deliver(&s, t, 10, false);
        tasks_again(&s, t);
        assert_int_equal(t->place, PLACE_TODO);
        assert_false(tasks_may_take(&s, &somebody));
        assert_null(tasks_take(&s, &somebody)); /* its trainer has the rest of it */
        assert_ptr_equal(tasks_take(&s, &anybody), t);
        assert_int_equal(t->from.position, 10);
        assert_int_equal(tasks_ack(&s, t, at(10), 0), 0);
        tasks_again(&s, t);
        assert_int_equal(told(&s, 1), 'b');
        /* A masterd that died before it wrote that down is told once more; one that lives is not. */
        tasks_report_all(&s);
        assert_int_equal(told(&s, 1), '-');
        for (unsigned i = 0; i < 2; i++) {
                tasks_report_anew(&s);
                assert_int_equal(tasks_progress(&s, tasks_find(&s, 1)).acked, 10);
                assert_int_equal(told(&s, 1), 'b');
        }
        assert_null(tasks_take(&s, &anybody));
        /* Granted again, it is a task as any other. */
        assert_int_equal(give(&s, 1, 100, 10), 1);
        tasks_report_anew(&s);
        assert_int_equal(told(&s, 1), 'r');
        assert_int_equal(tasks_take(&s, &anybody)->from.position, 10);
        tasks_done(&s);
}

/* A failed one that is granted once more goes on behind what its trainer has of it. */
static void test_failed(void **state) {
        struct tasks s;
        struct task *t;

        tasks_init(&s, ACK_EXPLICIT);
        give(&s, 1, 100, 0);
        t = tasks_take(&s, &anybody);
        deliver(&s, t, 50, false);
        assert_int_equal(tasks_ack(&s, t, at(20), 0), 0);
        tasks_fail(&s, t, "x: broken");
        assert_string_equal(tasks_progress(&s, t).error, "x: broken");
        assert_int_equal(told(&s, 1), 'f');
        tasks_report_all(&s);
        assert_int_equal(told(&s, 1), '-'); /* said once: each time counts */
        assert_int_equal(tasks_ack(&s, t, at(40), 0), 0);
        assert_int_equal(give(&s, 1, 100, 20), 1);
        assert_null(tasks_take(&s, &somebody));
        t = tasks_take(&s, &anybody);
        assert_true(t->from.position == 50 && t->acked.position == 40);
        /* What the trainer itself could not use is delivered again. */
        deliver(&s, t, 70, false);
        tasks_break(&s, t, "no");
        assert_int_equal(told(&s, 1), 'f');
        assert_int_equal(give(&s, 1, 100, 40), 1);
        t = tasks_take(&s, &somebody);
        assert_int_equal(t->from.position, 40);
        tasks_fail(&s, t, "again");
        tasks_done(&s);
}

static void test_checkpoint(void **state) {
        struct tasks s;
        struct task *t;

        tasks_init(&s, ACK_CHECKPOINT);
        give(&s, 1, 100, 10);
        give(&s, 2, 100, 0);
        give(&s, 3, 100, 50);
        tasks_resume(&s, tasks_find(&s, 1), (struct task_mark){ 30, 2 });
        tasks_resume(&s, tasks_find(&s, 2), (struct task_mark){ TASK_TO_END, 0 });
        tasks_resume(&s, tasks_find(&s, 3), at(20)); /* not as far as is known */
        assert_int_equal(told(&s, 2), 'd');
        assert_int_equal(tasks_find(&s, 2)->acked.position, 100);
        t = tasks_take(&s, &anybody);
        assert_true(t->id == 1 && t->from.position == 30 && t->from.skip == 2);
        t = tasks_take(&s, &anybody);
        assert_true(t->id == 3 && t->from.position == 50);
        tasks_done(&s);
}

static void test_drop(void **state) {
        struct tasks s;
        struct task *t;

        tasks_init(&s, ACK_RELEASE);
        give(&s, 1, 100, 0);
        give(&s, 2, 100, 0);
        tasks_drop(&s, tasks_find(&s, 2));
        assert_null(tasks_find(&s, 2));
        t = tasks_take(&s, &anybody);
        t->busy = true;
        tasks_drop(&s, t);
        assert_null(tasks_find(&s, 1));
        tasks_delivered(&s, t, at(10)); /* whoever is busy with it does not know yet */
        tasks_put_back(&s, t);
        assert_int_equal(give(&s, 1, 100, 0), 0);
        tasks_idle(&s, t);
        assert_int_equal(give(&s, 1, 100, 0), 1);
        tasks_done(&s);
}

static void test_empty(void **state) {
        struct tasks s;
        struct task *t;

        tasks_init(&s, ACK_CHECKPOINT);
        give(&s, 1, 0, 0);
        t = tasks_take(&s, &anybody);
        tasks_whole(&s, t);
        assert_int_equal(told(&s, 1), 'd');
        /* Records begin later than the task does. */
        give(&s, 2, 100, 10);
        t = tasks_take(&s, &anybody);
        tasks_begin(t, at(100));
        tasks_whole(&s, t);
        assert_int_equal(told(&s, 2), 'd');
        tasks_done(&s);
}

static void test_credits(void **state) {
        struct tasks s;

        tasks_init(&s, ACK_LAG);
        assert_int_equal(tasks_credits(&s, 1, 0), TASKS_PREFETCH);
        assert_int_equal(tasks_credits(&s, 4, 0), 4 * TASKS_PREFETCH);
        give(&s, 1, 1u << 30, 0);
        assert_int_equal(tasks_credits(&s, 1, 0), 1); /* large ones are held in twos */
        give(&s, 2, 1u << 30, 0);
        assert_int_equal(tasks_credits(&s, 1, 0), 0);
        assert_int_equal(tasks_credits(&s, 2, 0), 2);
        assert_int_equal(tasks_credits(&s, 1, 3), 3); /* those who wait are served, whatever others hold */
        tasks_done(&s);
        tasks_init(&s, ACK_LAG);
        give(&s, 1, 100, 0);
        give(&s, 2, 100, 0);
        assert_int_equal(tasks_credits(&s, 1, 0), 0); /* nobody knows whether they are read */
        give(&s, 3, 10000, 0);
        tasks_read(&s, tasks_find(&s, 3), 10000, 0);
        assert_int_equal(tasks_credits(&s, 1, 0), TASKS_CREDITS_MAX); /* small ones by the dozen */
        s.last = true;
        assert_int_equal(tasks_credits(&s, 1, 0), 0);
        tasks_done(&s);
}

static void test_memory(void **state) {
        struct tasks s;

        tasks_init(&s, ACK_READ);
        for (uint64_t i = 1; i <= TASKS_OVER_MAX + 100; i++) {
                struct task *t;

                give(&s, i, 1, 0);
                t = tasks_take(&s, &anybody);
                deliver(&s, t, 1, true);
                assert_int_equal(tasks_ack(&s, t, at(1), 1), 0);
                while (s.dirty)
                        tasks_reported(&s, s.dirty, false);
        }
        assert_int_equal(s.n_over, TASKS_OVER_MAX);
        assert_int_equal(s.n_held, 0);
        assert_int_equal(s.n_unread, 0);
        assert_int_equal(s.unread_bytes, 0);
        tasks_report_all(&s);
        tasks_done(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_life),      cmocka_unit_test(test_exit),
                cmocka_unit_test(test_give_back), cmocka_unit_test(test_again),
                cmocka_unit_test(test_failed),    cmocka_unit_test(test_checkpoint),
                cmocka_unit_test(test_drop),      cmocka_unit_test(test_empty),
                cmocka_unit_test(test_credits),   cmocka_unit_test(test_memory),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
