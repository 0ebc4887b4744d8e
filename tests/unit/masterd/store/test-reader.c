/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked beside what is written: who waits for whom, and for whom is asked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/store-fixture.h"

#define ML 1000u
#define EVE 1001u

static void put_jobs(struct fixture *f, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                store_put_job(f->store, &(struct job_record){ .number = store_next_job(f->store),
                                                              .owner = ML,
                                                              .name = "a name" });
        settle(f);
}

static unsigned answered, answered_at_effect;
static size_t rows;

static void on_jobs(void *userdata, int error, const struct job_record *jobs, size_t n) {
        assert_int_equal(error, 0);
        answered++;
        rows = n;
}

static void on_effect(void *userdata, int error) {
        assert_int_equal(error, 0);
        answered_at_effect = answered;
        count_effect(userdata, error);
}

static int ask(struct fixture *f, uint32_t limit) {
        return store_query_jobs(f->store,
                                &(struct store_job_filter){ .all = true, .state = -1, .limit = limit },
                                on_jobs, NULL);
}

static void run_until_answered(struct fixture *f, unsigned n) {
        while (answered < n)
                assert_true(sd_event_run(f->event, 10000000) > 0);
}

/* A commit that comes behind much that was asked is durable before all of it is answered. */
static void test_beside(void **state) {
        struct fixture *f = *state;
        unsigned before;

        answered = 0;
        put_jobs(f, 10000);
        before = f->effects;
        for (unsigned i = 0; i < 50; i++)
                assert_int_equal(ask(f, 10000), 0);
        store_set_meta(f->store, "x", "y", 1);
        assert_int_equal(store_commit(f->store, on_effect, f), 0);
        run_until_answered(f, 50);
        assert_int_equal(rows, 10000);
        assert_int_equal(f->effects, before + 1);
        assert_true(answered_at_effect < 50);
}

/* What was committed before it was asked for is in the answer. */
static void test_behind(void **state) {
        struct fixture *f = *state;

        answered = 0;
        for (uint32_t i = 1; i <= 200; i++) {
                store_put_job(f->store,
                              &(struct job_record){ .number = store_next_job(f->store), .name = "" });
                assert_int_equal(store_commit(f->store, count_effect, f), 0);
                assert_int_equal(ask(f, 1000), 0);
                if (i % 3)
                        continue;
                run_until_answered(f, i);
                assert_int_equal(rows, i);
        }
        run_until_answered(f, 200);
        assert_int_equal(rows, 200);
}

static struct {
        unsigned n;
        uint32_t uid;
        size_t bytes;
} said;

static void on_answer(void *userdata, uint32_t uid, uint64_t usec, size_t bytes) {
        said.n++;
        said.uid = uid;
        said.bytes = bytes;
}

static void on_jobs_ask_again(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct fixture *f = userdata;

        assert_int_equal(error, 0);
        assert_int_equal(ask(f, 10), 0); /* for whom the first was */
}

/* One question of a user at a time, and what follows from its answer; others ask meanwhile. */
static void test_asker(void **state) {
        struct fixture *f = *state;

        answered = 0;
        put_jobs(f, 100);
        store_on_answer(f->store, on_answer, NULL);
        store_ask_for(f->store, EVE);
        assert_int_equal(ask(f, 100), 0);
        store_ask_for(f->store, EVE);
        assert_int_equal(ask(f, 100), -EBUSY);
        store_ask_for(f->store, ML);
        assert_int_equal(ask(f, 100), 0);
        store_ask_for(f->store, STORE_NOBODY);
        assert_int_equal(ask(f, 100), 0);
        assert_int_equal(ask(f, 100), 0);
        run_until_answered(f, 4);
        assert_int_equal(said.n, 2);
        assert_int_equal(said.uid, ML);
        assert_true(said.bytes > 100 * 70);

        store_ask_for(f->store, EVE);
        assert_int_equal(store_query_jobs(f->store, &(struct store_job_filter){ .all = true, .state = -1 },
                                          on_jobs_ask_again, f),
                         0);
        store_ask_for(f->store, STORE_NOBODY);
        run_until_answered(f, 5);
        assert_int_equal(said.n, 4);
        assert_int_equal(said.uid, EVE);
        store_ask_for(f->store, EVE);
        assert_int_equal(ask(f, 100), 0);
        run_until_answered(f, 6);
        store_ask_for(f->store, STORE_NOBODY);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_beside, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_behind, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_asker, fixture_setup, fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
