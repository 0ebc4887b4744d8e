/* SPDX-License-Identifier: Apache-2.0 */
/* Records through their lists of fields: copied, bound and read back, and what is stored and does not fit. */
#include "masterd/store/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

struct thing {
        bool flag;
        uint8_t small;
        uint32_t n;
        int32_t i;
        uint64_t large;
        const char *text;
        struct store_bytes bytes;
        uint8_t fixed[4];
};
#define AT(type, member)                                                                                     \
        { type, offsetof(struct thing, member), sizeof(((struct thing *)NULL)->member) }
static const struct field fields[] = {
        AT(FIELD_BOOL, flag),   AT(FIELD_U8, small),    AT(FIELD_U32, n),
        AT(FIELD_I32, i),       AT(FIELD_U64, large),   AT(FIELD_TEXT, text),
        AT(FIELD_BYTES, bytes), AT(FIELD_FIXED, fixed), {},
};

static sqlite3 *db;

static int setup(void **state) {
        return sqlite3_open(":memory:", &db) == SQLITE_OK ? 0 : -1;
}

static int teardown(void **state) {
        return sqlite3_close(db) == SQLITE_OK ? 0 : -1; /* every statement was finalized */
}

static sqlite3_stmt *prepare(const char *sql) {
        sqlite3_stmt *s;

        if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
                fail_msg("%s: %s", sql, sqlite3_errmsg(db));
        return s;
}

static void there_and_back(const struct thing *t) {
        sqlite3_stmt *s = prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8");
        struct thing got = {};
        int column = 0;

        assert_int_equal(fields_bind(fields, t, s), SQLITE_OK);
        assert_int_equal(sqlite3_step(s), SQLITE_ROW);
        assert_int_equal(fields_read(fields, &got, s, &column), 0);
        assert_int_equal(column, 8);
        assert_true(got.flag == t->flag && got.small == t->small && got.n == t->n && got.i == t->i &&
                    got.large == t->large);
        assert_string_equal(got.text, t->text ?: "");
        assert_int_equal(got.bytes.size, t->bytes.size);
        if (t->bytes.size > 0)
                assert_memory_equal(got.bytes.data, t->bytes.data, t->bytes.size);
        assert_memory_equal(got.fixed, t->fixed, sizeof(got.fixed));
        sqlite3_finalize(s);
}

static void test_values(void **state) {
        there_and_back(&(struct thing){});
        there_and_back(&(struct thing){ true,
                                        UINT8_MAX,
                                        UINT32_MAX,
                                        INT32_MIN,
                                        UINT64_MAX,
                                        "é; '\"",
                                        { "a\0b", 3 },
                                        { 1, 0, 255, 0 } });
        there_and_back(&(struct thing){ .i = INT32_MAX, .large = UINT64_C(1) << 63, .text = "x" });
}

/* A copy in one piece has nothing of the original. */
static void test_move(void **state) {
        char text[] = "text", bytes[] = { 1, 0, 2 };
        struct thing t = { .text = text, .bytes = { bytes, 3 } }, copy = t, none = {};
        _cleanup_free_ char *extra = NULL;

        assert_int_equal(fields_extra(fields, &none), 1); /* "" */
        assert_int_equal(fields_extra(fields, &t), 5 + 3);
        extra = malloc(8);
        assert_non_null(extra);
        fields_move(fields, &copy, extra);
        memset(text, 'x', 4);
        memset(bytes, 'x', 3);
        assert_string_equal(copy.text, "text");
        assert_memory_equal(copy.bytes.data, "\1\0\2", 3);
        assert_true(copy.text >= extra && copy.text < extra + 8);
}

static void test_does_not_fit(void **state) {
        static const char *const rows[] = {
                "SELECT 0, 256, 0, 0, 0, '', '', x'00000000'",
                "SELECT 0, -1, 0, 0, 0, '', '', x'00000000'",
                "SELECT 0, 0, 4294967296, 0, 0, '', '', x'00000000'",
                "SELECT 0, 0, 0, 2147483648, 0, '', '', x'00000000'",
                "SELECT 0, 0, 0, 0, 0, NULL, '', x'00000000'",
                "SELECT 0, 0, 0, 0, 0, '', '', x'000000'",
                "SELECT 0, 0, 0, 0, 0, '', '', x'0000000000'",
                "SELECT 0, 0, 0, 0, 0, '', '', NULL",
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                sqlite3_stmt *s = prepare(rows[i]);
                struct thing t;
                int column = 0;

                assert_int_equal(sqlite3_step(s), SQLITE_ROW);
                if (fields_read(fields, &t, s, &column) != -EBADMSG)
                        fail_msg("%s is taken", rows[i]);
                sqlite3_finalize(s);
        }
}

/* Every operation has a statement, and fields that lie within its record. */
static void test_operations(void **state) {
        for (size_t k = 0; k < _OP_MAX; k++) {
                const struct op_definition *d = op_definitions + k;

                assert_true(d->size > 0);
                assert_non_null(d->sql[0]);
                for (const struct field *f = d->fields; f && f->type != FIELD_END; f++)
                        assert_true(f->offset < d->size);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_values, setup, teardown),
                cmocka_unit_test(test_move),
                cmocka_unit_test_setup_teardown(test_does_not_fit, setup, teardown),
                cmocka_unit_test(test_operations),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
