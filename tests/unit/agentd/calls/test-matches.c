/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/calls/matches.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define JOB "/org/primus/Master1/job/"

static void test_paths(void **state) {
        _cleanup_(matches_done) struct matches m = {};

        assert_false(matches_want(&m, JOB "7"));
        assert_int_equal(
                matches_add(&m, "type='signal',sender='org.primus.Master1',path='" JOB "7',member='x'"), 0);
        assert_int_equal(matches_add(&m, "path='" JOB "8'"), 0);
        assert_int_equal(matches_add(&m, "path='" JOB "8'"), 0);
        assert_true(matches_want(&m, JOB "7"));
        assert_true(matches_want(&m, JOB "8"));
        assert_false(matches_want(&m, JOB "77"));
        assert_false(matches_want(&m, JOB));
        matches_remove(&m, "path='" JOB "8'");
        assert_true(matches_want(&m, JOB "8"));
        matches_remove(&m, "path='" JOB "8'");
        matches_remove(&m, "path='" JOB "9'");
        assert_false(matches_want(&m, JOB "8"));
        assert_true(matches_want(&m, JOB "7"));
}

/* What is not understood is wanted; what the bus says of names is not a rule of ours. */
static void test_all(void **state) {
        static const char *const wide[] = { "", "type='signal'", "path_namespace='/org/primus'",
                                            "x,'path=", "arg0path='/a'" };
        _cleanup_(matches_done) struct matches m = {};

        assert_int_equal(matches_add(&m, "sender='org.freedesktop.DBus',path='/org/freedesktop/DBus'"), 0);
        assert_false(matches_want(&m, "/org/freedesktop/DBus"));
        for (size_t i = 0; i < ELEMENTSOF(wide); i++) {
                assert_int_equal(matches_add(&m, wide[i]), 0);
                assert_true(matches_want(&m, "/any"));
                matches_remove(&m, wide[i]);
                assert_false(matches_want(&m, "/any"));
        }
        matches_remove(&m, "type='signal'");
        assert_false(matches_want(&m, "/any"));
}

static void test_as_many_as_there_may_be(void **state) {
        _cleanup_(matches_done) struct matches m = {};
        char rule[64];

        for (unsigned i = 0; i < MATCHES_MAX; i++) {
                snprintf(rule, sizeof(rule), "path='/%u'", i);
                assert_int_equal(matches_add(&m, i % 2 ? rule : "type='signal'"), 0);
        }
        assert_int_equal(matches_add(&m, "path='/one'"), -ENOBUFS);
        assert_int_equal(matches_add(&m, "type='signal'"), -ENOBUFS);
        matches_remove(&m, "path='/1'");
        assert_int_equal(matches_add(&m, "path='/one'"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_all),
                cmocka_unit_test(test_as_many_as_there_may_be),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
