/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a job at random: listed, granted, reported, lost and found, for several seeds, beside the truth
 * that data-world.c keeps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "masterd/data/permute.h"
#include "tests/kit/data-chaos.h"

/* Nothing is lost with masterd alone: its executors know. */
static void test_exactly_once(void **state) {
        for (uint64_t seed = 1; seed <= 3; seed++)
                for (size_t i = 0; i < WORLD_CONFIGS; i++) {
                        struct world w;
                        struct data_totals totals;
                        world_new(&w, seed, world_configs + i, 60, 4, 1 + seed);
                        world_run(&w, &(struct world_chaos){ .restart = 200, .trim = 30 }, 2500, true);
                        world_check_all_read(&w, true);
                        data_totals(w.d, &totals);
                        assert_int_equal(totals.done, totals.tasks);
                        world_free(&w);
                }
}

static void test_executors_die(void **state) {
        for (uint64_t seed = 1; seed <= 3; seed++)
                for (size_t i = 0; i < WORLD_CONFIGS; i++) {
                        struct world w;
                        world_new(&w, seed, world_configs + i, 60, 3, 5);
                        world_run(&w, &(struct world_chaos){ .die = 40, .trim = 40 }, 3000, true);
                        world_check_all_read(&w, true);
                        world_free(&w);
                }
}

static void test_everything_breaks(void **state) {
        for (uint64_t seed = 1; seed <= 3; seed++)
                for (size_t i = 0; i + 1 < WORLD_CONFIGS; i++) {
                        struct world w;
                        world_new(&w, seed, world_configs + i, 60, 3, 7);
                        world_run(&w, &(struct world_chaos){ .restart = 150, .die = 40, .trim = 40 }, 2500,
                                  false);
                        world_check_all_read(&w, false);
                        world_free(&w);
                }
}

static void test_tasks_fail(void **state) {
        for (uint64_t seed = 1; seed <= 3; seed++)
                for (size_t i = 0; i < WORLD_CONFIGS; i++) {
                        struct world w;
                        struct data_totals totals;
                        world_new(&w, seed, world_configs + i, 60, 3, 7);
                        world_run(&w,
                                  &(struct world_chaos){ .restart = 150, .fail = 6, .skip = 20, .trim = 50 },
                                  2500, false);
                        data_totals(w.d, &totals);
                        assert_int_equal(totals.done + totals.failed + totals.skipped, totals.tasks);
                        world_restart(&w);
                        world_check_totals(&w, false);
                        world_free(&w);
                }
}

/* What each number means does not depend on who asks, how many they are, or what was lost meanwhile. */
static void test_same_order(void **state) {
        static const size_t holders[] = { 1, 3, 17, 3 };

        for (size_t i = 0; i < WORLD_CONFIGS; i++) {
                struct world first, w;
                struct world_chaos none = {};
                world_new(&first, 99, world_configs + i, 80, 4, holders[0]);
                world_run(&first, &none, 2000, true);
                for (size_t k = 1; k < 4; k++) {
                        struct world_chaos c = { .restart = k == 3 ? 60 : 0, .die = k == 3 ? 50 : 0 };
                        world_new(&w, 99, world_configs + i, 80, 4, holders[k]);
                        w.random = 1000 + k;
                        world_run(&w, &c, 3000, false);
                        assert_int_equal(w.n_meanings, first.n_meanings);
                        for (size_t m = 0; m < w.n_meanings; m++)
                                assert_memory_equal(w.meanings + m, first.meanings + m, sizeof(*w.meanings));
                        world_free(&w);
                }
                world_free(&first);
        }
}

/* After a restart it goes on in the order of the numbers, also where nobody had been granted anything yet. */
static void test_goes_on_in_order(void **state) {
        struct world w;
        struct held *h;
        uint64_t last = 0;

        world_new(&w, 3, world_configs, 400, 1, 2);
        world_list_all(&w);
        for (unsigned i = 0; i < 1500; i++) {
                (void)world_prepare(&w, 100);
                world_sync(&w);
                h = world_lease(&w, 0);
                assert_non_null(h);
                assert_int_equal(h->id, last + 1);
                last = h->id;
                if (i % 7 != 0)
                        world_progress(&w, 0, h, 0, TASK_DONE);
                if (i % 100 == 99)
                        world_restart(&w);
        }
        world_free(&w);
}

static void test_not_before_durable(void **state) {
        struct world w;

        world_new(&w, 3, world_configs, 100, 1, 1);
        world_list_all(&w);
        (void)world_prepare(&w, 10);
        assert_true(data_urgent(w.d));
        assert_null(world_lease(&w, 0));
        world_flush(&w);
        assert_false(data_urgent(w.d));
        assert_null(world_lease(&w, 0));
        world_durable(&w, 1);
        assert_non_null(world_lease(&w, 0));
        world_free(&w);
}

static struct task *lease_one(struct world *w, size_t holder) {
        struct held *h;

        (void)world_prepare(w, 10);
        world_sync(w);
        h = world_lease(w, holder);
        assert_non_null(h);
        return data_task(w->d, h->id);
}

static void one_file(struct world *w, const struct data_file *f) {
        const struct data_config c = {
                .n_sources = 1, .order = ORDER_LISTED, .epochs = 1, .sample_ppm = 1000000, .max_attempts = 2
        };

        world_new(w, 1, &c, 0, 1, 2);
        w->n_files[0] = 1;
        w->files[0][0].f = *f;
        memcpy(w->files[0][0].path, f->path, strlen(f->path) + 1);
        w->files[0][0].f.path = w->files[0][0].path;
        w->files[0][0].acked = calloc(1, WORLD_SIZE);
        world_list_all(w);
}

static void test_trim_is_durable_first(void **state) {
        struct world w;
        struct held *h;
        struct data_totals totals;

        one_file(&w, &(struct data_file){ .path = "/f", .size = 100, .last = 100, .split = 1000 });
        (void)lease_one(&w, 0);
        h = w.holders[0].held;
        world_progress(&w, 0, h, 10, TASK_RUNNING);
        world_trim(&w, 0, h, 40);
        assert_true(data_urgent(w.d));
        assert_null(world_lease(&w, 1));
        /* Lost with masterd, it is cut again when the holder says so again. */
        world_restart(&w);
        data_totals(w.d, &totals);
        assert_int_equal(totals.tasks, 2);
        assert_int_equal(totals.bytes, 100);
        assert_null(world_lease(&w, 1));
        world_sync(&w);
        h = world_lease(&w, 1);
        assert_non_null(h);
        assert_true(h->id & TASK_SPLIT_OFF);
        assert_int_equal(h->start, 40);
        assert_int_equal(h->end, 100);
        world_restart(&w);
        world_finish(&w);
        world_check_all_read(&w, true);
        world_check_totals(&w, true);
        world_free(&w);
}

static void test_streams_take_turns(void **state) {
        struct world w;
        struct task_progress p = { .end = TASK_TO_END, .state = TASK_RETURNED, .error = "" };
        enum data_event event;
        struct task *t;

        one_file(&w, &(struct data_file){ .path = "topic/0", .size = TASK_UNKNOWN, .last = TASK_TO_END });
        t = lease_one(&w, 0);
        p.task = t->id;
        p.read = p.acked = 20;
        assert_int_equal(data_report(w.d, t, &w.holders[0].leases, &p, w.now, &event), 0);
        assert_int_equal(data_next_due(w.d), UINT64_MAX);
        assert_ptr_equal(data_lease(w.d, &w, &w.holders[0].leases, w.now), t);
        assert_int_equal(t->acked, 20);
        assert_int_equal(data_report(w.d, t, &w.holders[0].leases, &p, w.now, &event), 0);
        assert_int_equal(data_next_due(w.d), w.now + DATA_IDLE_USEC);
        assert_null(data_lease(w.d, &w, &w.holders[0].leases, w.now));
        assert_false(data_exhausted(w.d));
        assert_ptr_equal(data_lease(w.d, &w, &w.holders[0].leases, w.now + DATA_IDLE_USEC), t);
        assert_true(data_exhausted(w.d));
        assert_false(data_over(w.d));
        world_free(&w);
}

/* What topics bring later comes in the order in which it comes, which no listing tells afterwards. */
static void test_late_partitions(void **state) {
        const struct data_config c = {
                .n_sources = 2, .order = ORDER_LISTED, .epochs = 1, .sample_ppm = 1000000, .max_attempts = 2
        };

        for (unsigned told = 0; told < 8; told++) { /* of which something is acknowledged */
                struct world w;
                world_new(&w, 1, &c, 8, 1, 2);
                world_topics(&w);
                for (uint32_t s = 2; s > 0; s--) {
                        world_list(&w, s - 1, 1);
                        (void)world_prepare(&w, 10);
                        world_sync(&w);
                }
                for (unsigned i = 0; i < 4; i++) {
                        struct held *h = world_lease(&w, 0);
                        assert_non_null(h);
                        assert_int_equal(h->source, i == 1 || i == 2);
                        if (i > 0 && told >> (i - 1) & 1)
                                world_progress(&w, 0, h, 20, TASK_RUNNING);
                }
                world_sync(&w);
                world_restart(&w);
                world_sync(&w);
                world_restart(&w);
                world_free(&w);
        }
}

static void test_reports_are_bounded(void **state) {
        struct world w;
        struct task_progress p = { .read = UINT64_MAX, .acked = 5000, .end = TASK_TO_END, .error = "" };
        enum data_event event;
        struct task *t;

        one_file(&w, &(struct data_file){ .path = "/f", .size = 100, .last = 100 });
        t = lease_one(&w, 0);
        p.task = t->id;
        assert_int_equal(data_report(w.d, t, &w.holders[0].leases, &p, 1, &event), 0);
        assert_int_equal(t->acked, 100);
        assert_int_equal(t->read, 100);
        p.acked = p.read = 1; /* late */
        assert_int_equal(data_report(w.d, t, &w.holders[0].leases, &p, 1, &event), 0);
        assert_int_equal(t->acked, 100);
        world_check_totals(&w, false);
        world_free(&w);
}

static void test_ends_are_learnt(void **state) {
        struct world w;
        struct task_progress p = {
                .read = 70, .acked = 70, .end = TASK_TO_END, .state = TASK_DONE, .error = ""
        };
        enum data_event event;
        struct data_totals totals;
        struct task *t;

        /* compressed */
        one_file(&w, &(struct data_file){ .path = "/f.gz", .size = 20, .last = TASK_TO_END });
        data_totals(w.d, &totals);
        assert_int_equal(totals.bytes, 20);
        t = lease_one(&w, 0);
        p.task = t->id;
        /* More has come out than lies there, and nobody knows yet how much it will be ... */
        assert_int_equal(
                data_report(w.d, t, &w.holders[0].leases,
                            &(struct task_progress){
                                    .task = t->id, .read = 50, .acked = 30, .end = TASK_TO_END, .error = "" },
                            1, &event),
                0);
        data_totals(w.d, &totals);
        assert_int_equal(totals.bytes, 20);
        assert_int_equal(totals.read, 20);
        assert_true(t->end == TASK_TO_END);
        /* ... until the holder has come to its end, though not all of it counts. */
        assert_int_equal(data_report(w.d, t, &w.holders[0].leases,
                                     &(struct task_progress){
                                             .task = t->id, .read = 70, .acked = 40, .end = 70, .error = "" },
                                     1, &event),
                         0);
        data_totals(w.d, &totals);
        assert_int_equal(t->end, 70);
        assert_int_equal(totals.bytes, 70);
        assert_int_equal(totals.read, 70);
        assert_int_equal(totals.acked, 40);
        p.end = 70;
        assert_int_equal(data_report(w.d, t, &w.holders[0].leases, &p, 1, &event), 1);
        data_totals(w.d, &totals);
        assert_int_equal(totals.bytes, 70);
        assert_int_equal(totals.acked, 70);
        assert_true(data_over(w.d));
        assert_null(data_task(w.d, 1));
        assert_true(data_was_made(w.d, 1));
        assert_false(data_was_made(w.d, 2));
        assert_false(data_was_made(w.d, 0));
        assert_false(data_was_made(w.d, TASK_SPLIT_OFF | 1));
        world_free(&w);
}

static void test_fails_until_set_aside(void **state) {
        struct world w;
        struct task_progress p = {
                .read = 7, .acked = 7, .end = TASK_TO_END, .state = TASK_FAILED, .error = "bad"
        };
        enum data_event event;
        struct data_totals totals;
        struct task *t;

        one_file(&w, &(struct data_file){ .path = "/f", .size = 100, .last = 100 });
        for (unsigned i = 0; i < 2; i++) {
                t = lease_one(&w, 0);
                p.task = t->id;
                assert_int_equal(t->failures, i);
                assert_int_equal(data_report(w.d, t, &w.holders[0].leases, &p, 1, &event), 0);
                assert_int_equal(event, i == 0 ? DATA_EVENT_FAILED : DATA_EVENT_GAVE_UP);
                assert_string_equal(t->error, "bad");
                world_die(&w, 0);
        }
        assert_true(data_over(w.d));
        data_totals(w.d, &totals);
        assert_int_equal(totals.failed, 1);
        assert_int_equal(totals.bytes_failed, 93);
        world_sync(&w);
        world_restart(&w);
        t = data_task(w.d, 1);
        assert_int_equal(t->place, TASK_GAVE_UP);
        assert_string_equal(t->error, "bad");
        assert_int_equal(data_retry(w.d, t), 0);
        assert_int_equal(data_retry(w.d, t), -EBUSY);
        assert_int_equal(lease_one(&w, 1)->acked, 7);
        data_skip(w.d, t, &w.holders[1].leases);
        assert_null(w.holders[1].leases);
        assert_true(data_over(w.d));
        data_totals(w.d, &totals);
        assert_int_equal(totals.skipped, 1);
        assert_int_equal(totals.bytes, 7);
        world_free(&w);
}

static void test_nothing_to_do(void **state) {
        struct world w;

        world_new(&w, 1, world_configs, 0, 1, 1);
        assert_false(data_exhausted(w.d));
        assert_int_equal(world_prepare(&w, 10), DATA_WAITS);
        for (uint32_t i = 0; i < 3; i++) /* there is no file, so nobody has said it */
                data_scanned(w.d, i);
        assert_int_equal(world_prepare(&w, 10), DATA_OVER);
        assert_true(data_over(w.d));
        world_free(&w);
}

static void test_refused(void **state) {
        struct data *d = NULL;
        struct data_config c = world_configs[0];
        struct data_file f = { .path = "/f", .size = 1, .last = 1, .batch = 5 };

        c.epochs = 0;
        assert_int_equal(data_new(&c, &d), -EINVAL);
        c = world_configs[0];
        c.sample_ppm = 1000001;
        assert_int_equal(data_new(&c, &d), -EINVAL);
        assert_int_equal(data_new(world_configs, &d), 0);
        assert_int_equal(data_add(d, 3, &f), -EINVAL);
        assert_int_equal(data_add(d, 0, &f), 0);
        f.batch = 4;
        assert_int_equal(data_add(d, 0, &f), -EINVAL);
        data_passed(d, 0, 7);
        f.batch = 6;
        assert_int_equal(data_add(d, 0, &f), -EINVAL);
        f.batch = 7;
        f.first = 2;
        assert_int_equal(data_add(d, 0, &f), -EINVAL);
        assert_null(data_free(d));
}

static bool source_at(const struct data *d, uint32_t source, uint64_t *ret) {
        uint64_t at[2];

        if (!data_at(d, at))
                return false;
        *ret = at[source];
        return *ret != UINT64_MAX;
}

/* The first batch that is not through: what is held counts, what failed for good does not. */
static void test_at(void **state) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
                const struct data_config c = { .n_sources = 2,
                                               .order = ORDER_LISTED,
                                               .epochs = 1,
                                               .sample_ppm = 1000000,
                                               .max_attempts = 1 };
                struct world w;
                uint64_t at, before[2] = {};

                world_new(&w, seed, &c, 14, 12, 3);
                assert_false(source_at(w.d, 0, &at)); /* nothing is known of it */
                world_list_all(&w);
                for (unsigned i = 0; i < 4000 && !data_over(w.d); i++) {
                        world_step(&w, &(struct world_chaos){ .fail = 10 }, false);
                        if (i % 300 == 299)
                                world_restart(&w);
                        for (uint32_t s = 0; s < 2; s++) {
                                uint64_t truth = UINT64_MAX;
                                if (!source_at(w.d, s, &at))
                                        continue;
                                for (struct task *t = data_next_task(w.d, 0); t;
                                     t = data_next_task(w.d, t->id))
                                        if (t->source == s && t->place != TASK_GAVE_UP)
                                                truth = MIN(truth, t->what.batch);
                                assert_true(at <= truth);
                                assert_in_range(at, 2026010100, 2026010111);
                                before[s] = MAX(before[s], at);
                        }
                }
                world_finish(&w);
                assert_false(source_at(w.d, 0, &at));
                assert_true(before[0] > 2026010105 || before[1] > 2026010105);
                world_free(&w);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_at),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_nothing_to_do),
                cmocka_unit_test(test_not_before_durable),
                cmocka_unit_test(test_reports_are_bounded),
                cmocka_unit_test(test_ends_are_learnt),
                cmocka_unit_test(test_fails_until_set_aside),
                cmocka_unit_test(test_streams_take_turns),
                cmocka_unit_test(test_late_partitions),
                cmocka_unit_test(test_trim_is_durable_first),
                cmocka_unit_test(test_goes_on_in_order),
                cmocka_unit_test(test_exactly_once),
                cmocka_unit_test(test_executors_die),
                cmocka_unit_test(test_everything_breaks),
                cmocka_unit_test(test_tasks_fail),
                cmocka_unit_test(test_same_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
