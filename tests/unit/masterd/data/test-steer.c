/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that are paused, resumed, removed and re-weighted while their tasks are given out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "tests/kit/data-chaos.h"

/* Steered at any moment, and restarted at any other: every byte once, and each number means what it did. */
static void test_steered(void **state) {
        for (uint64_t seed = 1; seed <= 6; seed++)
                for (size_t i = 0; i < WORLD_CONFIGS; i++) {
                        struct world w;
                        struct data_totals totals;
                        world_new(&w, seed, world_configs + i, 100, 4, 1 + seed);
                        world_run(&w,
                                  &(struct world_chaos){
                                          .restart = 150, .trim = 30, .steer = 10 + (unsigned)seed * 9 },
                                  2500, true);
                        world_check_all_read(&w, true);
                        data_totals(w.d, &totals);
                        assert_int_equal(totals.done, totals.tasks);
                        world_free(&w);
                        world_new(&w, seed, world_configs + i, 100, 3, 7);
                        world_run(&w,
                                  &(struct world_chaos){ .restart = 150, .die = 40, .trim = 40, .steer = 30 },
                                  2500, false);
                        world_check_all_read(&w, false);
                        world_free(&w);
                }
}

/* Sources that are added at any moment, in any epoch, and whose adding masterd may forget. */
static void test_appended(void **state) {
        for (uint64_t seed = 1; seed <= 12; seed++)
                for (size_t i = 0; i + 1 < WORLD_CONFIGS; i++) {
                        struct world w;
                        struct data_totals totals;
                        world_new(&w, seed, world_configs + i, 60 + 10 * seed, 1 + seed % 3, 1 + seed % 5);
                        world_later(&w, 1 + (uint32_t)(seed % (world_configs[i].n_sources - 1)));
                        world_run(&w,
                                  &(struct world_chaos){ .restart = 100,
                                                         .trim = 30,
                                                         .steer = seed % 2 ? 60 : 0,
                                                         .append = 300 },
                                  2500, true);
                        world_check_all_read(&w, true);
                        data_totals(w.d, &totals);
                        assert_int_equal(totals.done, totals.tasks);
                        world_free(&w);
                }
}

static struct held *lease_next(struct world *w) {
        (void)world_prepare(w, 200);
        world_sync(w);
        return world_lease(w, 0);
}

/* What was made ahead and nobody has had is no matter: a step is felt with the next task. */
static void test_steered_at_once(void **state) {
        const struct data_config two = { .n_sources = 2,
                                         .epochs = 1,
                                         .sample_ppm = 1000000,
                                         .max_attempts = 3,
                                         .weights = world_configs[2].weights };
        unsigned n[2] = {};
        struct world w;
        struct held *first, *h;

        world_new(&w, 5, &two, 300, 1, 1);
        world_list_all(&w);
        while (!(first = lease_next(&w)) || first->source != 1)
                assert_non_null(first);
        for (unsigned i = 0; i < 10; i++)
                assert_non_null(lease_next(&w));
        assert_int_equal(data_steer(w.d, 1, &(struct data_steering){ .paused = true }), 0);
        for (unsigned i = 0; i < 20; i++)
                assert_int_equal(lease_next(&w)->source, 0);
        /* What comes back waits as well. */
        world_progress(&w, 0, first, 0, TASK_RETURNED);
        for (unsigned i = 0; i < 20; i++)
                assert_int_equal(lease_next(&w)->source, 0);
        assert_int_equal(data_steer(w.d, 1, &(struct data_steering){}), 0);
        assert_int_equal(lease_next(&w)->source, 1); /* first in the queue */
        assert_int_equal(data_steer(w.d, 0, &(struct data_steering){ .weight = 9 }), 0);
        assert_int_equal(data_steer(w.d, 1, &(struct data_steering){ .weight = 1 }), 0);
        for (unsigned i = 0; i < 100; i++) {
                h = lease_next(&w);
                n[h->source]++;
        }
        assert_in_range(n[0], 89, 91);
        assert_int_equal(data_steer(w.d, 1, &(struct data_steering){ .paused = true }), 0);
        world_sync(&w);
        world_restart(&w);
        for (unsigned i = 0; i < 50; i++)
                assert_int_equal(lease_next(&w)->source, 0);
        world_free(&w);
}

/* Who waits for a paused source is told so, and the data is not over before. */
static void test_paused_is_not_over(void **state) {
        struct world w;
        struct held *h;

        world_new(&w, 8, world_configs, 30, 1, 1);
        world_list_all(&w);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(data_steer(w.d, i, &(struct data_steering){ .paused = true }), 0);
        assert_null(lease_next(&w));
        assert_int_equal(data_hold(w.d, w.now), DATA_HELD_PAUSED);
        assert_false(data_exhausted(w.d));
        assert_int_equal(data_steer(w.d, 0, &(struct data_steering){}), 0);
        while ((h = lease_next(&w))) {
                assert_int_equal(h->source, 0);
                world_progress(&w, 0, h, UINT64_MAX, TASK_DONE);
        }
        assert_false(data_over(w.d));
        world_resume_all(&w);
        world_finish(&w);
        world_check_all_read(&w, true);
        world_free(&w);
}

/* What is held of a source that is removed is read to its end; the rest is no part of the job any more. */
static void test_removed(void **state) {
        for (size_t i = 0; i < 4; i++)
                for (uint64_t seed = 1; seed <= 4; seed++) {
                        struct world w;
                        struct data_totals all, of;
                        uint32_t source = (uint32_t)(seed % world_configs[i].n_sources);
                        world_new(&w, seed, world_configs + i, 60, 2, 4);
                        world_list_all(&w);
                        for (unsigned k = 0; k < 400; k++)
                                world_step(&w, &(struct world_chaos){}, false);
                        assert_int_equal(data_steer(w.d, source, &(struct data_steering){ .removed = true }),
                                         0);
                        assert_int_equal(data_steer(w.d, source, &(struct data_steering){}), -ESTALE);
                        (void)world_prepare(&w, 10); /* what nobody holds is skipped */
                        w.n_skipped++;
                        world_check_totals(&w, false);
                        for (unsigned k = 0; k < 400; k++)
                                world_step(&w, &(struct world_chaos){}, false);
                        if (seed % 2) {
                                world_sync(&w);
                                world_restart(&w);
                        }
                        world_finish(&w);
                        world_check_totals(&w, false);
                        data_source_totals(w.d, source, &of);
                        assert_int_equal(of.tasks, of.done + of.skipped + of.failed);
                        assert_int_equal(of.bytes, of.acked);
                        data_totals(w.d, &all);
                        assert_int_equal(all.tasks, all.done + all.skipped + all.failed);
                        world_free(&w);
                }
}

/* Taken at any moment, a savepoint says where the steered order stands, and a job goes on from it. */
static void test_savepoint(void **state) {
        for (uint64_t seed = 1; seed <= 4; seed++)
                for (size_t i = 0; i < WORLD_CONFIGS; i++) {
                        _cleanup_free_ char *saved = NULL, *again = NULL, *error = NULL;
                        struct world w;
                        struct data *d;
                        int r;
                        world_new(&w, seed, world_configs + i, 200, 3, 4);
                        if (seed % 2 && w.n_all > 1)
                                world_later(&w, 1);
                        world_list_all(&w);
                        for (unsigned k = 0; k < 600; k++) {
                                world_step(&w, &(struct world_chaos){}, false);
                                if (k == 330 && w.n_first < w.n_all) {
                                        assert_int_equal(world_append(&w), 0);
                                        world_list_all(&w);
                                }
                                if (k % 50 == 0 && (k > 200 || seed % 2 == 0))
                                        assert_int_equal(data_steer(w.d, (uint32_t)(k / 50 % w.n_first),
                                                                    &(struct data_steering){
                                                                            .weight = 1 + k / 50,
                                                                            .paused = k / 50 % 3 == 0 }),
                                                         0);
                        }
                        assert_int_equal(data_save(w.d, &saved), 0);
                        assert_int_equal(data_new(&w.config, &d), 0);
                        for (uint32_t s = 0; s < w.config.n_sources; s++) {
                                for (size_t f = 0; f < w.listed[s]; f++)
                                        assert_int_equal(data_add(d, s, &w.files[s][f].f), 0);
                                data_scanned(d, s);
                        }
                        world_replace(&w, d);
                        assert_int_equal(data_load(w.d, saved, strlen(saved), &error), 0);
                        while ((r = data_restored(w.d)) == DATA_MISSING)
                                world_fill(&w);
                        assert_int_equal(r, DATA_READY);
                        assert_int_equal(data_save(w.d, &again), 0);
                        assert_string_equal(saved, again);
                        world_sync(&w);
                        world_restart(&w);
                        world_resume_all(&w);
                        world_finish(&w);
                        world_check_all_read(&w, true);
                        world_free(&w);
                }
}

/* Topics bring more while they are steered, and what came first cannot be told from the listing later: each
 * partition is given out once, and masterd comes up again. */
static void test_topics(void **state) {
        for (uint64_t seed = 1; seed <= 40; seed++) {
                size_t given = 0, listed = 0;
                struct world w;
                struct held *h;
                world_new(&w, seed, world_configs + (seed % 2 ? 0 : 2), 60, 1, 1);
                world_topics(&w);
                for (unsigned i = 0; i < 150; i++) {
                        uint32_t source = (uint32_t)world_random(&w, 3);
                        struct data_steering how = { .weight = (uint32_t)world_random(&w, 3),
                                                     .paused = world_random(&w, 2) };
                        if (world_random(&w, 3) > 0)
                                world_list(&w, source, world_random(&w, 3));
                        if (world_random(&w, 3) == 0)
                                (void)lease_next(&w);
                        if (world_random(&w, 4) == 0)
                                assert_int_equal(data_steer(w.d, (uint32_t)world_random(&w, 3), &how), 0);
                        world_sync(&w);
                        if (world_random(&w, 10) == 0)
                                world_restart(&w);
                }
                world_resume_all(&w);
                while (lease_next(&w))
                        ;
                DL_FOREACH (w.holders[0].held, h)
                        given++;
                for (uint32_t s = 0; s < 3; s++)
                        listed += w.listed[s];
                assert_int_equal(given, listed);
                world_sync(&w);
                world_restart(&w);
                assert_null(lease_next(&w));
                world_free(&w);
        }
}

/* Topics that are ended are over once nobody has their partitions; files of a source that ended are all read.
 */
static void test_ended(void **state) {
        const struct data_steering end = { .ended = true };
        struct data_totals totals;
        struct data_steering how;
        struct world w;
        struct held *h;
        size_t n;

        world_new(&w, 3, world_configs, 20, 1, 2);
        world_topics(&w);
        for (uint32_t s = 0; s < 3; s++)
                world_list(&w, s, SIZE_MAX);
        h = lease_next(&w);
        assert_non_null(h);
        world_progress(&w, 0, lease_next(&w), 0, TASK_RETURNED); /* it brought nothing: it rests */
        for (uint32_t s = 0; s < 3; s++)
                assert_int_equal(data_steer(w.d, s, &end), 0);
        assert_int_equal(data_steer(w.d, 0, &(struct data_steering){}), 0); /* goes not on */
        data_steering(w.d, 0, &how);
        assert_true(how.ended);
        (void)world_prepare(&w, 1000);
        w.n_skipped++;
        assert_null(lease_next(&w));
        assert_false(data_over(w.d)); /* one is held */
        world_sync(&w);
        world_restart(&w);
        data_steering(w.d, 0, &how);
        assert_true(how.ended);
        (void)world_prepare(&w, 1000);
        if (!data_over(w.d))
                world_progress(&w, 0, w.holders[0].held, 3, TASK_RETURNED);
        (void)world_prepare(&w, 1000);
        world_sync(&w);
        assert_true(data_over(w.d));
        data_totals(w.d, &totals);
        assert_int_equal(totals.tasks, totals.skipped + totals.done);
        world_free(&w);

        world_new(&w, 4, world_configs, 20, 1, 2);
        world_list(&w, 0, 5);
        n = w.n_files[0];
        w.n_files[0] = 5; /* no more of it is listed */
        assert_int_equal(data_steer(w.d, 0, &end), 0);
        data_scanned(w.d, 0);
        world_finish(&w);
        world_check_all_read(&w, true);
        w.n_files[0] = n;
        world_free(&w);
}

/* Steps in one place are one; there are not endlessly many within a block. */
static void test_bounded(void **state) {
        struct data_steering how;
        unsigned n;
        struct world w;
        int r = 0;

        world_new(&w, 5, world_configs, 400, 1, 1);
        world_later(&w, 1);
        world_list_all(&w);
        assert_non_null(lease_next(&w));
        for (unsigned i = 0; i < 5000; i++)
                assert_int_equal(data_steer(w.d, 0, &(struct data_steering){ .paused = i % 2 == 0 }), 0);
        assert_int_equal(data_steer(w.d, 2, &(struct data_steering){}), -ENODATA);
        for (n = 0; r == 0 && n < 400; n += r == 0) {
                assert_non_null(lease_next(&w));
                r = data_steer(w.d, 0, &(struct data_steering){ .weight = 1 + n % 2 });
        }
        assert_int_equal(r, -EBUSY);
        assert_true(n > 200);
        data_steering(w.d, 0, &how);
        assert_int_equal(how.weight, 1 + (n - 1) % 2); /* nothing was changed */
        world_sync(&w);
        assert_int_equal(world_append(&w), -EBUSY);
        assert_int_equal(data_append_room(w.d, INPUT_SOURCES_MAX), -ENOSPC);
        /* One whose adding is recorded without its step is added all the same. */
        w.config.n_sources = w.n_all;
        world_restart(&w);
        world_sync(&w);
        world_restart(&w);
        assert_int_equal(data_steer(w.d, 2, &(struct data_steering){}), 0);
        world_finish(&w);
        world_check_all_read(&w, true);
        world_free(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_steered),         cmocka_unit_test(test_appended),
                cmocka_unit_test(test_steered_at_once), cmocka_unit_test(test_paused_is_not_over),
                cmocka_unit_test(test_removed),         cmocka_unit_test(test_savepoint),
                cmocka_unit_test(test_topics),          cmocka_unit_test(test_ended),
                cmocka_unit_test(test_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
