/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/store/migrate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "masterd/store/sqlite.h"

static const char *const one[] = { "CREATE TABLE t(a INTEGER)", NULL };
static const char *const two[] = { "CREATE TABLE t(a INTEGER)",
                                   "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5", NULL };
static const char *const broken[] = { "CREATE TABLE t(a INTEGER)",
                                      "CREATE TABLE u(a); INSERT INTO nowhere VALUES (1)", NULL };

struct fixture {
        char directory[32], path[64], copy[80];
        sqlite3 *db;
};

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof(*f));

        strcpy(f->directory, "/tmp/test-migrate.XXXXXX");
        if (!f || !mkdtemp(f->directory))
                return -1;
        snprintf(f->path, sizeof(f->path), "%s/primus.db", f->directory);
        snprintf(f->copy, sizeof(f->copy), "%s.v1.bak", f->path);
        *state = f;
        return sqlite3_open(f->path, &f->db);
}

static int teardown(void **state) {
        struct fixture *f = *state;

        sqlite3_close(f->db);
        remove_tree(f->directory);
        free(f);
        return 0;
}

static int64_t number(sqlite3 *db, const char *sql) {
        int64_t v = -1;

        assert_int_equal(sqlite_integer(db, sql, &v), 0);
        return v;
}

static void test_forward(void **state) {
        struct fixture *f = *state;
        sqlite3 *copy;

        assert_int_equal(store_migrate_steps(f->db, f->path, one), 0);
        assert_int_equal(number(f->db, "PRAGMA user_version"), 1);
        assert_int_not_equal(access(f->copy, F_OK), 0); /* nothing was there to be copied */
        assert_int_equal(sqlite_exec(f->db, "INSERT INTO t(a) VALUES (7)"), 0);
        assert_int_equal(store_migrate_steps(f->db, f->path, one), 0);

        assert_int_equal(store_migrate_steps(f->db, f->path, two), 0);
        assert_int_equal(number(f->db, "PRAGMA user_version"), 2);
        assert_int_equal(number(f->db, "SELECT a + b FROM t"), 12);
        assert_int_equal(sqlite3_open(f->copy, &copy), 0);
        assert_int_equal(number(copy, "PRAGMA user_version"), 1);
        assert_int_equal(number(copy, "SELECT a FROM t"), 7);
        sqlite3_close(copy);
}

static void test_newer_is_refused(void **state) {
        struct fixture *f = *state;

        assert_int_equal(store_migrate_steps(f->db, f->path, two), 0);
        assert_int_equal(store_migrate_steps(f->db, f->path, one), -EPROTONOSUPPORT);
        assert_int_equal(number(f->db, "PRAGMA user_version"), 2);
}

static void test_failed_step_changes_nothing(void **state) {
        struct fixture *f = *state;

        assert_int_equal(store_migrate_steps(f->db, f->path, one), 0);
        assert_true(store_migrate_steps(f->db, f->path, broken) < 0);
        assert_int_equal(number(f->db, "PRAGMA user_version"), 1);
        assert_int_equal(number(f->db, "SELECT count(*) FROM sqlite_schema WHERE name = 'u'"), 0);
        assert_int_equal(store_migrate_steps(f->db, f->path, two),
                         0); /* and the copy of before is replaced */
}

static void test_foreign_is_refused(void **state) {
        struct fixture *f = *state;

        assert_int_equal(sqlite_exec(f->db, "CREATE TABLE theirs(a)"), 0);
        assert_int_equal(store_migrate_steps(f->db, f->path, one), -EMEDIUMTYPE);
        assert_int_equal(number(f->db, "PRAGMA user_version"), 0);
}

static void test_real_schema(void **state) {
        struct fixture *f = *state;

        assert_int_equal(store_migrate(f->db, f->path), 0);
        assert_int_equal(store_migrate(f->db, f->path), 0);
        assert_int_not_equal(access(f->copy, F_OK),
                             0); /* a new one passes through all steps; nothing was there */
        assert_true(number(f->db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'") > 10);
}

/* From 1: data of jobs that are active begins anew, everything else stays. */
static void test_from_the_first(void **state) {
        struct fixture *f = *state;

        const char *const first[] = { store_steps[0], NULL };

        assert_int_equal(store_migrate_steps(f->db, f->path, first), 0);
        assert_int_equal(sqlite_exec(f->db, "INSERT INTO source VALUES (1, 0, 0, x'', 2, 0, '');"
                                            "INSERT INTO task VALUES (1, 1, 0, x'78', 1, 1, 1, 0, 0, 0, '');"
                                            "INSERT INTO meta VALUES ('term', x'37')"),
                         0);
        assert_int_equal(store_migrate(f->db, f->path), 0);
        assert_int_equal(access(f->copy, F_OK), 0);
        assert_int_equal(number(f->db, "SELECT count(*) FROM file"), 0);
        assert_int_equal(number(f->db, "SELECT count(*) FROM source WHERE passed >= 0"), 0);
        assert_int_equal(number(f->db, "SELECT count(*) FROM task WHERE epoch >= 0"), 0);
        assert_int_equal(number(f->db, "SELECT count(*) FROM meta"), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_forward, setup, teardown),
                cmocka_unit_test_setup_teardown(test_newer_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_failed_step_changes_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_foreign_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_real_schema, setup, teardown),
                cmocka_unit_test_setup_teardown(test_from_the_first, setup, teardown),
        };
        log_set_level(LOG_CRIT);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
