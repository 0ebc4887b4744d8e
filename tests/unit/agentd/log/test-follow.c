/* SPDX-License-Identifier: Apache-2.0 */
/* Skipping ahead, positions that outlive a restart, and readers of a journal that is not there. What needs a
 * real journal is tested on hosts (tests/cluster/test_journal.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "agentd/log/follow.h"
#include "agentd/log/journal.h"
#include "agentd/log/read.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

static void test_keep(void **state) {
        struct log_buffer b = { 0 };
        _cleanup_free_ char *big = calloc(1, 3 * TAIL_BYTES);
        uint64_t offset = 0, total = 0;
        char line[32];

        for (unsigned i = 0; i < 100000; i++) {
                int n = snprintf(line, sizeof(line), "line %u\n", i);

                assert_int_equal(follow_keep(&b, &offset, line, (size_t)n), 0);
                total += (uint64_t)n;
                assert_int_equal(offset + b.size, total); /* nothing is uncounted */
                assert_true(b.size <= 2 * TAIL_BYTES);
        }
        assert_true(b.size >= TAIL_BYTES);
        assert_memory_equal(b.data + b.size - 11, "line 99999\n", 11);
        assert_int_equal(follow_keep(&b, &offset, big, 3 * TAIL_BYTES), 0);
        total += 3 * TAIL_BYTES;
        assert_int_equal(offset + b.size, total);
        assert_int_equal(b.size, TAIL_BYTES);
        log_buffer_done(&b);
}

static void test_state(void **state) {
        char path[] = "/tmp/primus-tail-XXXXXX";
        struct executor_id id = { .job = 7, .role = "worker", .index = 2, .attempt = 1 };
        static const char text[] =
                "cursor s=1;i=2\nprimus-7-worker-2.1.service 4711\nprimus-7-worker-3.1.service x\njunk\n";
        struct delivery *d = calloc(1, sizeof(*d));
        _cleanup_free_ char *after = NULL;
        struct follow *f;

        assert_non_null(mkdtemp(path));
        _cleanup_free_ char *file = NULL;
        assert_true(asprintf(&file, "%s/tail", path) > 0);
        assert_int_equal(write_file_atomic(file, text, strlen(text), 0600, false), 0);
        assert_int_equal(follow_new("/nonexistent", "/nonexistent", file, &f), 0);
        assert_int_equal(follow_add(f, &id, now_real()), 0);
        assert_int_equal(follow_add(f, &id, now_real()), 0); /* twice is once */
        assert_false(follow_due(f, now_boot()));
        d->state = strdup("cursor c\n");
        follow_taken(f, d);
        assert_int_equal(read_file(file, 4096, &after, NULL), 0);
        assert_string_equal(after, "cursor c\n");
        follow_ended(f, &id, now_boot());
        follow_free(f);
        remove_tree(path);
}

static void on_error(void *userdata, const struct log_page *page) {
        *(int *)userdata = page->error;
}

static void test_bounds(void **state) {
        struct log_reader_options options = { .directory = "/nonexistent", .sync_socket = "/nonexistent" };
        struct log_reader *l;
        struct log_request q = { .unit = "x.service" };
        sd_event *event;
        uint64_t ticket;
        char long_cursor[LOG_CURSOR_MAX + 1];
        int error = 1;

        memset(long_cursor, 'x', sizeof(long_cursor));
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(log_reader_new(event, &options, &l), 0);
        q.cursor = long_cursor;
        q.cursor_size = sizeof(long_cursor);
        assert_int_equal(log_read(l, &q, on_error, &error, &ticket), -EINVAL);
        q.cursor = "a\0b";
        q.cursor_size = 3;
        assert_int_equal(log_read(l, &q, on_error, &error, &ticket), -EINVAL);
        q.cursor_size = 0;
        q.unit = "";
        assert_int_equal(log_read(l, &q, on_error, &error, &ticket), -EINVAL);
        /* A journal that cannot be opened is an answer. */
        q.unit = "x.service";
        assert_int_equal(log_read(l, &q, on_error, &error, &ticket), 0);
        while (error == 1)
                assert_true(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
        assert_true(error < 0);
        /* Cancelled ones are not called, whether they are done yet or not. */
        error = 1;
        assert_int_equal(log_read(l, &q, on_error, &error, &ticket), 0);
        log_read_cancel(l, ticket);
        assert_true(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
        assert_int_equal(error, 1);
        log_reader_free(l);
        sd_event_unref(event);
}

/* Between two requests the journal stays open, and others write into it: that keeps no processor busy. */
static void test_idle(void **state) {
        char path[] = "/tmp/primus-journal-XXXXXX";
        struct log_reader_options options = { .directory = path, .sync_socket = "/nonexistent" };
        struct log_request q = { .unit = "x.service", .wait_usec = 1 };
        struct log_reader *l;
        struct timespec before, after;
        sd_event *event;
        uint64_t ticket;
        int error = 1;

        assert_non_null(mkdtemp(path));
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(log_reader_new(event, &options, &l), 0);
        assert_int_equal(log_read(l, &q, on_error, &error, &ticket), 0);
        while (error == 1)
                assert_true(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
        assert_int_equal(error, 0);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        for (unsigned i = 0; i < 5; i++) {
                _cleanup_free_ char *file = NULL;

                assert_true(asprintf(&file, "%s/%u.journal", path, i) > 0);
                assert_int_equal(write_file_atomic(file, "no journal", 10, 0600, false), 0);
                usleep(100000);
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        assert_true((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 < 30);
        log_reader_free(l);
        sd_event_unref(event);
        remove_tree(path);
}

static void test_repeated(void **state) {
        static const char a[] = "s=82;i=14d5e;b=7c;m=b2;t=66;x=79", b[] = "s=83;i=14d5f;b=7c;m=b2;t=66;x=79",
                          later[] = "s=82;i=14d5f;b=7c;m=b3;t=66;x=79";
        static const char files[2];

        assert_true(journal_repeated(a, files, b, files + 1));
        assert_true(journal_repeated(a, NULL, b, files));
        assert_false(journal_repeated(a, files, b, files)); /* equal lines, printed at once */
        assert_false(journal_repeated(a, files, later, files + 1));
        assert_false(journal_repeated(NULL, NULL, later, files));
        assert_false(journal_repeated("", files, "", files + 1));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keep), cmocka_unit_test(test_state),    cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_idle), cmocka_unit_test(test_repeated),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
