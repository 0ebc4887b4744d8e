/* SPDX-License-Identifier: Apache-2.0 */
/* Values in messages, and values that say nothing. In which forms each type is taken is test-read.c. */
#include "masterd/spec/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

static json_t *value(const char *text) {
        json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

        if (!v)
                fail_msg("%s is no JSON", text);
        return v;
}

static void test_shown(void **state) {
        static const struct {
                const char *text, *shown;
        } cases[] = {
                { "3", "3" },
                { "-3", "-3" },
                { "2.50", "2.5" },
                { "true", "true" },
                { "false", "false" },
                { "null", "null" },
                { "[1, 2]", "an array" },
                { "{}", "an object" },
                { JSON("word"), JSON("word") },
                /* Long ones are cut, in one line, and never within a character. */
                { JSON("0123456789012345678901234567890123456789"),
                  JSON("0123456789012345678901234567890123456789") },
                { JSON("01234567890123456789012345678901234567890"),
                  JSON("0123456789012345678901234567890123456789...") },
                { JSON("012345678901234567890123456789012345678éé"),
                  JSON("012345678901234567890123456789012345678é...") },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *v = value(cases[i].text);

                assert_string_equal(SHOW(v), cases[i].shown);
                json_decref(v);
        }
}

static void test_zero(void **state) {
        static const char *const zeros[] = { "null", "false", "0",     "0.0",     "-0.0",     "[]",
                                             "{}",   "\"\"",  "\"0\"", "\"0.0\"", "\"false\"" };
        static const char *const others[] = { "true", "1", "0.001", "[0]", "\"00x\"", "\"no\"", "\" \"" };

        for (size_t i = 0; i < ELEMENTSOF(zeros); i++) {
                json_t *v = value(zeros[i]);

                if (!value_is_zero(v))
                        fail_msg("%s says something", zeros[i]);
                json_decref(v);
        }
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                json_t *v = value(others[i]);

                if (value_is_zero(v))
                        fail_msg("%s says nothing", others[i]);
                json_decref(v);
        }
}

/* A target is written only with a value that is within its key's bounds. */
static void test_bounds(void **state) {
        static const struct key n = { "n", KEY_U32, .min = 2, .max = 5 },
                                milli = { "m", KEY_MILLI, .max = 10 };
        static const struct {
                const struct key *key;
                const char *text;
                uint32_t is; /* 77: untouched */
        } cases[] = {
                { &n, "1", 77 },          { &n, "2", 2 },           { &n, "5", 5 },
                { &n, "6", 77 },          { &n, "-1", 77 },         { &n, "2.5", 77 },
                { &n, "\"3\"", 3 },       { &n, "\"x\"", 77 },      { &n, "1e300", 77 },
                { &n, "true", 77 },       { &milli, "0.5", 500 },   { &milli, "10", 10000 },
                { &milli, "10.001", 77 }, { &milli, "0.0005", 77 }, { &milli, "-1", 77 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct diagnostics d = {};
                struct reader r = { .diagnostics = &d };
                json_t *v = value(cases[i].text);
                uint32_t target = 77;

                assert_int_equal(value_read(&r, cases[i].key, v, &target), 0);
                if (target != cases[i].is)
                        fail_msg("%s of %s is %u", cases[i].text, cases[i].key->name, target);
                assert_int_equal(d.n_errors, target == 77);
                diagnostics_done(&d);
                json_decref(v);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shown),
                cmocka_unit_test(test_zero),
                cmocka_unit_test(test_bounds),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
