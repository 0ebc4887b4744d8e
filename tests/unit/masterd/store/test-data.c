/* SPDX-License-Identifier: Apache-2.0 */
/* Data of jobs and savepoints: rows go in, come back, are copied, trimmed and deleted. */
#include "masterd/store/store.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "tests/kit/store-fixture.h"

#define SPLIT_OFF (UINT64_C(1) << 63)

static void put_job(struct store *s, uint32_t number, uint64_t ended_real) {
        static const struct job_body_record body = {};

        store_put_job(s, &(struct job_record){ .number = number, .ended_real = ended_real, .body = &body });
}

static void put_file(struct store *s, uint64_t key, uint32_t source, uint64_t file) {
        char path[32];

        snprintf(path, sizeof(path), "/d/\xfe%llu", (unsigned long long)file);
        store_put_data_file(s, &(struct data_file_record){ .key = key,
                                                           .source = source,
                                                           .file = file,
                                                           .path = { path, strlen(path) },
                                                           .size = UINT64_MAX,
                                                           .mtime_nsec = 5,
                                                           .inode = UINT64_MAX - 1,
                                                           .first = 7,
                                                           .last = UINT64_MAX,
                                                           .batch = 2026112014,
                                                           .split = 64 << 20 });
}

static void put_data(struct store *s, uint32_t job) {
        for (uint32_t source = 0; source < 2; source++)
                for (uint64_t file = 0; file < 300; file++)
                        put_file(s, job, source, file);
        store_put_data_source(s, &(struct data_source_record){ .key = job,
                                                               .scanned = true,
                                                               .cursor = { "c\0d", 3 },
                                                               .passed = 2026112013,
                                                               .error = "no" });
        store_put_data_source(s,
                              &(struct data_source_record){ .key = job, .source = 1, .passed = UINT64_MAX });
        for (uint64_t block = 0; block < 3; block++)
                store_put_data_block(s, &(struct data_block_record){
                                                .job = job,
                                                .block = block,
                                                .state = { &block, sizeof(block) },
                                        });
        store_put_data_block(s, &(struct data_block_record){ job, 1, { "ab", 2 }, { "xyz", 3 } });
        store_delete_data_block(s, job, 2);
        for (uint64_t task = 1; task <= 3; task++)
                store_put_data_task(s, &(struct data_task_record){ .job = job,
                                                                   .task = task == 3 ? 3 | SPLIT_OFF : task,
                                                                   .source = 1,
                                                                   .file = task * 10,
                                                                   .epoch = 2,
                                                                   .start = 1,
                                                                   .end = UINT64_MAX,
                                                                   .acked = 99,
                                                                   .skip = 4,
                                                                   .records = 1000,
                                                                   .records_before = 900,
                                                                   .state = 3,
                                                                   .failures = 2,
                                                                   .error = task == 2 ? "bad" : "" });
        store_put_data_state(s, &(struct data_state_record){ job, { "state", 5 } });
}

struct seen {
        unsigned n;
        uint64_t last, key;
        uint32_t source;
};

static int see_file(void *userdata, const struct data_file_record *r) {
        struct seen *s = userdata;
        char path[32];

        if (s->n > 0 && (s->key != r->key || s->source != r->source))
                assert_true(r->key > s->key || r->source > s->source);
        else if (s->n > 0)
                assert_true(r->file == s->last + 1);
        snprintf(path, sizeof(path), "/d/\xfe%llu", (unsigned long long)r->file);
        assert_int_equal(r->path.size, strlen(path));
        assert_memory_equal(r->path.data, path, strlen(path));
        assert_true(r->size == UINT64_MAX && r->last == UINT64_MAX && r->inode == UINT64_MAX - 1);
        assert_true(r->mtime_nsec == 5 && r->first == 7 && r->batch == 2026112014 && r->split == 64 << 20);
        *s = (struct seen){ s->n + 1, r->file, r->key, r->source };
        return 0;
}

static int see_source(void *userdata, const struct data_source_record *r) {
        struct seen *s = userdata;

        assert_int_equal(r->source, s->n % 2);
        assert_int_equal(r->scanned, r->source == 0);
        assert_true(r->passed == (r->source == 0 ? 2026112013 : UINT64_MAX));
        assert_int_equal(r->cursor.size, r->source == 0 ? 3 : 0);
        assert_string_equal(r->error, r->source == 0 ? "no" : "");
        s->n++;
        return 0;
}

static int see_block(void *userdata, const struct data_block_record *r) {
        struct seen *s = userdata;

        assert_true(r->block == s->n % 2);
        assert_int_equal(r->state.size, r->block == 1 ? 2 : 8);
        assert_int_equal(r->over.size, r->block == 1 ? 3 : 0);
        s->n++;
        return 0;
}

static int see_task(void *userdata, const struct data_task_record *r) {
        struct seen *s = userdata;

        /* What was split off comes last. */
        assert_true(r->task == (s->n == 2 ? 3 | SPLIT_OFF : s->n + 1));
        assert_true(r->file == (r->task & ~SPLIT_OFF) * 10 && r->source == 1 && r->epoch == 2);
        assert_true(r->start == 1 && r->end == UINT64_MAX && r->acked == 99 && r->skip == 4);
        assert_true(r->records == 1000 && r->records_before == 900 && r->state == 3 && r->failures == 2);
        assert_string_equal(r->error, s->n == 1 ? "bad" : "");
        s->n++;
        return 0;
}

static int count_task(void *userdata, const struct data_task_record *r) {
        struct seen *s = userdata;

        s->n++;
        return 0;
}

static int see_state(void *userdata, const struct data_state_record *r) {
        struct seen *s = userdata;

        assert_memory_equal(r->state.data, "state", 5);
        s->n++;
        return 0;
}

#define EXPECT(call, count)                                                                                  \
        s = (struct seen){};                                                                                 \
        assert_int_equal(call, 0);                                                                           \
        assert_int_equal(s.n, count)

static void test_round_trip(void **state) {
        struct fixture *f = *state;
        struct seen s;

        put_job(f->store, 1, 0);
        put_job(f->store, 2, 77); /* has ended: its data is not loaded */
        put_job(f->store, 12, 0);
        for (uint32_t job = 1; job <= 12; job += job == 1 ? 1 : 10)
                put_data(f->store, job);
        settle(f);
        reopen(f);
        EXPECT(store_load_data_files(f->store, see_file, &s), 1200);
        assert_true(s.key == 12 && s.source == 1 && s.last == 299);
        EXPECT(store_load_data_sources(f->store, see_source, &s), 4);
        EXPECT(store_load_data_blocks(f->store, see_block, &s), 4);
        EXPECT(store_load_data_tasks(f->store, count_task, &s), 6);
        EXPECT(store_load_data_states(f->store, see_state, &s), 2);

        store_delete_job(f->store, 12);
        settle(f);
        reopen(f);
        EXPECT(store_load_data_files(f->store, see_file, &s), 600);
        EXPECT(store_load_data_tasks(f->store, see_task, &s), 3);
        EXPECT(store_load_data_states(f->store, see_state, &s), 1);

        store_delete_data_task(f->store, 1, 3 | SPLIT_OFF);
        settle(f);
        reopen(f);
        EXPECT(store_load_data_tasks(f->store, see_task, &s), 2);

        store_trim_data(f->store, 1); /* the failed task stays, with its file */
        settle(f);
        reopen(f);
        EXPECT(store_load_data_files(f->store, see_file, &s), 1);
        assert_true(s.last == 20 && s.source == 1);
        EXPECT(store_load_data_tasks(f->store, count_task, &s), 1);
        EXPECT(store_load_data_blocks(f->store, see_block, &s), 0);
        EXPECT(store_load_data_states(f->store, see_state, &s), 1);

        store_put_job(f->store, &(struct job_record){ .number = 1, .ended_real = 5 });
        store_prune(f->store,
                    &(struct store_keep){
                            .older_than_real = 100, .newest = 0, .now_real = 0, .bytes = UINT64_MAX });
        settle(f);
        put_job(f->store, 1, 0); /* as a trick to look for leftovers */
        put_job(f->store, 2, 0);
        settle(f);
        reopen(f);
        EXPECT(store_load_data_files(f->store, see_file, &s), 0);
        EXPECT(store_load_data_tasks(f->store, count_task, &s), 0);
        EXPECT(store_load_data_sources(f->store, see_source, &s), 0);
        EXPECT(store_load_data_states(f->store, see_state, &s), 0);
}

struct answer {
        bool done;
        size_t n;
        uint64_t first, last;
};

static void on_files(void *userdata, int error, const struct data_file_record *files, size_t n) {
        struct answer *a = userdata;

        assert_int_equal(error, 0);
        *a = (struct answer){ true, n, n ? files[0].file : 0, n ? files[n - 1].file : 0 };
        for (size_t i = 0; i < n; i++) {
                struct seen s = {};
                see_file(&s, files + i);
        }
}

static void on_sources(void *userdata, int error, const struct data_source_record *sources, size_t n) {
        struct answer *a = userdata;
        struct seen s = {};

        assert_int_equal(error, 0);
        *a = (struct answer){ true, n, 0, 0 };
        for (size_t i = 0; i < n; i++)
                see_source(&s, sources + i);
}

static void on_savepoints(void *userdata, int error, const struct savepoint_record *savepoints, size_t n) {
        struct answer *a = userdata;

        assert_int_equal(error, 0);
        *a = (struct answer){ true, n, n ? savepoints->key : 0, n ? savepoints->records : 0 };
        if (n == 0)
                return;
        assert_string_equal(savepoints->name, "1-1");
        assert_memory_equal(savepoints->manifest.data, "{}", 2);
        assert_int_equal(savepoints->config.size, 5);
}

#define ASK(call, want_n, want_first, want_last)                                                             \
        a = (struct answer){};                                                                               \
        assert_int_equal(call, 0);                                                                           \
        while (!a.done)                                                                                      \
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);                                        \
        assert_true(a.n == (want_n) && a.first == (want_first) && a.last == (want_last))

static int see_savepoint(void *userdata, const struct savepoint_record *r) {
        struct seen *s = userdata;

        assert_string_equal(r->name, "1-1");
        assert_string_equal(r->job_name, "digits");
        assert_true(r->owner == 1000 && r->job == 1 && r->key > UINT32_MAX && r->done == 2 && r->acked == 3);
        assert_string_equal(r->bundle, "ab12");
        assert_int_equal(r->manifest.size, 0); /* only when asked for */
        s->n++;
        return 0;
}

static void test_savepoint(void **state) {
        struct fixture *f = *state;
        struct answer a;
        struct seen s;
        uint64_t key = store_next_savepoint(f->store);

        put_job(f->store, 1, 0);
        put_data(f->store, 1);
        settle(f);
        put_file(f->store, 1, 1, 300); /* in the same batch: is in it */
        store_copy_files(f->store, 1, key);
        put_file(f->store, 1, 1, 301); /* behind the copy: is not */
        store_put_savepoint(f->store, &(struct savepoint_record){ .name = "1-1",
                                                                  .owner = 1000,
                                                                  .job = 1,
                                                                  .job_name = "digits",
                                                                  .key = key,
                                                                  .done = 2,
                                                                  .acked = 3,
                                                                  .records = UINT64_MAX,
                                                                  .bundle = "ab12",
                                                                  .manifest = { "{}", 2 },
                                                                  .config = { "{\"a\"}", 5 } });
        settle(f);
        store_delete_job(f->store, 1);
        settle(f);
        ASK(store_query_files(f->store, key, 0, 0, 1000, on_files, &a), 300, 0, 299);
        ASK(store_query_files(f->store, key, 1, 250, 1000, on_files, &a), 51, 250, 300);
        ASK(store_query_files(f->store, key, 1, 256, 10, on_files, &a), 10, 256, 265);
        ASK(store_query_files(f->store, key, 1, UINT64_MAX, 10, on_files, &a), 0, 0, 0);
        ASK(store_query_files(f->store, 1, 0, 0, 1000, on_files, &a), 0, 0, 0);
        ASK(store_query_sources(f->store, key, on_sources, &a), 2, 0, 0);
        ASK(store_query_savepoint(f->store, "1-1", on_savepoints, &a), 1, key, UINT64_MAX);
        ASK(store_query_savepoint(f->store, "1-2", on_savepoints, &a), 0, 0, 0);

        /* Another job begins with them. */
        put_job(f->store, 2, 0);
        store_copy_files(f->store, key, 2);
        settle(f);
        reopen(f);
        EXPECT(store_load_savepoints(f->store, see_savepoint, &s), 1);
        EXPECT(store_load_data_files(f->store, see_file, &s), 601);
        EXPECT(store_load_data_sources(f->store, see_source, &s), 2);
        assert_true(store_next_savepoint(f->store) > key);

        store_delete_savepoint(f->store, "1-1", key);
        settle(f);
        ASK(store_query_files(f->store, key, 0, 0, 1000, on_files, &a), 0, 0, 0);
        ASK(store_query_files(f->store, 2, 0, 0, 1000, on_files, &a), 300, 0, 299);
        reopen(f);
        EXPECT(store_load_savepoints(f->store, see_savepoint, &s), 0);
        assert_true(store_next_savepoint(f->store) > key); /* never used again */
}

static void on_kept(void *userdata, int error, const struct kept_task_record *tasks, size_t n) {
        struct answer *a = userdata;

        assert_int_equal(error, 0);
        *a = (struct answer){ true, n, n ? tasks[0].task : 0, n ? tasks[n - 1].task : 0 };
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(tasks[i].error, "torn");
                assert_true(tasks[i].path.size > 0);
        }
}

/* What failed outlives its job's end, with its file; numbers are unsigned. */
static void test_kept_tasks(void **state) {
        static const uint64_t split_off = UINT64_C(1) << 63;
        struct fixture *f = *state;
        struct answer a;

        put_job(f->store, 1, 0);
        put_file(f->store, 1, 0, 0);
        for (uint64_t i = 1; i <= 5; i++)
                store_put_data_task(f->store, &(struct data_task_record){ .job = 1,
                                                                          .task = i == 5 ? split_off | 2 : i,
                                                                          .end = UINT64_MAX,
                                                                          .state = i == 2 ? 0 : 3,
                                                                          .error = i == 4 ? "" : "torn" });
        store_trim_data(f->store, 1);
        settle(f);
        ASK(store_query_kept_tasks(f->store, 1, 3, 0, 100, on_kept, &a), 3, 1, split_off | 2);
        ASK(store_query_kept_tasks(f->store, 1, 3, 1, 1, on_kept, &a), 1, 3, 3);
        ASK(store_query_kept_tasks(f->store, 1, 3, 3, 100, on_kept, &a), 1, split_off | 2, split_off | 2);
        ASK(store_query_kept_tasks(f->store, 1, 3, split_off | 2, 100, on_kept, &a), 0, 0, 0);
        ASK(store_query_kept_tasks(f->store, 2, 3, 0, 100, on_kept, &a), 0, 0, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_round_trip, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_savepoint, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_kept_tasks, fixture_setup, fixture_teardown),
        };
        log_set_level(LOG_CRIT);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
