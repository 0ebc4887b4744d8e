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

#include "executor/scan/scan.h"
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

/* Collects what a scan finds. What it waits for is made when it asks, if there is something to make. */
struct collected {
        struct scan_sink sink;
        char got[2048], waited[2048];
        char *make[4]; /* below the directory, one for each wait; NULL: give up */
        unsigned n_waits;
        uint64_t passed;
};

static const char *below(const char *path) {
        const char *p = strstr(path, directory);

        return p ? p + strlen(directory) + 1 : path;
}

static int on_entry(struct scan_sink *s, const struct scan_entry *e) {
        struct collected *c = (struct collected *)s;

        assert_true(e->size == 1 && e->last == 1 && e->first == 0 && e->inode > 0 && e->mtime_nsec > 0);
        assert_true(e->batch >= c->passed);
        sprintf(c->got + strlen(c->got), "%s%s", *c->got ? " " : "", below(e->path));
        if (e->batch > 0)
                sprintf(c->got + strlen(c->got), "@%llu", (unsigned long long)e->batch);
        return 0;
}

static int on_passed(struct scan_sink *s, uint64_t batch) {
        struct collected *c = (struct collected *)s;

        assert_true(batch >= c->passed);
        c->passed = batch;
        return 0;
}

static int on_wait(struct scan_sink *s, const char *waiting_for, uint64_t usec) {
        struct collected *c = (struct collected *)s;
        char *path = c->n_waits < ELEMENTSOF(c->make) ? c->make[c->n_waits] : NULL;

        assert_int_equal(usec, 5);
        sprintf(c->waited + strlen(c->waited), "%s%s", *c->waited ? " " : "", below(waiting_for));
        c->n_waits++;
        if (!path)
                return -ECANCELED;
        if (path[strlen(path) - 1] == '/') {
                _cleanup_free_ char *full = NULL;

                assert_true(asprintf(&full, "%s/%s", directory, path) > 0);
                assert_int_equal(make_directories(full, 0755), 0);
        } else
                put(path);
        return 0;
}

static int collect(struct collected *c, struct scan_request *q, char **ret_error) {
        static char *none[] = { NULL };

        c->sink = (struct scan_sink){ on_entry, on_passed, on_wait };
        q->poll_usec = 5;
        if (!q->source->success_markers)
                ((struct input_source *)q->source)->success_markers = none;
        return scan_source(q, &c->sink, ret_error);
}

/* The names found, without the directory, joined by spaces; or "error". */
static void check(const char *path, const char *name, const char *after, const char *expected) {
        _cleanup_free_ char *full = NULL, *from = NULL, *error = NULL;
        struct input_source source = { .name = (char *)"s", .name_pattern = (char *)name };
        struct scan_request q = { .source = &source };
        struct collected c = { 0 };
        int r;

        assert_true(asprintf(&full, "%s%s/%s", strncmp(path, "file://", 7) == 0 ? "file://" : "", directory,
                             strncmp(path, "file://", 7) == 0 ? path + 7 : path) > 0);
        assert_true(asprintf(&from, "%s/%s", directory, after ? after : "") > 0);
        source.path_pattern = full;
        q.after = after ? from : NULL;
        r = collect(&c, &q, &error);
        if (r < 0) {
                assert_non_null(error);
                assert_non_null(strstr(error, directory)); /* says which path */
                strcpy(c.got, "error");
        }
        assert_string_equal(c.got, expected);
        assert_int_equal(c.n_waits, 0);
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

/* Directories in their order, then names; what two words name comes once; {a,b} have to be there both. */
static void test_order(void **state) {
        _cleanup_free_ char *a = NULL, *b = NULL;

        assert_true(asprintf(&a, "%s/a-b", directory) > 0 && asprintf(&b, "%s/_temporary", directory) > 0);
        assert_int_equal(mkdir(a, 0755) | mkdir(b, 0755), 0);
        put("a-b/part-5");
        put("_temporary/part-6");
        put("part-7");
        check("*", NULL, NULL, "part-7 a-b/part-5 a/part-0 a/part-1 a/part-10 b/part-2 b/x.txt");
        check("*", NULL, "a/part-1", "a/part-10 b/part-2 b/x.txt");
        check("*", NULL, "a/gone", "a/part-0 a/part-1 a/part-10 b/part-2 b/x.txt");
        check("*", NULL, "a0/part-3", "b/part-2 b/x.txt");
        check("*", NULL, "part-7", "a-b/part-5 a/part-0 a/part-1 a/part-10 b/part-2 b/x.txt");
        check("{b,a}", "part*", NULL, "a/part-0 a/part-1 a/part-10 b/part-2");
        check("{a/part-0,a/part-*,a/part-1*}", NULL, NULL, "a/part-0 a/part-1 a/part-10");
        check("a/part-{0..1}", NULL, NULL, "a/part-0 a/part-1");
        check("*/*.{txt,csv}", NULL, NULL, "b/x.txt");
        check("{a,c}", NULL, NULL, "error");
        check("a/*/", NULL, NULL, "a/below/part-9");
}

/* An hour after the other; what is not there is waited for, in order. */
static void test_range(void **state) {
        struct input_source source = { .name = (char *)"s",
                                       .has_range = true,
                                       .from = { 2026, 11, 20, 22 },
                                       .to = { 2026, 11, 21, 0 } };
        struct scan_request q = { .source = &source };
        struct collected c = { .make = { (char *)"t/2026112022/", (char *)"t/2026112022/_SUCCESS",
                                         (char *)"t/2026112100/", (char *)"t/2026112100/_SUCCESS" } };
        struct collected again = { 0 }, waiting = { 0 };
        _cleanup_free_ char *pattern = NULL, *made = NULL, *after = NULL, *error = NULL;
        char *markers[] = { (char *)"_SUCCES[A-Z]", NULL };

        assert_true(asprintf(&pattern, "%s/t/{{YYYY}}{{MM}}{{DD}}{{HH}}", directory) > 0);
        assert_true(asprintf(&made, "%s/t/2026112023", directory) > 0);
        assert_true(asprintf(&after, "%s/t/2026112023/x", directory) > 0);
        source.path_pattern = pattern;
        source.success_markers = markers;
        assert_int_equal(make_directories(made, 0755), 0);
        put("t/2026112023/x");
        put("t/2026112023/y");
        put("t/2026112023/_SUCCESS");
        assert_int_equal(collect(&c, &q, &error), 0);
        assert_null(error);
        assert_string_equal(c.got, "t/2026112023/x@2026112023 t/2026112023/y@2026112023");
        assert_string_equal(c.waited, "t/2026112022 t/2026112022/_SUCCES[A-Z] t/2026112100 "
                                      "t/2026112100/_SUCCES[A-Z]");
        assert_int_equal(c.passed, 2026112100);
        /* From a cursor. */
        q.after = after;
        q.batch = 2026112023;
        assert_int_equal(collect(&again, &q, &error), 0);
        assert_string_equal(again.got, "t/2026112023/y@2026112023");
        /* Without an end, it goes on waiting. */
        source.to_now = true;
        assert_int_equal(collect(&waiting, &q, &error), -ECANCELED);
        assert_null(error);
        assert_string_equal(waiting.waited, "t/2026112101");
        assert_int_equal(waiting.passed, 2026112101);
}

/* Days of a pattern without hours, and a month that many days name. */
static void test_days(void **state) {
        struct input_source source = {
                .name = (char *)"s", .has_range = true, .from = { 2026, 1, 31, 7 }, .to = { 2026, 2, 2, -1 }
        };
        struct scan_request q = { .source = &source };
        struct collected days = { 0 }, months = { 0 };
        _cleanup_free_ char *day = NULL, *month = NULL, *made = NULL, *error = NULL;

        assert_true(asprintf(&day, "%s/d-{{YYYY}}-{{MM}}-{{DD}}", directory) > 0 &&
                    asprintf(&month, "%s/m-{{MM}}/*", directory) > 0 &&
                    asprintf(&made, "%s/m-02", directory) > 0);
        put("d-2026-01-31");
        put("d-2026-02-01");
        put("d-2026-02-02");
        source.path_pattern = day;
        assert_int_equal(collect(&days, &q, &error), 0);
        assert_string_equal(days.got,
                            "d-2026-01-31@2026013100 d-2026-02-01@2026020100 d-2026-02-02@2026020200");
        assert_int_equal(make_directories(made, 0755), 0);
        put("m-02/x");
        source.path_pattern = month;
        source.from = (struct time_point){ 2026, 2, 1, -1 };
        assert_int_equal(collect(&months, &q, &error), 0);
        assert_string_equal(months.got, "m-02/x@2026020100");
}

/* Times in names and markers alone. */
static void test_names(void **state) {
        struct input_source source = { .name = (char *)"s",
                                       .has_range = true,
                                       .from = { 2026, 2, 1, 5 },
                                       .to = { 2026, 2, 1, 6 },
                                       .name_pattern = (char *)"*-{{HH}}" };
        struct scan_request q = { .source = &source };
        struct collected c = { .make = { (char *)"a/_DONE-06" } };
        _cleanup_free_ char *error = NULL, *pattern = NULL;
        char *markers[] = { (char *)"_DONE-{{HH}}", NULL };

        assert_true(asprintf(&pattern, "%s/a", directory) > 0);
        put("a/x-05");
        put("a/x-06");
        put("a/_DONE-05");
        source.path_pattern = pattern;
        source.success_markers = markers;
        assert_int_equal(collect(&c, &q, &error), 0);
        assert_string_equal(c.got, "a/x-05@2026020105 a/x-06@2026020106");
        assert_string_equal(c.waited, "a/_DONE-06");
}

/* Success markers without a time: waited for too. */
static void test_marker(void **state) {
        struct input_source source = { .name = (char *)"s" };
        struct scan_request q = { .source = &source };
        struct collected c = { .make = { (char *)"b/_DONE" } };
        _cleanup_free_ char *pattern = NULL, *error = NULL;
        char *markers[] = { (char *)"_DONE", NULL };

        assert_true(asprintf(&pattern, "%s/b", directory) > 0);
        source.path_pattern = pattern;
        source.success_markers = markers;
        assert_int_equal(collect(&c, &q, &error), 0);
        assert_string_equal(c.got, "b/part-2 b/x.txt");
        assert_string_equal(c.waited, "b/_DONE");
}

static void test_refused(void **state) {
        static const char *const patterns[] = { "data",           "ftp://x/y",          "/data/{{HOUR}}",
                                                "/data/{{YYYY}}", "/data/{1..1000000}", "/dev/null" };

        for (size_t i = 0; i < ELEMENTSOF(patterns); i++) {
                struct input_source source = { .name = (char *)"s", .path_pattern = (char *)patterns[i] };
                struct scan_request q = { .source = &source };
                struct collected c = { 0 };
                _cleanup_free_ char *error = NULL;

                assert_true(collect(&c, &q, &error) < 0);
                assert_non_null(error);
                assert_non_null(strstr(error, patterns[i]));
        }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = { T(test_collect), T(test_order),  T(test_range),  T(test_days),
                                            T(test_names),   T(test_marker), T(test_refused) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
