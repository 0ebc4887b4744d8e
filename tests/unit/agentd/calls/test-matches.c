/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/calls/matches.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define JOB "/org/primus/Master1/job/"

static int add(struct matches *m, const char *rule, const char *wanted) {
        _cleanup_free_ char *path = NULL;
        int r = matches_add(m, rule, &path);

        if (r < 0 || !wanted)
                assert_null(path);
        else
                assert_string_equal(path, wanted);
        return r;
}

static void drop(struct matches *m, const char *rule, const char *wanted) {
        _cleanup_free_ char *path = NULL;

        matches_remove(m, rule, &path);
        if (wanted)
                assert_string_equal(path, wanted);
        else
                assert_null(path);
}

static void test_paths(void **state) {
        _cleanup_(matches_done) struct matches m = {};

        assert_false(matches_want(&m, JOB "7"));
        assert_int_equal(
                add(&m, "type='signal',sender='org.primus.Master1',path='" JOB "7',member='x'", JOB "7"), 0);
        assert_int_equal(add(&m, "path='" JOB "8'", JOB "8"), 0);
        assert_int_equal(add(&m, "path='" JOB "8'", JOB "8"), 0);
        assert_true(matches_want(&m, JOB "7"));
        assert_true(matches_want(&m, JOB "8"));
        assert_false(matches_want(&m, JOB "77"));
        assert_false(matches_want(&m, JOB));
        drop(&m, "path='" JOB "8'", JOB "8");
        assert_true(matches_want(&m, JOB "8"));
        drop(&m, "path='" JOB "8'", JOB "8");
        drop(&m, "path='" JOB "8'", NULL);
        drop(&m, "path='" JOB "9'", NULL);
        assert_false(matches_want(&m, JOB "8"));
        assert_true(matches_want(&m, JOB "7"));
}

/* Nobody's memory is filled by what can be for nothing. */
static void test_long(void **state) {
        _cleanup_(matches_done) struct matches m = {};
        char rule[MATCH_PATH_MAX + 16], path[MATCH_PATH_MAX + 2];

        memset(path, 'x', sizeof(path));
        path[0] = '/';
        path[MATCH_PATH_MAX] = 0;
        snprintf(rule, sizeof(rule), "path='%s'", path);
        assert_int_equal(add(&m, rule, path), 0);
        path[MATCH_PATH_MAX] = 'x';
        path[MATCH_PATH_MAX + 1] = 0;
        snprintf(rule, sizeof(rule), "path='%s'", path);
        for (unsigned i = 0; i < 2 * MATCHES_MAX; i++)
                assert_int_equal(add(&m, rule, NULL), 0);
        assert_int_equal(m.n_paths, 1);
        assert_false(matches_want(&m, path));
}

/* What is not understood is wanted; what the bus says of names is not a rule of ours. */
static void test_all(void **state) {
        static const char *const wide[] = { "", "type='signal'", "path_namespace='/org/primus'",
                                            "x,'path=", "arg0path='/a'" };
        _cleanup_(matches_done) struct matches m = {};

        assert_int_equal(add(&m, "sender='org.freedesktop.DBus',path='/org/freedesktop/DBus'", NULL), 0);
        assert_false(matches_want(&m, "/org/freedesktop/DBus"));
        for (size_t i = 0; i < ELEMENTSOF(wide); i++) {
                assert_int_equal(add(&m, wide[i], ""), 0);
                assert_true(matches_want(&m, "/any"));
                drop(&m, wide[i], "");
                assert_false(matches_want(&m, "/any"));
        }
        drop(&m, "type='signal'", NULL);
        assert_false(matches_want(&m, "/any"));
}

static void test_as_many_as_there_may_be(void **state) {
        _cleanup_(matches_done) struct matches m = {};
        char rule[64], path[32];

        for (unsigned i = 0; i < MATCHES_MAX; i++) {
                snprintf(path, sizeof(path), "/%u", i);
                snprintf(rule, sizeof(rule), "path='/%u'", i);
                assert_int_equal(i % 2 ? add(&m, rule, path) : add(&m, "type='signal'", ""), 0);
        }
        assert_int_equal(add(&m, "path='/one'", NULL), -ENOBUFS);
        assert_int_equal(add(&m, "type='signal'", NULL), -ENOBUFS);
        drop(&m, "path='/1'", "/1");
        assert_int_equal(add(&m, "path='/one'", "/one"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_all),
                cmocka_unit_test(test_long),
                cmocka_unit_test(test_as_many_as_there_may_be),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
