/* SPDX-License-Identifier: Apache-2.0 */
/* Savepoints of a job's data: what is saved is what is loaded, a job goes on from it as if nothing had been,
 * and what somebody has changed is refused or does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "tests/kit/data-world.h"
#include "tests/kit/json.h"

static const uint32_t weights[] = { 1, 3, 0 };

static const struct data_config configs[] = {
        { .n_sources = 3, .order = ORDER_LISTED, .epochs = 1, .sample_ppm = 1000000, .max_attempts = 2 },
        { .n_sources = 2,
          .order = ORDER_SHUFFLE,
          .epochs = 3,
          .sample_ppm = 600000,
          .max_attempts = 2,
          .seed = UINT64_MAX - 5 },
        { .n_sources = 3,
          .order = ORDER_LISTED,
          .epochs = 2,
          .sample_ppm = 1000000,
          .max_attempts = 2,
          .weights = weights,
          .seed = 3 },
};

/* A job in the middle of its data. */
static void half_way(struct world *w, uint64_t seed, const struct data_config *c, bool fail) {
        world_new(w, seed, c, 200, 3, 6);
        world_list_all(w);
        for (unsigned i = 0; i < 1500; i++) {
                size_t holder = world_random(w, w->n_holders), n = 0;
                struct held *h, *some = NULL;
                if (i % 100 == 0) {
                        (void)world_prepare(w, 200);
                        world_sync(w);
                }
                DL_FOREACH (w->holders[holder].held, h)
                        if (!h->done && world_random(w, ++n) == 0)
                                some = h;
                if (n < 4)
                        (void)world_lease(w, holder);
                else if (world_random(w, 30) == 0 && data_task(w->d, some->id)->end != TASK_TO_END)
                        world_trim(w, holder, some, some->acked + 3);
                else
                        world_progress(w, holder, some, world_random(w, 20),
                                       fail && world_random(w, 9) == 0 ? TASK_FAILED
                                       : world_random(w, 2) == 0       ? TASK_DONE
                                                                       : TASK_RUNNING);
        }
}

/* The same job from its listing alone. */
static struct data *another(const struct world *w) {
        struct data *d;

        assert_int_equal(data_new(&w->config, &d), 0);
        for (uint32_t s = 0; s < w->config.n_sources; s++) {
                for (size_t i = 0; i < w->listed[s]; i++)
                        assert_int_equal(data_add(d, s, &w->files[s][i].f), 0);
                data_scanned(d, s);
        }
        return d;
}

static int restored(struct world *w) {
        int r;

        while ((r = data_restored(w->d)) == DATA_MISSING)
                world_fill(w);
        return r;
}

static void test_round_trip(void **state) {
        for (uint64_t seed = 1; seed <= 5; seed++)
                for (size_t i = 0; i < ELEMENTSOF(configs); i++) {
                        _cleanup_free_ char *saved = NULL, *again = NULL, *error = NULL;
                        struct data_totals before, after;
                        struct world w;
                        half_way(&w, seed, configs + i, false);
                        assert_int_equal(data_save(w.d, &saved), 0);
                        data_totals(w.d, &before);
                        world_replace(&w, another(&w));
                        assert_int_equal(data_load(w.d, saved, strlen(saved), &error), 0);
                        assert_int_equal(restored(&w), DATA_READY);
                        assert_int_equal(data_save(w.d, &again), 0);
                        assert_string_equal(saved, again);
                        data_totals(w.d, &after);
                        assert_int_equal(after.acked, before.acked);
                        assert_int_equal(after.bytes, before.bytes);
                        assert_int_equal(after.records, before.records);
                        assert_int_equal(after.done, before.done);
                        assert_int_equal(after.tasks, before.tasks);
                        /* Nothing of it is on disk, so nothing is granted; then all of it is. */
                        assert_null(world_lease(&w, 0));
                        assert_true(data_urgent(w.d));
                        world_sync(&w);
                        world_restart(&w);
                        world_finish(&w);
                        world_check_totals(&w, true);
                        world_check_all_read(&w, true);
                        world_free(&w);
                }
}

static void test_failed_ones_are_kept(void **state) {
        struct data_totals before, after;
        _cleanup_free_ char *saved = NULL, *error = NULL;
        struct world w;

        half_way(&w, 4, configs, true);
        data_totals(w.d, &before);
        assert_true(before.failed > 0);
        assert_int_equal(data_save(w.d, &saved), 0);
        world_replace(&w, another(&w));
        assert_int_equal(data_load(w.d, saved, strlen(saved), &error), 0);
        assert_int_equal(restored(&w), DATA_READY);
        data_totals(w.d, &after);
        assert_int_equal(after.failed, before.failed);
        assert_int_equal(after.bytes_failed, before.bytes_failed);
        for (struct task *t = data_next_task(w.d, 0); t; t = data_next_task(w.d, t->id))
                if (t->place == TASK_GAVE_UP)
                        assert_string_equal(t->error, "it is broken");
        world_free(&w);
}

/* Replaces the first occurrence of one text by another. */
static char *changed(const char *text, const char *from, const char *to) {
        const char *at = strstr(text, from);
        char *result = NULL;

        assert_non_null(at);
        assert_true(asprintf(&result, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
        return result;
}

static void test_hostile(void **state) {
        static const struct {
                const char *from, *to, *error;
        } cases[] = {
                { "{", "[", "no JSON" },
                { "'version':1", "'version':2", "version 2" },
                { "'listed'", "'shuffle'", "input.order" },
                { "'seed':3", "'seed':4", "input.seed 4, and this job has 3" },
                { "'seed':3", "'seed':'x'", "'seed'" },
                { "'seed':3", "'seed':'18446744073709551616'", "'seed'" },
                { "'seed':3", "'seed':-3", "'seed'" },
                { "'epochs':2", "'epochs':3", "input.epochs" },
                { "'samplePpm':1000000", "'samplePpm':1", "sampleRate" },
                { "'epoch':", "'epoch':5, 'was':", "more than there can be" },
                { "'made':", "'made':1, 'was':", "does not add up" },
                { "'made':", "'made':'9223372036854775808', 'was':", "more than there can be" },
                { "'splitOff':", "'splitOff':77, 'was':", "does not add up" },
                { "'sources':[", "'sources':[1,", "3" },
                { "'sources':[", "'sources':{}, 'was':[", "no list at 'sources'" },
                { "'files':", "'files':1, 'was':", "another listing" },
                { "'digest':'", "'digest':'0", "no digest" },
                { "'done':", "'done':0, 'was':", "does not add up" },
                { "'done':", "'done':'18446744073709551615', 'was':", "does not add up" },
                { "'weight':1", "'weight':2", "weight" },
                { "'blocks':[", "'blocks':[{},", "no list at 'made'" },
                { "'block':", "'block':999, 'was':", "does not add up" },
                { "'over':'", "'over':'f", "block 0" },
                { "'state':'", "'state':'X", "task 0" },
                { "'start':", "'start':1000, 'was':", "task 0" },
                { "'source':", "'source':3, 'was':", "task 0" },
                { "'file':", "'file':100000, 'was':", "task 0" },
                { "'tasks':[", "'tasks':[[],", "number" },
        };
        _cleanup_free_ char *saved = NULL;
        struct world w;

        half_way(&w, 1, configs + 2, true);
        assert_int_equal(data_save(w.d, &saved), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = changed(saved, json_text(cases[i].from), json_text(cases[i].to)),
                                    *error = NULL;
                _cleanup_(data_free_p) struct data *d = another(&w);
                int r = data_load(d, text, strlen(text), &error);
                if (r != -EBADMSG || !strstr(error, json_text(cases[i].error)))
                        fail_msg("%s -> %s: %d, %s", cases[i].from, cases[i].to, r, error);
                assert_null(strchr(error, '\n'));
        }
        world_free(&w);
}

static void test_other_listing(void **state) {
        _cleanup_free_ char *saved = NULL, *error = NULL;
        _cleanup_(data_free_p) struct data *d = NULL;
        struct world w;

        half_way(&w, 1, configs, false);
        assert_int_equal(data_save(w.d, &saved), 0);
        w.files[1][2].f.mtime_nsec++;
        d = another(&w);
        assert_int_equal(data_load(d, saved, strlen(saved), &error), -EBADMSG);
        assert_non_null(strstr(error, "source 1 of the savepoint is another listing"));
        world_free(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_failed_ones_are_kept),
                cmocka_unit_test(test_hostile),
                cmocka_unit_test(test_other_listing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
