/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentd/feed/final.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/wire/feed.h"

#define UNIT "primus-7-worker-0.1.service"
#define REPORT_OF_3 (4 + (off_t)sizeof(struct feed_progress) + 3 * 56) /* with its size before it */

static int setup(void **state) {
        *state = strdup("/tmp/test-final.XXXXXX");
        return mkdtemp(*state) ? 0 : -1;
}

static int teardown(void **state) {
        (void)remove_tree(*state);
        free(*state);
        return 0;
}

static int put(const char *root, uint64_t first_task, size_t n, bool first) {
        struct feed_progress head = { .credits = 3 };
        uint8_t body[1024];
        size_t size = 0;

        memcpy(body, &head, sizeof(head));
        for (size_t i = 0; i < n; i++) {
                struct task_progress p = {
                        .task = first_task + i, .read = 10, .acked = 10, .state = TASK_DONE
                };

                assert_int_equal(
                        task_progress_write(&p, body + sizeof(head), sizeof(body) - sizeof(head), &size), 0);
        }
        return final_put(root, UNIT, body, sizeof(head) + size, first);
}

struct seen {
        uint64_t sum;
        size_t n;
};

static int see(const struct feed_report *report, void *userdata) {
        const uint8_t *list = report->progress;
        size_t size = report->size;
        struct task_progress p;
        struct seen *s = userdata;

        assert_int_equal(report->credits, 0);
        while (task_progress_next(&list, &size, &p) > 0) {
                s->sum += p.task;
                s->n++;
                assert_int_equal(p.state, TASK_DONE);
        }
        return 0;
}

static struct seen read_all(const char *root, int expected) {
        struct seen s = {};

        assert_int_equal(final_read(root, UNIT, see, &s), expected);
        return s;
}

static void test_put_and_read(void **state) {
        assert_int_equal(read_all(*state, 0).n, 0);
        assert_int_equal(put(*state, 1, 3, true), 0);
        assert_int_equal(put(*state, 4, 8, false), 0);
        assert_int_equal(read_all(*state, 0).n, 11);
        assert_int_equal(read_all(*state, 0).sum, 66);
        /* Said again from the start. */
        assert_int_equal(put(*state, 1, 2, true), 0);
        assert_int_equal(read_all(*state, 0).n, 2);
        final_delete(*state, UNIT);
        assert_int_equal(read_all(*state, 0).n, 0);
        final_delete(*state, UNIT);
}

static void test_cut_off(void **state) {
        _cleanup_free_ char *path = NULL;

        assert_int_equal(put(*state, 1, 3, true), 0);
        assert_int_equal(put(*state, 4, 3, false), 0);
        assert_true(asprintf(&path, "%s" FINAL_DIR "/" UNIT, (char *)*state) > 0);
        assert_int_equal(truncate(path, REPORT_OF_3 + 4 + 8), 0);
        assert_int_equal(read_all(*state, -EBADMSG).n, 3);
        assert_int_equal(truncate(path, REPORT_OF_3 + 2), 0);
        assert_int_equal(read_all(*state, -EBADMSG).n, 3);
}

static void test_bounds(void **state) {
        static char large[FEED_PACKET_MAX + 1];

        assert_int_equal(final_put(*state, UNIT, large, sizeof(large), true), -EFBIG);
        for (size_t i = 0; i < FINAL_MAX / (FEED_PACKET_MAX + 4); i++)
                assert_int_equal(final_put(*state, UNIT, large, FEED_PACKET_MAX, i == 0), 0);
        assert_int_equal(final_put(*state, UNIT, large, FEED_PACKET_MAX, false), -EFBIG);
}

static bool keep(const char *unit, void *userdata) {
        return strcmp(unit, userdata) == 0;
}

static void test_sweep(void **state) {
        assert_int_equal(final_sweep(*state, keep, (void *)UNIT), 0);
        assert_int_equal(put(*state, 1, 1, true), 0);
        assert_int_equal(final_sweep(*state, keep, (void *)UNIT), 0);
        assert_int_equal(read_all(*state, 0).n, 1);
        assert_int_equal(final_sweep(*state, keep, (void *)"another"), 0);
        assert_int_equal(read_all(*state, 0).n, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_put_and_read, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cut_off, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
