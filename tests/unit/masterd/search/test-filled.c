/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/search/filled.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "tests/kit/json.h"

static json_t *given(void) {
        const char *text = json_text(
                "{'lr': 0.5, 'n': 3, 'name': 'a b; rm -rf $HOME', 'on': true, 'net': {'width': 8, 'act': 'relu'}, "
                "'shape': [1, 2], 'none': null}");
        json_t *j = json_loads(text, 0, NULL);

        assert_non_null(j);
        return j;
}

static void test_places(void **state) {
        const struct {
                const char *argument, *filled; /* NULL: left out */
        } cases[] = {
                { "plain", "plain" },
                { "", "" },
                { "{hp.lr}", "0.5" },
                { "--n={hp.n}", "--n=3" },
                { "{hp.name}", "a b; rm -rf $HOME" }, /* one argument, as it is */
                { "{hp.on},{hp.n},{hp.n}.", "true,3,3." },
                { "{hp.net.width}x{hp.net.act}", "8xrelu" },
                { "{hp.net}", json_text("{'width':8,'act':'relu'}") },
                { "{hp.shape}", "[1,2]" },
                { "{hp.none}", "null" },
                { "--x={hp.x}", NULL },
                { "{hp.n}{hp.net.depth}", NULL },
                { "{hp.lr.inner}", NULL },
                /* No places. */
                { "{hp.}", "{hp.}" },
                { "{hp.lr", "{hp.lr" },
                { "{hp.{hp.n}}", "{hp.3}" },
                { "{lr} {hp lr} hp.lr}", "{lr} {hp lr} hp.lr}" },
        };
        json_t *j = given();

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char *argv[] = { (char *)"program", (char *)cases[i].argument, (char *)"last", NULL };
                _cleanup_(strings_free_p) char **ret = NULL;

                assert_int_equal(filled_argv(argv, j, &ret), 0);
                assert_string_equal(ret[0], "program");
                if (cases[i].filled)
                        assert_string_equal(ret[1], cases[i].filled);
                assert_string_equal(ret[cases[i].filled ? 2 : 1], "last");
                assert_null(ret[cases[i].filled ? 3 : 2]);
                assert_int_equal(filled_any(argv),
                                 !cases[i].filled || strcmp(cases[i].filled, cases[i].argument) != 0);
        }
        json_decref(j);
}

static void test_too_much(void **state) {
        _cleanup_free_ char *long_text = malloc(FILLED_MAX), *many = calloc(1, 8 * 1024 + 1);
        char *argv[] = { (char *)"{hp.long}", NULL }, *twice[] = { many, NULL }, *name[] = { NULL, NULL };
        _cleanup_(strings_free_p) char **ret = NULL;
        char long_name[SPACE_NAME_MAX + 16] = "{hp.";
        json_t *j;

        memset(long_text, 'x', FILLED_MAX - 1);
        long_text[FILLED_MAX - 1] = 0;
        j = json_pack("{s:s}", "long", long_text);
        assert_int_equal(filled_argv(argv, j, &ret), 0);
        for (int i = 0; i < 1024; i++)
                memcpy(many + 8 * i, "{hp.lon}", 8);
        json_decref(j);
        j = json_pack("{s:s}", "lon", long_text);
        assert_int_equal(filled_argv(twice, j, &ret), -E2BIG);
        /* A name is no longer than one may be. */
        memset(long_name + 4, 'n', SPACE_NAME_MAX + 1);
        strcpy(long_name + 4 + SPACE_NAME_MAX + 1, "}");
        name[0] = long_name;
        assert_false(filled_any(name));
        json_decref(j);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_places), cmocka_unit_test(test_too_much) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
