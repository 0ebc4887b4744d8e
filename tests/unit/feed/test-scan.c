/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a data source is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include <sys/stat.h>

#include "executor/scan.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static char directory[64];

static void put(const char *name) {
        _cleanup_free_ char *path = NULL;

        assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
        assert_int_equal(write_file_atomic(path, "x", 1, 0644, false), 0);
}

static int setup(void **state) {
        _cleanup_free_ char *a = NULL, *b = NULL, *c = NULL;

        strcpy(directory, "/tmp/primus-scan-XXXXXX");
        assert_non_null(mkdtemp(directory));
        assert_true(asprintf(&a, "%s/a", directory) > 0 && asprintf(&b, "%s/b", directory) > 0 &&
                    asprintf(&c, "%s/a/below", directory) > 0);
        assert_int_equal(mkdir(a, 0755) | mkdir(b, 0755) | mkdir(c, 0755), 0);
        put("a/part-1");
        put("a/part-0");
        put("a/part-10");
        put("a/_SUCCESS");
        put("a/.hidden");
        put("a/below/part-9");
        put("b/part-2");
        put("b/x.txt");
        return 0;
}

static int teardown(void **state) {
        return remove_tree(directory);
}

/* The names found, without the directory, joined by spaces; or "error". */
static void check(const char *path, const char *name, const char *after, const char *expected) {
        _cleanup_free_ char *full = NULL, *from = NULL, *error = NULL;
        struct scan_list l = { 0 };
        struct scan_request q = { .source = "s", .name = name };
        char got[512] = "";
        int r;

        assert_true(asprintf(&full, "%s%s/%s", strncmp(path, "file://", 7) == 0 ? "file://" : "", directory,
                             strncmp(path, "file://", 7) == 0 ? path + 7 : path) > 0);
        assert_true(asprintf(&from, "%s/%s", directory, after ? after : "") > 0);
        q.path = full;
        q.after = after ? from : NULL;
        r = scan_collect(&q, &l, &error);
        if (r < 0) {
                assert_non_null(error);
                assert_non_null(strstr(error, directory)); /* says which path */
                strcpy(got, "error");
        }
        for (size_t i = 0; i < l.n; i++) {
                strcat(got, i > 0 ? " " : "");
                strcat(got, l.paths[i] + strlen(directory) + 1);
        }
        assert_string_equal(got, expected);
        scan_list_done(&l);
}

static void test_collect(void **state) {
        check("a", NULL, NULL, "a/part-0 a/part-1 a/part-10");
        check("a/", NULL, NULL, "a/part-0 a/part-1 a/part-10");
        check("file://a", "*", NULL, "a/part-0 a/part-1 a/part-10");
        check("a", "part-1*", NULL, "a/part-1 a/part-10");
        check("a", NULL, "a/part-1", "a/part-10");
        check("a", "nothing", NULL, "");
        check("*", "part-*", NULL, "a/part-0 a/part-1 a/part-10 b/part-2");
        check("{a,b,a}", "*[02]", NULL, "a/part-0 a/part-10 b/part-2");
        check("a/part-0", NULL, NULL, "a/part-0");
        check("?/*.txt", NULL, NULL, "b/x.txt");
        check("c", NULL, NULL, "error");
        check("c*", NULL, NULL, "error");
}

static void test_relative(void **state) {
        struct scan_request q = { .source = "s", .path = "data" };
        struct scan_list l = { 0 };
        _cleanup_free_ char *error = NULL;

        assert_int_equal(scan_collect(&q, &l, &error), -EINVAL);
        assert_non_null(error);
}

static void test_examine(void **state) {
        _cleanup_free_ char *path = NULL, *gone = NULL;
        struct scan_entry e;

        assert_true(asprintf(&path, "%s/a/part-0", directory) > 0 &&
                    asprintf(&gone, "%s/a/gone", directory) > 0);
        assert_int_equal(scan_examine(path, &e), 1);
        assert_int_equal(e.size, 1);
        assert_true(e.inode > 0 && e.mtime_nsec > 0);
        assert_int_equal(scan_examine(gone, &e), 0);
        assert_int_equal(scan_examine(directory, &e), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = { T(test_collect), T(test_relative), T(test_examine) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
