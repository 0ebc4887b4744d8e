/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/store/migrate.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/exit.h"
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

/* The sentence names the copy, where there is one. */
static void test_newer_is_refused(void **state) {
        struct fixture *f = *state;

        assert_int_equal(store_migrate_steps(f->db, f->path, two), 0);
        assert_int_equal(store_migrate_steps(f->db, f->path, one), -EPROTONOSUPPORT);
        assert_int_equal(number(f->db, "PRAGMA user_version"), 2);
        assert_non_null(strstr(log_last_error(), "there is no copy"));
        assert_int_equal(write_file_atomic(f->copy, "", 0, 0600, false), 0);
        assert_int_equal(store_migrate_steps(f->db, f->path, one), -EPROTONOSUPPORT);
        assert_non_null(strstr(log_last_error(), "go back to the copy made before the upgrade, at "));
        assert_non_null(strstr(log_last_error(), f->copy));
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

/* A token of before was good for every name; from now on it is good for new ones. */
static void test_tokens_of_before(void **state) {
        const char *const before[] = { store_steps[0], store_steps[1], store_steps[2], store_steps[3], NULL };
        struct fixture *f = *state;

        assert_int_equal(store_migrate_steps(f->db, f->path, before), 0);
        assert_int_equal(
                sqlite_exec(f->db,
                            "INSERT INTO token(id, secret_hash, uses_left, expires, source, creator)"
                            " VALUES (x'0102030405060708', x'00', 5, 9000000000000000, '', 0);"
                            "INSERT INTO node(name, serial, epoch, boot_id, state, address, cpus, memory,"
                            " joined, seen, inventory) VALUES ('n1', '0a', 3, '', 1, '', 1, 1, 0, 0, x'')"),
                0);
        assert_int_equal(store_migrate(f->db, f->path), 0);
        assert_int_equal(
                number(f->db,
                       "SELECT count(*) FROM token WHERE name = '' AND \"replace\" = 0 AND uses_left = 5"),
                1);
        assert_int_equal(number(f->db, "SELECT count(*) FROM node WHERE taken_over = 0 AND joined_from = ''"),
                         1);
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

/* ---- from every version, with something in every table */

static void copy_steps(int version, const char **ret) {
        for (int i = 0; i < version; i++)
                ret[i] = store_steps[i];
        ret[version] = NULL;
}

static int newest(void) {
        int n = 0;

        while (store_steps[n])
                n++;
        return n;
}

static char *text_of(sqlite3 *db, const char *sql) {
        sqlite3_stmt *statement;
        char *text;

        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        text = strdup(sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0)
                              ? (const char *)sqlite3_column_text(statement, 0)
                              : "");
        sqlite3_finalize(statement);
        assert_non_null(text);
        return text;
}

#define TABLES                                                                                               \
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
#define TABLES_MAX 64

struct tables {
        char *names[TABLES_MAX], *columns[TABLES_MAX], *content[TABLES_MAX];
        int n;
};

static void tables_done(struct tables *t) {
        for (int i = 0; i < t->n; i++) {
                free(t->names[i]);
                free(t->columns[i]);
                free(t->content[i]);
        }
}

static char *content_of(sqlite3 *db, const char *table, const char *columns) {
        char sql[4096];

        snprintf(sql, sizeof(sql),
                 "SELECT group_concat(x) FROM (SELECT quote(%s) AS x FROM \"%s\" ORDER BY 1)", columns,
                 table);
        return text_of(db, sql);
}

/* A row of values by the columns' types; the n-th differs from the others in each. */
static void add_row(sqlite3 *db, const char *table, const char *values, int n) {
        _cleanup_free_ char *own = strdup(values);
        char sql[4096];

        for (char *p = own; (p = strchr(p, '@'));)
                *p = (char)('0' + n);
        snprintf(sql, sizeof(sql), "INSERT INTO \"%s\" VALUES (%s)", table, own);
        assert_int_equal(sqlite_exec(db, sql), 0);
}

/* Columns that are another's, or in another form, from 6 on: test_states_become_columns(). */
#define CHANGED_BY_6                                                                                         \
        "(VALUES ('job', 'state_data'), ('scope', 'state'), ('blame', 'state'), ('node', 'inventory'),"      \
        " ('change', 'cuts'), ('job_body', 'original'), ('job_body', 'options'), ('executor', 'code'), ('executor', 'term'), ('job', 'exit_status'))"

static void fill(sqlite3 *db, int version, struct tables *t) {
        sqlite3_stmt *statement;

        *t = (struct tables){};
        assert_int_equal(sqlite3_prepare_v2(db, TABLES, -1, &statement, NULL), SQLITE_OK);
        while (sqlite3_step(statement) == SQLITE_ROW && t->n < TABLES_MAX)
                t->names[t->n++] = strdup((const char *)sqlite3_column_text(statement, 0));
        sqlite3_finalize(statement);
        for (int i = 0; i < t->n; i++) {
                _cleanup_free_ char *values = NULL;
                char sql[1024];
                snprintf(sql, sizeof(sql),
                         "SELECT group_concat(CASE type WHEN 'INTEGER' THEN '@' WHEN 'BLOB' THEN "
                         "CASE WHEN name LIKE 'state%%' THEN 'x''010000000@''' ELSE 'x''0@''' END "
                         "ELSE '''text@''' END) FROM pragma_table_info('%s')",
                         t->names[i]);
                values = text_of(db, sql);
                for (int row = 1; row <= 3; row++)
                        add_row(db, t->names[i], values, row);
                snprintf(sql, sizeof(sql),
                         "SELECT group_concat('\"' || name || '\"', ')||quote(') FROM "
                         "pragma_table_info('%s') WHERE %d >= 6 OR ('%s', name) NOT IN " CHANGED_BY_6,
                         t->names[i], version, t->names[i]);
                t->columns[i] = text_of(db, sql);
                t->content[i] = content_of(db, t->names[i], t->columns[i]);
                assert_true(*t->content[i]);
        }
}

static void assert_same_schema(sqlite3 *db) {
        static const char sql[] =
                "SELECT group_concat(x, x'0a') FROM (SELECT m.name || ' ' || p.name || ' ' || p.type || ' ' "
                "|| "
                "p.\"notnull\" || ' ' || p.pk AS x FROM sqlite_schema m, pragma_table_info(m.name) p WHERE "
                "m.type = 'table' ORDER BY 1)";
        _cleanup_free_ char *has = text_of(db, sql), *wanted = NULL;
        sqlite3 *fresh;

        assert_int_equal(sqlite3_open(":memory:", &fresh), SQLITE_OK);
        assert_int_equal(store_migrate(fresh, "/nonexistent"), 0);
        wanted = text_of(fresh, sql);
        sqlite3_close(fresh);
        assert_string_equal(has, wanted);
}

/* What version 2 made anew: data of jobs that were active. */
static bool begun_anew(int version, const char *table) {
        return version == 1 && (strcmp(table, "source") == 0 || strcmp(table, "task") == 0);
}

static void check_migrated(sqlite3 *db, int version, const struct tables *t) {
        _cleanup_free_ char *sound = text_of(db, "PRAGMA integrity_check");

        assert_int_equal(number(db, "PRAGMA user_version"), newest());
        assert_string_equal(sound, "ok");
        assert_same_schema(db);
        for (int i = 0; i < t->n; i++) {
                _cleanup_free_ char *now = NULL;
                if (begun_anew(version, t->names[i]))
                        continue;
                now = content_of(db, t->names[i], t->columns[i]);
                assert_string_equal(now, t->content[i]);
        }
}

static void check_copy(const char *path, int version, const struct tables *t) {
        _cleanup_free_ char *same = NULL;
        sqlite3 *copy;
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(sqlite3_open(path, &copy), SQLITE_OK);
        assert_int_equal(number(copy, "PRAGMA user_version"), version);
        same = content_of(copy, t->names[0], t->columns[0]);
        assert_string_equal(same, t->content[0]);
        sqlite3_close(copy);
}

/* 6: what was text for a scanner is columns, and states are in the form of codec.h. */
static void test_states_become_columns(void **state) {
        struct fixture *f = *state;
        const char *steps[TABLES_MAX];
        char *text;

        copy_steps(5, steps);
        assert_int_equal(store_migrate_steps(f->db, f->path, steps), 0);
        assert_int_equal(
                sqlite_exec(
                        f->db,
                        "INSERT INTO node(name, serial, epoch, boot_id, state, address, cpus, memory, joined, seen,"
                        " inventory) VALUES ('none', '', 1, '', 1, '', 1, 1, 0, 0, x''),"
                        " ('two', '', 1, '', 1, '', 1, 1, 0, 0,"
                        "  CAST('20000 60000' || char(10) || 'GPU-1' || char(10) || 'pci-0000:3b:00.0' || char(10)"
                        "   AS BLOB)),"
                        " ('ports', '', 1, '', 1, '', 1, 1, 0, 0, CAST('1 65535' || char(10) AS BLOB));"
                        "INSERT INTO change(job, version, user, at, text, cuts, before) VALUES"
                        " (1, 2, 0, 0, 'a', '', x''),"
                        " (1, 3, 0, 0, 'b', 'w 3 7' || char(10) || 'ps 0 4294967295' || char(10), x'7b7d'),"
                        " (2, 2, 0, 0, 'c', 'w 1 1' || char(10), x'');"
                        "INSERT INTO scope VALUES (1, 'w', x'0100000009000000');"
                        "INSERT INTO blame VALUES ('two', x'01000000000000000100000002000000')"),
                0);
        assert_int_equal(store_migrate(f->db, f->path), 0);
#define IS(sql, wanted)                                                                                      \
        text = text_of(f->db, sql);                                                                          \
        assert_string_equal(text, wanted);                                                                   \
        free(text)
        IS("SELECT group_concat(x, ';') FROM (SELECT name || ' ' || port_first || '-' || port_last || ' ' || gpus AS x"
           " FROM node ORDER BY name)",
           "none 0-0 ;ports 1-65535 ;two 20000-60000 GPU-1 pci-0000:3b:00.0");
        IS("SELECT group_concat(x, ';') FROM (SELECT job || ' ' || version || ' ' || role || ' ' || first || ' ' ||"
           " attempt AS x FROM change_cut ORDER BY job, version, role)",
           "1 3 ps 0 4294967295;1 3 w 3 7;2 2 w 1 1");
        IS("SELECT group_concat(text || quote(before), ';') FROM change", "aX'';bX'7B7D';cX''");
        IS("SELECT quote(state) FROM scope", "X'100209'");
        IS("SELECT quote(state) FROM blame", "X'1002010402'");
}

/* It cannot be told what it says: the store stays as it was. */
static void test_unknown_state(void **state) {
        struct fixture *f = *state;
        const char *steps[TABLES_MAX];

        copy_steps(5, steps);
        assert_int_equal(store_migrate_steps(f->db, f->path, steps), 0);
        assert_int_equal(sqlite_exec(f->db, "INSERT INTO scope VALUES (1, 'w', x'07000000')"), 0);
        assert_int_equal(store_migrate(f->db, f->path), -EPERSON);
        assert_non_null(strstr(log_last_error(), "a scope's state is of no known version"));
        assert_int_equal(number(f->db, "PRAGMA user_version"), 5);
        assert_int_equal(number(f->db, "SELECT count(*) FROM scope WHERE state = x'07000000'"), 1);
        assert_int_equal(
                number(f->db, "SELECT count(*) FROM pragma_table_info('node') WHERE name = 'inventory'"), 1);
}

static void test_from_every_version(void **state) {
        for (int version = 1; version <= newest(); version++) {
                _cleanup_(tables_done) struct tables t = {};
                const char *steps[TABLES_MAX];
                struct fixture *f;
                void *own = NULL;
                char copy[96];

                assert_int_equal(setup(&own), 0);
                f = own;
                copy_steps(version, steps);
                assert_int_equal(store_migrate_steps(f->db, f->path, steps), 0);
                fill(f->db, version, &t);
                assert_int_equal(store_migrate(f->db, f->path), 0);
                check_migrated(f->db, version, &t);
                snprintf(copy, sizeof(copy), "%s.v%d.bak", f->path, version);
                if (version < newest())
                        check_copy(copy, version, &t);
                else
                        assert_int_equal(access(copy, F_OK), -1);
                teardown(&own);
        }
}

/* ---- copies */

static void test_two_copies_are_kept(void **state) {
        static const char *const steps[] = { "CREATE TABLE a(x)", "CREATE TABLE b(x)", "CREATE TABLE c(x)",
                                             "CREATE TABLE d(x)" };
        struct fixture *f = *state;
        char path[96];

        for (size_t n = 1; n <= ELEMENTSOF(steps); n++) {
                const char *some[ELEMENTSOF(steps) + 1] = {};
                memcpy(some, steps, sizeof(*some) * n);
                assert_int_equal(store_migrate_steps(f->db, f->path, some), 0);
        }
        for (int n = 1; n <= 4; n++) {
                snprintf(path, sizeof(path), "%s.v%d.bak", f->path, n);
                assert_int_equal(access(path, F_OK), n == 2 || n == 3 ? 0 : -1);
                snprintf(path, sizeof(path), "%s.v%d.bak.tmp", f->path, n);
                assert_int_equal(access(path, F_OK), -1);
        }
}

/* ---- no room, and a process that is killed */

static const char *const large[] = { "CREATE TABLE t(a INTEGER, b BLOB)",
                                     "CREATE TABLE u(b BLOB); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                                     "SELECT i + 1 FROM n WHERE i < 2000) "
                                     "INSERT INTO u SELECT randomblob(1000) FROM n",
                                     NULL };
static const char *const small[] = { "CREATE TABLE t(a INTEGER, b BLOB)", NULL };
#define FILL_SMALL                                                                                           \
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t "       \
        "SELECT "                                                                                            \
        "i, randomblob(1000) FROM n"

static void limit_files(rlim_t size) {
        struct rlimit limit;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        limit.rlim_cur = size;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_no_room(void **state) {
        struct fixture *f = *state;
        char half[96];

        (void)signal(SIGXFSZ, SIG_IGN);
        snprintf(half, sizeof(half), "%s.tmp", f->copy);
        assert_int_equal(store_migrate_steps(f->db, f->path, small), 0);
        assert_int_equal(sqlite_exec(f->db, FILL_SMALL), 0);
        limit_files(100 << 10); /* less than the copy */
        assert_int_equal(store_migrate_steps(f->db, f->path, large), -EPERSON);
        assert_non_null(
                strstr(log_last_error(), "needed before it is migrated; nothing was changed. Make room"));
        assert_int_equal(access(f->copy, F_OK), -1);
        assert_int_equal(access(half, F_OK), -1);
        limit_files(1 << 20); /* enough for that, less than the migration writes */
        assert_int_equal(store_migrate_steps(f->db, f->path, large), -EPERSON);
        assert_non_null(strstr(log_last_error(), "it is as it was. Mend that"));
        limit_files(RLIM_INFINITY);
        assert_int_equal(number(f->db, "PRAGMA user_version"), 1);
        assert_int_equal(number(f->db, "SELECT count(*) FROM t"), 500);
        assert_int_equal(store_migrate_steps(f->db, f->path, large), 0);
        assert_int_equal(number(f->db, "SELECT count(*) FROM u"), 2000);
}

static void kill_a_migration(const struct fixture *f, long nsec) {
        const struct timespec pause = { .tv_nsec = nsec };
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                sqlite3 *db;
                if (sqlite3_open(f->path, &db) == SQLITE_OK)
                        (void)store_migrate_steps(db, f->path, large);
                _exit(0); /* the database is not closed either */
        }
        (void)nanosleep(&pause, NULL);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The store is the old one or the new one, and a copy is whole. Returns the version. */
static int64_t look_at_what_is_left(struct fixture *f) {
        int64_t version = number(f->db, "PRAGMA user_version");
        sqlite3 *copy;

        assert_true(version == 1 || version == 2);
        assert_int_equal(number(f->db, "SELECT count(*) FROM t"), 500);
        if (access(f->copy, F_OK) < 0)
                assert_int_equal(version, 1);
        else {
                assert_int_equal(sqlite3_open(f->copy, &copy), SQLITE_OK);
                assert_int_equal(number(copy, "SELECT count(*) FROM t"), 500);
                sqlite3_close(copy);
        }
        return version;
}

/* At whatever moment: nothing is half done, and the next try ends well. */
static void test_killed(void **state) {
        struct fixture *f = *state;
        unsigned before = 0;

        for (long i = 0; i < 40; i++) {
                assert_int_equal(sqlite_exec(f->db, "PRAGMA journal_mode = WAL"), 0);
                assert_int_equal(store_migrate_steps(f->db, f->path, small), 0);
                assert_int_equal(sqlite_exec(f->db, FILL_SMALL), 0);
                sqlite3_close(f->db);
                kill_a_migration(f, i * 1500000);
                assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
                before += look_at_what_is_left(f) == 1;
                assert_int_equal(store_migrate_steps(f->db, f->path, large), 0);
                assert_int_equal(number(f->db, "SELECT count(*) FROM u"), 2000);
                sqlite3_close(f->db);
                assert_int_equal(remove_tree(f->directory), 0);
                assert_int_equal(mkdir(f->directory, 0700), 0);
                assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
        }
        assert_true(before > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_forward, setup, teardown),
                cmocka_unit_test_setup_teardown(test_newer_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_failed_step_changes_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_foreign_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tokens_of_before, setup, teardown),
                cmocka_unit_test_setup_teardown(test_real_schema, setup, teardown),
                cmocka_unit_test_setup_teardown(test_from_the_first, setup, teardown),
                cmocka_unit_test(test_from_every_version),
                cmocka_unit_test_setup_teardown(test_states_become_columns, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unknown_state, setup, teardown),
                cmocka_unit_test_setup_teardown(test_two_copies_are_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
                cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
        };
        log_set_level(LOG_CRIT);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
