/* SPDX-License-Identifier: Apache-2.0 */
/* Packed grants, progress and scan entries: round trips, every cut and every flipped byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "lib/base/cleanup.h"
#include "lib/wire/tasks.h"

static const struct task_grant grants[] = {
        { 1, 0, 100, 0, 0, 100, 7, 8, 9, 3, 2, "/data/\xff\xfe" },
        { TASK_SPLIT_OFF | 5, 10, TASK_TO_END, 20, 4, TASK_UNKNOWN, 0, 0, 0, 0, 0, "x" },
};
static const struct task_progress progress[] = {
        { 1, 30, 20, 1, 5, 100, TASK_RUNNING, "" },
        { 2, 30, 30, 0, 0, TASK_TO_END, TASK_FAILED, "gr\xc3\xb6\xc3\x9f" },
        { 3, 0, 0, 0, 0, 0, TASK_RETURNED, "" },
};
static const struct scan_entry entries[] = {
        { "/a", 10, 1, 2, 0, 10, 2023010100 },
        { "topic/3", TASK_UNKNOWN, 0, 0, 17, TASK_TO_END, 0 },
};

static void test_grants(void **state) {
        uint8_t buf[512];
        const uint8_t *p = buf;
        struct task_grant g = {};
        size_t used = 0, size;

        for (size_t i = 0; i < ELEMENTSOF(grants); i++)
                assert_int_equal(task_grant_write(&grants[i], buf, sizeof(buf), &used), 0);
        size = used;
        for (size_t i = 0; i < ELEMENTSOF(grants); i++) {
                assert_int_equal(task_grant_next(&p, &size, &g), 1);
                assert_string_equal(g.path, grants[i].path);
                g.path = grants[i].path;
                assert_memory_equal(&g, &grants[i], sizeof(g));
        }
        assert_int_equal(task_grant_next(&p, &size, &g), 0);
}

static void test_progress(void **state) {
        uint8_t buf[512];
        const uint8_t *p = buf;
        struct task_progress g = {};
        size_t used = 0, size;

        for (size_t i = 0; i < ELEMENTSOF(progress); i++)
                assert_int_equal(task_progress_write(&progress[i], buf, sizeof(buf), &used), 0);
        size = used;
        for (size_t i = 0; i < ELEMENTSOF(progress); i++) {
                assert_int_equal(task_progress_next(&p, &size, &g), 1);
                assert_string_equal(g.error, progress[i].error);
                assert_true(g.task == progress[i].task && g.read == progress[i].read &&
                            g.acked == progress[i].acked && g.skip == progress[i].skip &&
                            g.records == progress[i].records && g.end == progress[i].end &&
                            g.state == progress[i].state);
        }
        assert_int_equal(task_progress_next(&p, &size, &g), 0);
}

static void test_entries(void **state) {
        uint8_t buf[512];
        const uint8_t *p = buf;
        struct scan_entry e = {};
        size_t used = 0, size;

        for (size_t i = 0; i < ELEMENTSOF(entries); i++)
                assert_int_equal(scan_entry_write(&entries[i], buf, sizeof(buf), &used), 0);
        size = used;
        for (size_t i = 0; i < ELEMENTSOF(entries); i++) {
                assert_int_equal(scan_entry_next(&p, &size, &e), 1);
                assert_string_equal(e.path, entries[i].path);
                e.path = entries[i].path;
                assert_memory_equal(&e, &entries[i], sizeof(e));
        }
        assert_int_equal(scan_entry_next(&p, &size, &e), 0);
}

/* What a writer refuses, and what it makes presentable. */
static void test_written(void **state) {
        static char long_text[TASK_PATH_MAX + 2];
        struct task_grant g = grants[0];
        struct task_progress p = progress[1], back;
        struct scan_entry e = entries[0];
        uint8_t buf[8192];
        const uint8_t *at = buf;
        size_t used = 0, size;

        memset(long_text, 'x', sizeof(long_text) - 1);
        g.path = e.path = p.error = long_text;
        assert_int_equal(task_grant_write(&g, buf, sizeof(buf), &used), -EINVAL);
        assert_int_equal(scan_entry_write(&e, buf, sizeof(buf), &used), -EINVAL);
        assert_int_equal(task_progress_write(&p, buf, sizeof(buf), &used), -EINVAL);
        g.path = e.path = "";
        assert_int_equal(task_grant_write(&g, buf, sizeof(buf), &used), -EINVAL);
        assert_int_equal(scan_entry_write(&e, buf, sizeof(buf), &used), -EINVAL);
        p.error = "";
        p.acked = p.read + 1;
        assert_int_equal(task_progress_write(&p, buf, sizeof(buf), &used), -EINVAL);
        assert_int_equal(used, 0);
        for (size_t room = 0; room < 88 + sizeof("/data/xx"); room++)
                assert_int_equal(task_grant_write(&grants[0], buf, room, &used), -ENOBUFS);
        assert_int_equal(used, 0);
        p = progress[1];
        p.error = "a\nb\xff\xc2\x85";
        assert_int_equal(task_progress_write(&p, buf, sizeof(buf), &used), 0);
        size = used;
        assert_int_equal(task_progress_next(&at, &size, &back), 1);
        assert_string_equal(back.error, "a?b???");
}

static void read_all(const uint8_t *bytes, size_t n) {
        /* A block of its own, so that the sanitizer sees the first byte too far. */
        _cleanup_free_ uint8_t *copy = malloc(n > 0 ? n : 1);
        const uint8_t *p;
        struct task_progress progress_read;
        struct task_grant g;
        struct scan_entry e;
        size_t size;

        assert_non_null(copy);
        memcpy(copy, bytes, n);
        for (p = copy, size = n; task_grant_next(&p, &size, &g) > 0;) {
                assert_true(strlen(g.path) > 0 && strlen(g.path) <= TASK_PATH_MAX);
                assert_true(g.task > 0 && g.offset >= g.start && g.end >= g.start);
        }
        for (p = copy, size = n; task_progress_next(&p, &size, &progress_read) > 0;) {
                assert_true(strlen(progress_read.error) <= TASK_TEXT_MAX);
                assert_true(progress_read.acked <= progress_read.read &&
                            progress_read.state < _TASK_STATE_MAX);
        }
        for (p = copy, size = n; scan_entry_next(&p, &size, &e) > 0;)
                assert_true(strlen(e.path) > 0 && e.last >= e.first);
}

static void test_hostile(void **state) {
        uint8_t buf[1024], bad[1024];
        size_t used = 0;

        for (size_t i = 0; i < ELEMENTSOF(grants); i++)
                (void)task_grant_write(&grants[i], buf, sizeof(buf), &used);
        for (size_t i = 0; i < ELEMENTSOF(progress); i++)
                (void)task_progress_write(&progress[i], buf, sizeof(buf), &used);
        for (size_t i = 0; i < ELEMENTSOF(entries); i++)
                (void)scan_entry_write(&entries[i], buf, sizeof(buf), &used);
        for (size_t from = 0; from < used; from++)
                for (size_t n = 0; n <= used - from; n += 1 + from % 3)
                        read_all(buf + from, n);
        for (size_t i = 0; i < used; i++)
                for (unsigned k = 0; k < 4; k++) {
                        static const uint8_t values[] = { 0, 1, 0x7f, 0xff };

                        memcpy(bad, buf, used);
                        bad[i] = values[k];
                        read_all(bad, used);
                }
}

static void test_rules(void **state) {
        struct task_grant bad_grants[] = { grants[0], grants[0], grants[0] }, g;
        struct scan_entry bad_entry = entries[1], e;
        uint8_t buf[512];
        const uint8_t *p;
        size_t used, size;

        bad_grants[0].task = 0;
        bad_grants[1].start = 101;
        bad_grants[2].start = 50;
        for (size_t i = 0; i < ELEMENTSOF(bad_grants); i++) {
                used = 0;
                assert_int_equal(task_grant_write(&bad_grants[i], buf, sizeof(buf), &used), 0);
                p = buf;
                size = used;
                assert_int_equal(task_grant_next(&p, &size, &g), -EBADMSG);
                assert_ptr_equal(p, buf);
        }
        bad_entry.last = 3;
        used = 0;
        assert_int_equal(scan_entry_write(&bad_entry, buf, sizeof(buf), &used), 0);
        p = buf;
        size = used;
        assert_int_equal(scan_entry_next(&p, &size, &e), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_grants),  cmocka_unit_test(test_progress),
                cmocka_unit_test(test_entries), cmocka_unit_test(test_written),
                cmocka_unit_test(test_hostile), cmocka_unit_test(test_rules),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
