/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static const char *manual_path;

typedef void (*key_function)(const struct key *k, void *userdata);

/* Every key of every message; below what only other platforms use, too. */
static void each_key(const struct schema *s, key_function f, void *userdata) {
        for (size_t i = 0; i < s->n; i++) {
                f(&s->keys[i], userdata);
                if (s->keys[i].message)
                        each_key(s->keys[i].message, f, userdata);
        }
}

static void check_row(const struct key *k, void *userdata) {
        bool list = k->type == KEY_TEXTS || k->type == KEY_NODES || k->type == KEY_MAP || k->type == KEY_LIST;

        assert_non_null(k->name);
        assert_true((k->type == KEY_MESSAGE || k->type == KEY_LIST) == !!k->message);
        assert_true((k->type == KEY_ENUM) == !!k->names);
        if (k->status == STATUS_WARN || k->status == STATUS_SLIP || k->status == STATUS_UNBUILT)
                assert_non_null(k->hint);
        if (k->status == STATUS_LIVE) { /* what is read goes somewhere, within bounds */
                assert_true(k->offset != NO_TARGET);
                assert_true(k->type != KEY_NUMBER);
                assert_true(k->type == KEY_BOOL || k->type == KEY_TIME || k->type == KEY_MESSAGE ||
                            k->max > 0);
                assert_true(list == (k->count > 0));
                assert_true(k->type != KEY_LIST || k->item_size > 0);
                assert_true(k->type != KEY_SCALED || k->scale > 0);
        }
}

static void test_rows(void **state) {
        each_key(&job_schema, check_row, NULL);
}

static void test_find(void **state) {
        assert_string_equal(schema_find(&job_schema, "maxAppAttempts")->name, "maxAppAttempts");
        assert_string_equal(schema_find(&job_schema, "max_app_attempts")->name, "maxAppAttempts");
        assert_null(schema_find(&job_schema, "maxAppAttempt"));
}

static void check_documented(const struct key *k, const char *manual) {
        const char *p;
        size_t n = strlen(k->name);

        if (k->status == STATUS_SLIP)
                return;
        for (p = strstr(manual, k->name); p; p = strstr(p + 1, k->name))
                if (p > manual && strchr("*.\" ", p[-1]) && strchr("*.,\" :)\n", p[n]))
                        return;
        fail_msg("the manual does not have %s", k->name);
}

/* What stands below a key without effect is upstream's to describe. */
static void each_documented_key(const struct schema *s, const char *manual) {
        for (size_t i = 0; i < s->n; i++) {
                const struct key *k = &s->keys[i];
                check_documented(k, manual);
                if (k->message && (k->status == STATUS_LIVE || k->status == STATUS_QUIET))
                        each_documented_key(k->message, manual);
        }
}

static void test_manual(void **state) {
        _cleanup_free_ char *manual = NULL;

        assert_int_equal(read_file(manual_path, 1 << 20, &manual, NULL), 0);
        each_documented_key(&job_schema, manual);
}

/* What is taken has an effect, or whoever wrote it is told that it has none: by a word about the key, or
 * about what it stands in. */
static void each_key_is_told(const struct schema *s, bool told) {
        for (size_t i = 0; i < s->n; i++) {
                const struct key *k = &s->keys[i];

                switch (k->status) {
                case STATUS_LIVE:
                        if (k->offset == NO_TARGET && !k->message && !told)
                                fail_msg("%s goes nowhere", k->name);
                        break;
                case STATUS_QUIET:
                        if (!told)
                                fail_msg("%s is taken, changes nothing, and nobody is told", k->name);
                        break;
                case STATUS_WARN:
                case STATUS_SLIP:
                case STATUS_UNBUILT:
                        if (!k->hint || !*k->hint)
                                fail_msg("%s has no hint", k->name);
                        break;
                }
                if (k->message)
                        each_key_is_told(k->message,
                                         told || (k->status != STATUS_LIVE && k->status != STATUS_QUIET));
        }
}

static void test_nothing_is_ignored_in_silence(void **state) {
        each_key_is_told(&job_schema, false);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_find),
                                            cmocka_unit_test(test_manual),
                                            cmocka_unit_test(test_nothing_is_ignored_in_silence) };
        if (argc != 2)
                return EXIT_FAILURE;
        manual_path = argv[1];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
