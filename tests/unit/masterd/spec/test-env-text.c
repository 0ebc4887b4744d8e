/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and truth values of env are the texts that were written. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/spec/edit.h"
#include "masterd/spec/env-text.h"
#include "masterd/spec/spec.h"
#include "tests/kit/json.h"

static void assert_reads(const char *text, const char *expected) {
        json_t *root = json_loads(text, JSON_DECODE_ANY, NULL),
               *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
        char *out;

        assert_true(root && wanted);
        assert_int_equal(env_texts(text, strlen(text), root), 0);
        out = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!json_equal(root, wanted))
                fail_msg("%s, not %s", out, expected);
        free(out);
        json_decref(root);
        json_decref(wanted);
}

static void test_texts(void **state) {
        /* As written. */
        assert_reads(JSON({ "env" : { "a" : 0.1, "b" : 1e-3, "c" : 3.10, "d" : -0, "e" : 1E+5, "f" : 42 } }),
                     JSON({
                             "env" : {
                                     "a" : "0.1",
                                     "b" : "1e-3",
                                     "c" : "3.10",
                                     "d" : "-0",
                                     "e" : "1E+5",
                                     "f" : "42"
                             }
                     }));
        assert_reads(
                JSON({ "env" : { "a" : true, "b" : false, "c" : null, "d" : "1.50", "e" : "tru,e:{1}" } }),
                JSON({
                        "env" : { "a" : "true", "b" : "false", "c" : null, "d" : "1.50", "e" : "tru,e:{1}" }
                }));
        /* In roles, and anywhere else; whatever stands before it. */
        assert_reads(
                "{\"x\": [1, [2, {}], {\"env\": {\"a\\u0062\": 7.0}}], \"y\\\"\": 3, \"role\": "
                "[{\"env\": {\"c\":1}}, {\"env\":{\"c\":2}}]}",
                "{\"x\":[1,[2,{}],{\"env\":{\"ab\":\"7.0\"}}],\"y\\\"\":3,\"role\":[{\"env\":{\"c\":\"1\"}},"
                "{\"env\":{\"c\":\"2\"}}]}");
        assert_reads("{\"e\\u006ev\":{\"a\":1}}", JSON({ "env" : { "a" : "1" } }));
        /* Directly in it, and in nothing else. */
        assert_reads(JSON({ "env" : [ 1, true ], "n" : 1.50 }), JSON({ "env" : [ 1, true ], "n" : 1.5 }));
        assert_reads(JSON({ "env" : { "a" : { "b" : 1 }, "c" : [2] }, "a" : 1 }),
                     JSON({ "env" : { "a" : { "b" : 1 }, "c" : [2] }, "a" : 1 }));
        assert_reads(JSON({ "env" : 1, "vars" : { "env" : "x", "a" : 1 } }),
                     JSON({ "env" : 1, "vars" : { "env" : "x", "a" : 1 } }));
        assert_reads("[]", "[]");
        assert_reads("7", "7");
}

static char *env_of(const char *env, int *ret, char **ret_message) {
        _cleanup_(spec_free_p) struct job_spec *s = NULL;
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_free_ char *text = NULL;

        assert_true(asprintf(&text, "{'role':[{'roleName':'w','num':1,'command':'x','env':%s}]}", env) > 0);
        *ret = spec_parse(json_text(text), strlen(text), &s, &d);
        *ret_message = d.n > 0 ? strdup(d.items[0].message) : NULL;
        return s && s->roles[0].n_env > 0 ? strdup(s->roles[0].env[0]) : NULL;
}

static void test_jobs(void **state) {
        static const struct {
                const char *env, *is, *message;
        } table[] = {
                { JSON({ "LR" : 1e-3 }), "LR=1e-3", NULL },
                { JSON({ "LR" : 0.10 }), "LR=0.10", NULL },
                { JSON({ "N" : -0 }), "N=-0", NULL },
                { JSON({ "N" : 9007199254740993 }), "N=9007199254740993", NULL },
                { JSON({ "AMP" : true }), "AMP=true", NULL },
                { JSON({ "LR" : [1] }), NULL, "must be text, not an array" },
                { JSON({ "LR" : { "a" : 1 } }), NULL, "must be text, not an object" },
                { JSON({ "1x" : 1 }), NULL,
                  "the name must be letters, digits and '_', not beginning with a digit" },
                { JSON({ "LR" : 1e999 }), NULL, "the number is too large" },
                { JSON({ "LR" : 123456789012345678901234567890 }), NULL, "the number is too large" },
                { JSON({ "LR" : NaN }), NULL, NULL },
                { "{'LR': 01}", NULL, NULL },
                { "{'LR': .5}", NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *message = NULL, *is = NULL;
                int r;

                is = env_of(table[i].env, &r, &message);
                assert_int_equal(r, table[i].is ? 0 : -EBADMSG);
                if (table[i].is)
                        assert_string_equal(is, table[i].is);
                else if (table[i].message)
                        assert_string_equal(message, table[i].message);
        }
}

/* The bound of a text is that of a number, too. */
static void test_long_numbers(void **state) {
        _cleanup_free_ char *message = NULL, *is = NULL, *env = malloc(300000);
        int r;

        strcpy(env, "{'LR': 0.");
        memset(env + 9, '1', 280000);
        strcpy(env + 280009, "}");
        is = env_of(env, &r, &message);
        assert_true(r == 0 || r == -EBADMSG);
        if (r == 0)
                assert_int_equal(strlen(is), 280005);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_jobs),
                cmocka_unit_test(test_long_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
