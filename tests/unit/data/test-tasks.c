/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/data/tasks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "lib/base/cleanup.h"

struct holder {
        struct task *leases;
};

static struct task *add(struct task_table *t, const char *path, uint64_t size) {
        struct task *task = NULL;

        assert_int_equal(task_add(t, 0, path, size, 1, 2, &task), 0);
        return task;
}

static void test_order(void **state) {
        struct task_table t = { .max_attempts = 2 };
        struct holder a = {}, b = {};
        struct task *one = add(&t, "/1", 10), *two = add(&t, "/2", 20), *three = add(&t, "/3", 30);

        assert_int_equal(one->id, 1);
        assert_int_equal(three->id, 3);
        assert_ptr_equal(task_get(&t, 2), two);
        assert_null(task_get(&t, 0));
        assert_null(task_get(&t, 4));
        assert_null(task_get(&t, UINT64_MAX));
        assert_ptr_equal(task_lease(&t, &a, &a.leases), one);
        assert_ptr_equal(task_lease(&t, &b, &b.leases), two);
        assert_ptr_equal(one->holder, &a);
        /* What comes back goes first. */
        task_return(&t, one, &a.leases);
        assert_null(a.leases);
        assert_null(one->holder);
        assert_ptr_equal(task_lease(&t, &b, &b.leases), one);
        assert_ptr_equal(task_lease(&t, &a, &a.leases), three);
        assert_null(task_lease(&t, &a, &a.leases));
        assert_false(task_fail(&t, two, &b.leases, "bad"));
        assert_string_equal(two->error, "bad");
        assert_ptr_equal(task_lease(&t, &a, &a.leases), two);
        task_table_done(&t);
}

/* A new holder goes on from what was acknowledged; the loss of a holder is no attempt. */
static void test_resume(void **state) {
        struct task_table t = { .max_attempts = 2 };
        struct holder a = {};
        struct task *task = add(&t, "/1", 1000);

        for (uint64_t round = 1; round <= 5; round++) {
                assert_ptr_equal(task_lease(&t, &a, &a.leases), task);
                assert_true(task_progress_update(&t, task, round * 100 + 50, round * 100));
                assert_int_equal(t.read, round * 100 + 50);
                task_return(&t, task, &a.leases);
                assert_int_equal(task->read, round * 100);
                assert_int_equal(t.read, round * 100);
                assert_int_equal(t.acked, round * 100);
                assert_int_equal(task->attempts, 0);
        }
        /* Offsets never go back, nor past the end; only the acknowledged part is durable. */
        assert_ptr_equal(task_lease(&t, &a, &a.leases), task);
        assert_false(task_progress_update(&t, task, 700, 300));
        assert_int_equal(task->acked, 500);
        assert_true(task_progress_update(&t, task, 5000, 5000));
        assert_int_equal(task->acked, 1000);
        assert_int_equal(t.acked, 1000);
        task_finish(&t, task, &a.leases);
        assert_int_equal(task->place, TASK_FINISHED);
        assert_null(a.leases);
        task_table_done(&t);
}

static void test_attempts(void **state) {
        static const uint32_t max[] = { 1, 2, 5 };

        for (size_t i = 0; i < ELEMENTSOF(max); i++) {
                struct task_table t = { .max_attempts = max[i] };
                struct holder a = {};
                struct task *task = add(&t, "/1", 10);
                for (uint32_t k = 1; k <= max[i]; k++) {
                        assert_ptr_equal(task_lease(&t, &a, &a.leases), task);
                        assert_int_equal(task_fail(&t, task, &a.leases, NULL), k == max[i]);
                        assert_null(a.leases);
                }
                assert_int_equal(t.n_place[TASK_GAVE_UP], 1);
                assert_null(task_lease(&t, &a, &a.leases));
                /* Said again: nothing new. */
                assert_false(task_fail(&t, task, &a.leases, "again"));
                assert_int_equal(task->attempts, max[i]);
                task_table_done(&t);
        }
}

/* A failure that is reported late does not undo what is done. */
static void test_late_failure(void **state) {
        struct task_table t = { .max_attempts = 1 };
        struct holder a = {};
        struct task *task = add(&t, "/1", 10);

        assert_ptr_equal(task_lease(&t, &a, &a.leases), task);
        task_finish(&t, task, &a.leases);
        assert_false(task_fail(&t, task, &a.leases, "late"));
        assert_int_equal(task->place, TASK_FINISHED);
        assert_int_equal(task->attempts, 0);
        assert_int_equal(t.n_place[TASK_FINISHED], 1);
        task_return(&t, task, &a.leases);
        task_finish(&t, task, &a.leases);
        assert_int_equal(t.n_place[TASK_FINISHED], 1);
        task_table_done(&t);
}

static void test_restore(void **state) {
        struct task_table t = { .max_attempts = 2 };
        struct holder a = {};
        struct task *done = add(&t, "/done", 10), *failed = add(&t, "/failed", 10),
                    *half = add(&t, "/half", 10);

        task_restore(&t, done, TASK_FINISHED, 10, 0);
        task_restore(&t, failed, TASK_GAVE_UP, 3, 2);
        task_restore(&t, half, TASK_PENDING, 4, 1);
        assert_int_equal(t.n_place[TASK_FINISHED], 1);
        assert_int_equal(t.n_place[TASK_GAVE_UP], 1);
        assert_int_equal(t.n_place[TASK_PENDING], 1);
        assert_int_equal(t.acked, 17);
        assert_ptr_equal(task_lease(&t, &a, &a.leases), half);
        assert_null(task_lease(&t, &a, &a.leases));
        assert_true(task_fail(&t, half, &a.leases, "second")); /* the attempt before counts */
        task_table_done(&t);
}

static void test_adopt(void **state) {
        struct task_table t = { .max_attempts = 2 };
        struct holder a = {}, b = {};
        struct task *task;

        (void)add(&t, "/1", 10);
        task = add(&t, "/2", 10);
        task_adopt(&t, task, &a, &a.leases);
        assert_ptr_equal(a.leases, task);
        /* Who says so second does not get it. */
        task_adopt(&t, task, &b, &b.leases);
        assert_ptr_equal(task->holder, &a);
        assert_null(b.leases);
        task_table_done(&t);
}

static void test_empty(void **state) {
        struct task_table t = {};

        assert_null(task_lease(&t, &t, &t.pending));
        assert_null(task_get(&t, 1));
        task_table_done(&t);
        assert_string_equal(task_place_to_string(TASK_PENDING), "PENDING");
        assert_string_equal(task_place_to_string(TASK_FINISHED), "DONE");
        assert_null(task_place_to_string(_TASK_PLACE_MAX));
}

/* ---- any sequence of operations ---- */

#define HOLDERS 5

static void check(const struct task_table *t, struct holder *holders) {
        uint64_t n[_TASK_PLACE_MAX] = {}, bytes = 0, read = 0, acked = 0;
        size_t pending = 0, leased = 0;
        struct task *task;

        for (size_t i = 0; i < t->n; i++) {
                task = t->tasks[i];
                assert_int_equal(task->id, i + 1);
                n[task->place]++;
                bytes += task->size;
                read += task->read;
                acked += task->acked;
                assert_true(task->read <= task->size && task->acked <= task->size);
                assert_int_equal(task->place == TASK_LEASED, task->holder != NULL);
                assert_true(task->place != TASK_FINISHED || task->acked == task->size);
                assert_true(task->place != TASK_GAVE_UP || task->attempts >= t->max_attempts);
        }
        for (int p = 0; p < _TASK_PLACE_MAX; p++)
                assert_int_equal(t->n_place[p], n[p]);
        assert_int_equal(t->bytes, bytes);
        assert_int_equal(t->read, read);
        assert_int_equal(t->acked, acked);
        DL_FOREACH (t->pending, task) {
                assert_int_equal(task->place, TASK_PENDING);
                pending++;
        }
        assert_int_equal(pending, n[TASK_PENDING]);
        /* On its holder's list and on no other: the lists together are as long as there are leases. */
        for (int h = 0; h < HOLDERS; h++)
                DL_FOREACH2(holders[h].leases, task, lease_next) {
                        assert_ptr_equal(task->holder, holders + h);
                        leased++;
                }
        assert_int_equal(leased, n[TASK_LEASED]);
}

static void test_random(void **state) {
        for (unsigned seed = 1; seed <= 20; seed++) {
                struct task_table t = { .max_attempts = 1 + seed % 4 };
                struct holder holders[HOLDERS] = {};
                uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15);
                for (int step = 0; step < 1500; step++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        struct holder *h = holders + x % HOLDERS;
                        uint64_t a = (x >> 8) % 1200, b = (x >> 24) % 1200;
                        struct task *task = task_get(&t, (x >> 40) % (t.n + 2));
                        struct task **leases =
                                task && task->holder ? &((struct holder *)task->holder)->leases : &h->leases;
                        switch ((x >> 4) % 10) {
                        case 0:
                                if (t.n < 60)
                                        (void)add(&t, "/data/part", a);
                                break;
                        case 1:
                        case 2:
                        case 3: {
                                struct task *first = t.pending, *got = task_lease(&t, h, &h->leases);
                                assert_ptr_equal(got, first);
                                break;
                        }
                        case 4:
                                if (task)
                                        task_adopt(&t, task, h, &h->leases);
                                break;
                        case 5:
                                if (task)
                                        (void)task_progress_update(&t, task, MAX(a, b), MIN(a, b));
                                break;
                        case 6:
                                if (task && x & (UINT64_C(1) << 60))
                                        task_finish(&t, task, leases);
                                break;
                        case 7:
                                if (task)
                                        (void)task_fail(&t, task, leases, "why");
                                break;
                        case 8:
                                if (task)
                                        task_return(&t, task, leases);
                                break;
                        case 9: /* the holder goes */
                                while (h->leases)
                                        task_return(&t, h->leases, &h->leases);
                                break;
                        }
                        check(&t, holders);
                }
                task_table_done(&t);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),    cmocka_unit_test(test_resume),
                cmocka_unit_test(test_attempts), cmocka_unit_test(test_late_failure),
                cmocka_unit_test(test_restore),  cmocka_unit_test(test_adopt),
                cmocka_unit_test(test_empty),    cmocka_unit_test(test_random),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
