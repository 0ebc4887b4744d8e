/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a store in use, and stores that go on from a copy. */
#include "masterd/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "masterd/store/revive.h"
#include "tests/kit/store-fixture.h"

static char text[4096];

static void put_jobs(struct fixture *f, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                const struct job_body_record body = { .config = { text, sizeof(text) },
                                                      .bundle = i % 10 == 0 ? "abc" : "" };
                store_put_job(f->store, &(struct job_record){ .number = store_next_job(f->store),
                                                              .owner = 1000,
                                                              .name = "x",
                                                              .ended_real = i % 2,
                                                              .body = &body });
        }
}

static void put_cluster(struct fixture *f, uint64_t term) {
        store_set_meta(f->store, "cluster", "0123456789abcdef", 16);
        store_set_meta(f->store, "term", &term, sizeof(term));
        store_put_node(f->store, &(struct node_record){ .name = "n1" });
        store_put_token(f->store, &(struct token_record){
                                          .id = { 1 }, .uses_left = 1, .expires_real = UINT64_MAX >> 1 });
        settle(f);
}

struct end {
        bool told;
        int error;
};

static void on_copied(void *userdata, int error) {
        struct end *e = userdata;

        assert_false(e->told);
        *e = (struct end){ true, error };
}

static void copy_path(const struct fixture *f, char ret[static 80]) {
        snprintf(ret, 80, "%s/copy.db", f->directory);
}

static void test_copy_while_written(void **state) {
        struct fixture *f = *state;
        struct store_summary s;
        struct end end = {};
        struct stat st;
        char path[80];

        copy_path(f, path);
        put_cluster(f, 7);
        put_jobs(f, 1000);
        settle(f);
        assert_int_equal(store_copy(f->store, path, on_copied, &end), 0);
        assert_int_equal(store_copy(f->store, path, on_copied, &end), -EBUSY);
        while (!end.told) {
                put_jobs(f, 20);
                assert_int_equal(store_commit(f->store, NULL, NULL), 0);
                assert_true(sd_event_run(f->event, 1000) >= 0);
        }
        assert_int_equal(end.error, 0);
        settle(f);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(store_summarize(path, &s), 0);
        assert_int_equal(s.version, store_version());
        assert_int_equal(s.term, 7);
        assert_int_equal(s.nodes, 1);
        assert_true(s.last_job >= 1000);
        assert_true(s.active_jobs >= 500 && s.active_with_files >= 100);
        assert_memory_equal(&s.cluster, "0123456789abcdef", 16);
        /* The store is as usable as before. */
        end = (struct end){};
        assert_int_equal(store_copy(f->store, path, on_copied, &end), 0);
        while (!end.told)
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
        assert_int_equal(end.error, -EEXIST);
        reopen(f);
}

static void test_closed_over_it(void **state) {
        struct fixture *f = *state;
        struct end end = {};
        char path[80];

        copy_path(f, path);
        put_cluster(f, 1);
        put_jobs(f, 5000);
        settle(f);
        assert_int_equal(store_copy(f->store, path, on_copied, &end), 0);
        store_close(TAKE_PTR(f->store));
        assert_true(end.told);
        if (end.error < 0) {
                assert_int_equal(end.error, -ESHUTDOWN);
                assert_int_equal(access(path, F_OK), -1);
        }
}

static int forbid_token(void *userdata, const struct token_record *r) {
        return -EEXIST;
}

static void test_revive(void **state) {
        struct fixture *f = *state;
        struct store_summary s;
        char path[80];

        copy_path(f, path);
        put_cluster(f, 3);
        put_jobs(f, 10);
        settle(f);
        assert_int_equal(store_copy_idle(f->path, path), -EBUSY);
        assert_int_equal(store_summarize(f->path, &s), -EBUSY);
        store_close(TAKE_PTR(f->store));
        assert_int_equal(store_copy_idle(f->path, path), 0);
        assert_int_equal(store_copy_idle(f->path, path), -EEXIST);
        assert_int_equal(store_revive(path, UINT64_C(1767225600000000), 5000), 0);
        assert_int_equal(store_summarize(path, &s), 0);
        assert_true(s.term == UINT64_C(1767225600000000));
        assert_int_equal(s.last_job, 5000);
        assert_int_equal(rename(path, f->path), 0);
        assert_int_equal(store_open(f->path, f->event, NULL, &f->store), 0);
        assert_int_equal(store_next_job(f->store), 5001);
        assert_int_equal(store_load_tokens(f->store, forbid_token, NULL), 0);
        /* Never downwards. */
        store_close(TAKE_PTR(f->store));
        assert_int_equal(store_revive(f->path, 1, 1), 0);
        assert_int_equal(store_summarize(f->path, &s), 0);
        assert_int_equal(s.last_job, 5000);
}

static void test_lock(void **state) {
        struct fixture *f = *state;
        struct store_summary s;
        char path[80];
        int fd;

        assert_int_equal(store_lock(f->path, &fd), -EBUSY);
        put_cluster(f, 1);
        store_close(TAKE_PTR(f->store));
        assert_int_equal(store_lock(f->path, &fd), 0);
        assert_int_equal(store_summarize(f->path, &s), -EBUSY);
        assert_int_equal(store_open(f->path, f->event, NULL, &f->store), -EBUSY);
        close(fd);
        assert_int_equal(store_summarize(f->path, &s), 0);
        copy_path(f, path);
        assert_int_equal(store_lock(path, &fd), 0); /* made */
        close(fd);
        assert_int_equal(store_summarize(path, &s), -EMEDIUMTYPE);
}

static void test_damage(void **state) {
        struct fixture *f = *state;
        struct store_summary s;
        _cleanup_free_ char *bytes = NULL;
        size_t size;

        put_cluster(f, 1);
        put_jobs(f, 50);
        settle(f);
        store_close(TAKE_PTR(f->store));
        assert_int_equal(read_file(f->path, 64 << 20, &bytes, &size), 0);
        assert_int_equal(write_file_atomic(f->path, bytes, size / 2, 0600, false), 0);
        assert_true(store_summarize(f->path, &s) < 0);
        assert_int_equal(
                write_file_atomic(f->path,
                                  "nonsense that is long enough to be looked at as a header of a database "
                                  "by whoever opens it, one hundred bytes and more",
                                  100, 0600, false),
                0);
        assert_int_equal(store_summarize(f->path, &s), -EMEDIUMTYPE);
        bytes[63] = 99; /* user_version */
        assert_int_equal(write_file_atomic(f->path, bytes, size, 0600, false), 0);
        assert_int_equal(store_summarize(f->path, &s), -EPROTONOSUPPORT);
        assert_int_equal(s.version, 99);
}

/* Above every number of starts, and above an earlier restore's terms. */
static void test_numbers(void **state) {
        const uint64_t now = UINT64_C(1767225600) * USEC_PER_SEC, day = UINT64_C(86400) * USEC_PER_SEC;
        struct store_summary s = { .term = 5, .last_job = 418 };

        assert_true(store_revived_term(&s, now) == now);
        s.term = now + 1000; /* restored a moment ago, or by a clock that was ahead */
        assert_true(store_revived_term(&s, now) == now + 1001);
        assert_int_equal(store_revived_job(&s, now - day, now), 418 + 24 * 60 * 100);
        assert_int_equal(store_revived_job(&s, now, now), 418 + STORE_JOB_GAP);
        assert_int_equal(store_revived_job(&s, now + day, now), 418 + STORE_JOB_GAP);
        s.last_job = UINT32_MAX;
        assert_true(store_revived_job(&s, 0, now) < UINT32_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_copy_while_written, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_closed_over_it, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_revive, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_lock, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_damage, fixture_setup, fixture_teardown),
                cmocka_unit_test(test_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
