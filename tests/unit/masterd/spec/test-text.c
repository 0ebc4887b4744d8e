/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

static const struct text_bounds bounds = { .size = 64, .depth = 3, .values = 8 };

static void test_comments(void **state) {
        static const struct {
                const char *text, *clean;
        } table[] = {
                { "{}", "{}" },
                { "{ // x\n}", "{     \n}" },
                { "{ /* \n */ }", "{    \n    }" },
                { JSON({ "a" : "//b" }), JSON({ "a" : "//b" }) },
                { "{\"a\\\"//\": 1}", "{\"a\\\"//\": 1}" },
                { "{\"\\\\\" // \"", "{\"\\\\\"     " },
                { "// \xc3\xa9", "     " },
                { "/**/{/***/}", "    {     }" },
                { "\xef\xbb\xbf{}", "   {}" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct diagnostics d = {};
                _cleanup_free_ char *clean = NULL;
                assert_int_equal(text_prepare(table[i].text, strlen(table[i].text), &bounds, &d, &clean), 0);
                assert_string_equal(clean, table[i].clean);
                diagnostics_done(&d);
        }
}

static void test_refusals(void **state) {
        static const struct {
                const char *text;
                size_t size;
                unsigned line, column;
                const char *message;
        } table[] = {
                { "{\n \"a\": \"\xff\"}", 12, 2, 8, "not UTF-8: save the file as UTF-8" },
                { "{\"a\0\"}", 6, 1, 4, "a NUL byte" },
                { "[[[[", 4, 1, 4, "nested too deeply" },
                { "[1,2,3,4,5,6,7,8,9]", 19, 1, 17, "too many values" },
                { "{ /* ", 5, 1, 3, "the comment that begins here has no end" },
                { "{ /*/ }", 7, 1, 3, "the comment that begins here has no end" },
                { "{ / }", 5, 1, 3, "a single '/' means nothing here" },
                { "{ /", 3, 1, 3, "a single '/' means nothing here" },
                { "{\"\xc3\xa9\", \"x\n\"}", 12, 1, 7, "the text in quotes that begins here has no end" },
                { "\"\\", 2, 1, 1, "the text in quotes that begins here has no end" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct diagnostics d = {};
                char *clean = NULL;
                assert_int_equal(text_prepare(table[i].text, table[i].size, &bounds, &d, &clean), -EBADMSG);
                assert_null(clean);
                assert_int_equal(d.n, 1);
                assert_string_equal(d.items[0].message, table[i].message);
                assert_int_equal(d.items[0].line, table[i].line);
                assert_int_equal(d.items[0].column, table[i].column);
                diagnostics_done(&d);
        }
}

static void test_too_large(void **state) {
        static char text[65];
        struct diagnostics d = {};
        char *clean = NULL;

        memset(text, ' ', sizeof(text));
        assert_int_equal(text_prepare(text, sizeof(text), &bounds, &d, &clean), -EBADMSG);
        assert_string_equal(d.items[0].message, "the configuration has 65 bytes; at most 64 are accepted");
        diagnostics_done(&d);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_comments), cmocka_unit_test(test_refusals),
                                            cmocka_unit_test(test_too_large) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
