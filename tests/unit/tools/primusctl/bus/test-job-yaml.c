/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as JSON: values, places, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/kit/json.h"
#include "tools/primusctl/bus/job-yaml.h"

static const struct {
        const char *yaml, *json;
} same[] = {
        { "name: x\nrole:\n- num: 2\n  command: |\n    echo a\n    echo b\n",
          JSON({ "name" : "x", "role" : [ { "num" : 2, "command" : "echo a\necho b\n" } ] }) },
        { "a: [1, -2, 0x1f, 0o17, 010, +3]", JSON({ "a" : [ 1, -2, 31, 15, 10, 3 ] }) },
        { "a: [1.5, .5, 1e3, -1.25E-2, 1.]", JSON({ "a" : [ 1.5, 0.5, 1000.0, -0.0125, 1.0 ] }) },
        /* Variables are texts, as they stand. */
        { "env: {A: 3.10, B: 0x10, C: yes, D: true, E: 1e-3, F: .5, G: ~, H: '7', I: [1], 2: 3}\nb: 3.10",
          JSON({
                  "env" : {
                          "A" : "3.10",
                          "B" : "0x10",
                          "C" : "yes",
                          "D" : "true",
                          "E" : "1e-3",
                          "F" : ".5",
                          "G" : null,
                          "H" : "7",
                          "I" : [1],
                          "2" : "3"
                  },
                  "b" : 3.1
          }) },
        { "role:\n- env:\n    A: 1.0\n    B:\n      C: 1.0\n- env: [1.0]\n- {env: 1, c: 1.0}", JSON({
                  "role" : [
                          { "env" : { "A" : "1.0", "B" : { "C" : 1.0 } } }, { "env" : [1.0] },
                          { "env" : 1, "c" : 1.0 }
                  ]
          }) },
        /* Norway, times, versions, dates: texts. */
        { "a: [no, on, Yes, 12:30, 1.2.3, 2026-01-01, 1_000, 0x, 1e, e5, '1', \"true\", .inf, +, -, .]",
          JSON({
                  "a" : [
                          "no", "on", "Yes", "12:30", "1.2.3", "2026-01-01", "1_000", "0x", "1e", "e5", "1",
                          "true", ".inf", "+", "-", "."
                  ]
          }) },
        { "a: [true, False, TRUE, null, ~, Null, ]\nb:\nc: tRue",
          JSON({ "a" : [ true, false, true, null, null, null ], "b" : null, "c" : "tRue" }) },
        { JSON({ "is" : "JSON", "too" : [1] }), JSON({ "is" : "JSON", "too" : [1] }) },
        { "1: a\ntrue: b\n", JSON({ "1" : "a", "true" : "b" }) },
        { "a: \"\\\"},{\\u00e4\"\nb: {}\nc: []\n", JSON({ "a" : "\"},{ä", "b" : {}, "c" : [] }) },
        { "a: 99999999999999999999", JSON({ "a" : 1e20 }) },
};

static void test_values(void **state) {
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
                struct yaml_error error;
                json_t *have, *want;
                char *text;
                size_t size;

                assert_int_equal(yaml_to_json(same[i].yaml, strlen(same[i].yaml), &text, &size, &error), 0);
                assert_int_equal(size, strlen(text));
                have = json_loads(text, 0, NULL);
                want = json_loads(same[i].json, 0, NULL);
                assert_non_null(want);
                if (!have || !json_equal(have, want))
                        fail_msg("%s became %s", same[i].yaml, text);
                json_decref(have);
                json_decref(want);
                free(text);
        }
}

static void test_places(void **state) {
        static const char yaml[] = "# a comment\nname: x\n\nrole:\n  - roleName: w\n    # another\n    mem: "
                                   "1\n    argv: [a,\n           b]\n";
        static const struct {
                const char *what;
                size_t line, column;
        } places[] = { { "\"name\"", 2, 1 }, { "\"role\"", 4, 1 }, { "\"roleName\"", 5, 5 },
                       { "\"mem\"", 7, 5 },  { "\"argv\"", 8, 5 }, { "\"b\"", 9, 12 } };
        struct yaml_error error;
        char *text;
        size_t size;

        assert_int_equal(yaml_to_json(yaml, sizeof(yaml) - 1, &text, &size, &error), 0);
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                const char *at = strstr(text, places[i].what), *line = text;
                size_t number = 1;

                assert_non_null(at);
                for (const char *p = text; p < at; p++)
                        if (*p == '\n') {
                                number++;
                                line = p + 1;
                        }
                assert_int_equal(number, places[i].line);
                assert_in_range(at - line + 1, places[i].column,
                                places[i].column + 1); /* a brace may stand there */
        }
        free(text);
}

static void test_refused(void **state) {
        static const struct {
                const char *yaml, *says;
                size_t line;
        } bad[] = {
                { "a: &x 1\nb: *x\n", "anchors", 1 },
                { "b: *x\n", "aliases", 1 },
                { "a: 1\nb: !!int 3\n", "tags", 2 },
                { "a: !x {}\n", "tags", 1 },
                { "a: &x []\n", "anchors", 1 },
                { "<<: {a: 1}\n", "merge", 1 },
                { "a: 1\n---\nb: 2\n", "second document", 2 },
                { "? [a, b]\n: 1\n", "a key has to be a text", 1 },
                { "a: 1\n\tb: 2\n", "", 2 },
                { "a: [1\n", "", 2 },
                { "a: \"\\0\"\n", "NUL", 1 },
                { "", "empty", 0 },
                { "# nothing\n", "empty", 0 },
                { "a: \xff\n", "", 0 },
        };
        struct yaml_error error;
        char *text;
        size_t size;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(yaml_to_json(bad[i].yaml, strlen(bad[i].yaml), &text, &size, &error), -22);
                if (!strstr(error.text, bad[i].says) || error.line != bad[i].line || !*error.text)
                        fail_msg("%s: %zu: %s", bad[i].yaml, error.line, error.text);
        }
}

static void test_bounds(void **state) {
        struct yaml_error error;
        char deep[2 * 4000], *text;
        size_t size;

        memset(deep, '[', sizeof(deep));
        assert_int_equal(yaml_to_json(deep, sizeof(deep), &text, &size, &error), -22);
        assert_non_null(strstr(error.text, "too deeply"));
        /* Lines that are far apart cost what they are. */
        text = malloc(1u << 20);
        assert_non_null(text);
        memset(text, '\n', 1u << 20);
        memcpy(text + (1u << 20) - 4, "a: 1", 4);
        {
                char *json;

                assert_int_equal(yaml_to_json(text, 1u << 20, &json, &size, &error), 0);
                assert_in_range(size, 1u << 20, (1u << 20) + 64);
                free(json);
        }
        free(text);
}

/* Whatever comes, it ends, and what is accepted is JSON. */
static void test_noise(void **state) {
        static const char *const pieces[] = { "a", ":",  " ", "\n", "- ", "[",   "]",        "{",  "}",
                                              ",", "\"", "'", "#",  "|",  ">",   "\n  ",     "?",  "&",
                                              "*", "!",  "1", "~",  "%",  "---", "\xc3\xa4", "\\", "\t" };
        unsigned seed = 1, accepted = 0;

        for (unsigned i = 0; i < 20000; i++) {
                struct yaml_error error;
                char text[128] = "", *json;
                size_t size;
                int r;

                for (unsigned k = 0; k < 14; k++) {
                        seed = seed * 1103515245u + 12345u;
                        strcat(text, pieces[(seed >> 16) % (sizeof(pieces) / sizeof(pieces[0]))]);
                }
                r = yaml_to_json(text, strlen(text), &json, &size, &error);
                if (r == 0) {
                        json_t *v = json_loads(json, JSON_DECODE_ANY, NULL);

                        if (!v)
                                fail_msg("%s became %s", text, json);
                        json_decref(v);
                        free(json);
                        accepted++;
                } else
                        assert_int_equal(r, -22);
        }
        assert_in_range(accepted, 100, 20000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values), cmocka_unit_test(test_places), cmocka_unit_test(test_refused),
                cmocka_unit_test(test_bounds), cmocka_unit_test(test_noise),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
