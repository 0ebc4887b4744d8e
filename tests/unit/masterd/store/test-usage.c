/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and usage in the store: one body for all elements, and sums that stay when jobs go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/store-fixture.h"

static void put_job(struct store *s, uint32_t number, uint32_t array, uint32_t index, uint8_t state,
                    uint64_t ended) {
        struct job_body_record body = { .config = { "{}", 2 }, .bundle = "" };

        store_put_job(s, &(struct job_record){ .number = number,
                                               .name = "j",
                                               .state = state,
                                               .attempt = 1,
                                               .submitted_real = 1,
                                               .ended_real = ended,
                                               .array = array,
                                               .index = index,
                                               .body = array ? NULL : &body });
}

static void put_usage(struct store *s, uint32_t day, uint32_t job, const char *role, uint64_t held) {
        store_put_usage(s, &(struct usage_record){ .day = day,
                                                   .owner = 1000 + day % 2,
                                                   .pool = "p",
                                                   .job = job,
                                                   .role = role,
                                                   .cpu_held = held,
                                                   .cpu_used = held / 2,
                                                   .memory_held = held * 3,
                                                   .gpu_held = held * 4,
                                                   .gpu_used = held * 5,
                                                   .gpu_measured = held * 6,
                                                   .attempts = 1 });
}

struct sums {
        bool done;
        int error;
        size_t rows, deleted;
        uint64_t cpu, used, memory, gpu, gpu_used, gpu_measured, attempts;
};

static void on_usage(void *userdata, int error, const struct usage_record *rows, size_t n) {
        struct sums *s = userdata;

        *s = (struct sums){ .done = true, .error = error, .rows = n };
        for (size_t i = 0; i < n; i++) {
                s->deleted += rows[i].job == 0;
                s->cpu += rows[i].cpu_held;
                s->used += rows[i].cpu_used;
                s->memory += rows[i].memory_held;
                s->gpu += rows[i].gpu_held;
                s->gpu_used += rows[i].gpu_used;
                s->gpu_measured += rows[i].gpu_measured;
                s->attempts += rows[i].attempts;
        }
}

static struct sums sums(struct fixture *f, uint32_t first, uint32_t last, uint32_t owner) {
        struct sums s = {};

        assert_int_equal(store_query_usage(f->store, first, last, owner, on_usage, &s), 0);
        while (!s.done)
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
        assert_int_equal(s.error, 0);
        return s;
}

static void test_usage(void **state) {
        struct fixture *f = *state;
        struct sums before, after;

        for (uint32_t i = 1; i <= 8; i++) {
                put_job(f->store, i, 0, 0, 6, i < 6 ? 100 + i : 0);
                for (uint32_t day = 10; day < 14; day++) {
                        put_usage(f->store, day, i, "a", i * day);
                        put_usage(f->store, day, i, "b", 1);
                }
        }
        put_usage(f->store, 10, 1, "a", 17); /* written again: in the place of the first */
        settle(f);
        before = sums(f, 0, UINT32_MAX, UINT32_MAX);
        assert_int_equal(before.rows, 64);
        assert_int_equal(before.attempts, 64);
        assert_int_equal(before.cpu, (10 + 11 + 12 + 13) * 36 + 32 + 7);
        assert_int_equal(before.gpu_used, before.cpu * 5);
        assert_int_equal(before.gpu_measured, before.cpu * 6);
        assert_int_equal(sums(f, 11, 11, UINT32_MAX).rows, 16);
        assert_int_equal(sums(f, 10, 12, 1000).rows, 32);
        assert_int_equal(sums(f, 11, 11, 1000).rows, 0);

        /* Twice in a row: what is gone is added up once. */
        for (int i = 0; i < 2; i++) {
                store_prune(f->store, &(struct store_keep){ .older_than_real = 104,
                                                            .newest = 1,
                                                            .now_real = 0,
                                                            .bytes = UINT64_MAX });
                settle(f);
                after = sums(f, 0, UINT32_MAX, UINT32_MAX);
                assert_int_equal(after.deleted, 4); /* a row for each day */
                assert_int_equal(after.rows, 64 - 3 * 8 + 4);
                assert_int_equal(after.cpu, before.cpu);
                assert_int_equal(after.used, before.used);
                assert_int_equal(after.memory, before.memory);
                assert_int_equal(after.gpu, before.gpu);
                assert_int_equal(after.gpu_used, before.gpu_used);
                assert_int_equal(after.gpu_measured, before.gpu_measured);
                assert_int_equal(after.attempts, before.attempts);
        }
        store_forget_job(f->store, 4);
        settle(f);
        after = sums(f, 0, UINT32_MAX, UINT32_MAX);
        assert_int_equal(after.rows, 64 - 4 * 8 + 4);
        assert_int_equal(after.cpu, before.cpu);
        store_prune(f->store,
                    &(struct store_keep){
                            .older_than_real = 1000, .newest = 0, .now_real = 0, .bytes = UINT64_MAX });
        settle(f);
        after = sums(f, 0, UINT32_MAX, UINT32_MAX);
        assert_int_equal(after.cpu, before.cpu);
        assert_int_equal(after.rows, 3 * 8 + 4);
}

struct found {
        bool done;
        size_t n;
        struct element_record first, last;
        char config[8];
};

static void on_elements(void *userdata, int error, const struct element_record *list, size_t n) {
        struct found *a = userdata;

        assert_int_equal(error, 0);
        *a = (struct found){ .done = true, .n = n };
        if (n > 0) {
                a->first = list[0];
                a->last = list[n - 1];
        }
}

static void on_job(void *userdata, int error, const struct job_record *list, size_t n) {
        struct found *a = userdata;

        assert_int_equal(error, 0);
        *a = (struct found){ .done = true, .n = n };
        if (n > 0 && list[0].body)
                snprintf(a->config, sizeof(a->config), "%.*s", (int)list[0].body->config.size,
                         (const char *)list[0].body->config.data);
}

static void wait_for(struct fixture *f, struct found *a, int r) {
        assert_int_equal(r, 0);
        while (!a->done)
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
}

static int count_element(void *userdata, const struct element_record *r) {
        assert_int_equal(r->array, 1);
        (*(unsigned *)userdata)++;
        return 0;
}

static void test_arrays(void **state) {
        struct fixture *f = *state;
        struct found a = {};
        unsigned n = 0;

        put_job(f->store, 1, 0, 0, 3, 0);
        put_job(f->store, 2, 1, 7, 7, 50);
        put_job(f->store, 3, 1, 8, 6, 60);
        put_job(f->store, 4, 1, 7, 6, 70); /* again */
        put_job(f->store, 5, 0, 0, 6, 80);
        put_job(f->store, 6, 5, 7, 6, 80); /* of another, which has ended */
        settle(f);
        wait_for(f, &a, store_query_elements(f->store, 1, UINT32_MAX, on_elements, &a));
        assert_int_equal(a.n, 3);
        assert_int_equal(a.first.job, 2);
        assert_int_equal(a.last.index, 8);
        a.done = false;
        wait_for(f, &a, store_query_elements(f->store, 1, 7, on_elements, &a));
        assert_int_equal(a.n, 2);
        assert_int_equal(a.first.job, 4);
        a.done = false;
        wait_for(f, &a, store_query_job(f->store, 4, on_job, &a));
        assert_string_equal(a.config, "{}"); /* its array's */
        a.done = false;
        wait_for(f, &a,
                 store_query_jobs(f->store, &(struct store_job_filter){ .all = true, .state = -1 }, on_job,
                                  &a));
        assert_int_equal(a.n, 2);
        a.done = false;
        wait_for(f, &a,
                 store_query_jobs(f->store,
                                  &(struct store_job_filter){ .all = true, .state = -1, .array = 1 }, on_job,
                                  &a));
        assert_int_equal(a.n, 3);

        reopen(f);
        assert_int_equal(store_load_elements(f->store, count_element, &n), 0);
        assert_int_equal(n, 3);

        /* An array goes with its elements, and not before it has ended. */
        store_prune(f->store,
                    &(struct store_keep){
                            .older_than_real = 1000, .newest = 0, .now_real = 0, .bytes = UINT64_MAX });
        settle(f);
        a.done = false;
        wait_for(f, &a,
                 store_query_jobs(f->store,
                                  &(struct store_job_filter){ .all = true, .elements = true, .state = -1 },
                                  on_job, &a));
        assert_int_equal(a.n, 4);
        put_job(f->store, 1, 0, 0, 6, 90);
        store_prune(f->store,
                    &(struct store_keep){ .older_than_real = 1000,
                                          .newest = 1,
                                          .now_real = 0,
                                          .bytes = UINT64_MAX }); /* it is the newest that is no element */
        settle(f);
        a.done = false;
        wait_for(f, &a, store_query_job(f->store, 3, on_job, &a));
        assert_int_equal(a.n, 1);
        store_prune(f->store,
                    &(struct store_keep){
                            .older_than_real = 1000, .newest = 0, .now_real = 0, .bytes = UINT64_MAX });
        settle(f);
        a.done = false;
        wait_for(f, &a,
                 store_query_jobs(f->store,
                                  &(struct store_job_filter){ .all = true, .elements = true, .state = -1 },
                                  on_job, &a));
        assert_int_equal(a.n, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_usage, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_arrays, fixture_setup, fixture_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
