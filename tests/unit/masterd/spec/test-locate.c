/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/locate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const char text[] =
        "{\"a\": [10, {\"b\": \"}]\", \"c_d\": {}}, [[7]]], \"\\u0065\": -1, \"f\" : null}";

static void assert_found(const struct place *p, const char *expected) {
        const struct place *places[] = { p };
        size_t offset;

        locate_places(text, strlen(text), places, 1, &offset);
        assert_memory_equal(text + offset, expected, strlen(expected));
}

static void test_locate(void **state) {
        struct place p = {};

        assert_found(&p, "{\"a\"");
        place_push(&p, "a", 0);
        assert_found(&p, "[10");
        p.at_key = true;
        assert_found(&p, "\"a\"");
        p.at_key = false;
        place_push(&p, NULL, 1);
        assert_found(&p, "{\"b\"");
        place_push(&p, "b", 0);
        assert_found(&p, "\"}]\"");
        p.n--;
        place_push(&p, "cD", 0); /* snake_case in the text */
        assert_found(&p, "{}}");
        p.n--;
        place_push(&p, "missing", 0); /* the nearest thing around it */
        assert_found(&p, "{\"b\"");
        p.n -= 2;
        place_push(&p, NULL, 2);
        place_push(&p, NULL, 0);
        place_push(&p, NULL, 0);
        assert_found(&p, "7]]");
        p = (struct place){ .at_key = true };
        place_push(&p, "e", 0); /* escaped in the text */
        assert_found(&p, "\"\\u0065\"");
        p = (struct place){};
        place_push(&p, "f", 0);
        assert_found(&p, "null");
}

static void test_several(void **state) {
        struct place a = {}, b = {}, c = {};
        const struct place *places[] = { &a, &b, &c };
        size_t offsets[3];

        place_push(&a, "f", 0);
        place_push(&b, "a", 0);
        place_push(&b, NULL, 0);
        place_push(&c, "a", 0);
        place_push(&c, NULL, 1);
        place_push(&c, "b", 0);
        locate_places(text, strlen(text), places, 3, offsets);
        assert_memory_equal(text + offsets[0], "null", 4);
        assert_memory_equal(text + offsets[1], "10", 2);
        assert_memory_equal(text + offsets[2], "\"}]\"", 4);
}

static void test_any_text(void **state) {
        static const char *const broken[] = { "",   "{",         "{\"a", "{\"a\"", "{\"a\":", "{\"a\":[",
                                              "[}", "{\"a\" 1}", "{1}",  "\"",     "{\"a\\" };
        struct place p = {};
        const struct place *places[] = { &p };
        size_t offset;

        place_push(&p, "a", 0);
        place_push(&p, NULL, 0);
        for (size_t i = 0; i < ELEMENTSOF(broken); i++) {
                _cleanup_free_ char *copy = strdup(broken[i]); /* so that a read past the end is seen */
                locate_places(copy, strlen(copy), places, 1, &offset);
                assert_true(offset <= strlen(copy));
        }
}

static void test_format(void **state) {
        static const struct {
                const char *key, *expected;
        } table[] = {
                { "num", "role[2].num" },
                { "a b", "role[2][\"a b\"]" },
                { "", "role[2][\"\"]" },
                { "a\nb", "role[2][\"a?b\"]" },
                { "01234567890123456789012345678901234567890123456789",
                  "role[2][\"012345678901234567890123456789012345678901234567...\"]" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *path = NULL;
                struct place p = {};
                place_push(&p, "role", 0);
                place_push(&p, NULL, 2);
                place_push(&p, table[i].key, 0);
                path = place_format(&p);
                assert_string_equal(path, table[i].expected);
        }
}

static void test_names(void **state) {
        assert_true(member_is_called("roleName", 8, "roleName"));
        assert_true(member_is_called("role_name", 9, "roleName"));
        assert_false(member_is_called("role_Name", 9, "roleName"));
        assert_false(member_is_called("role__name", 10, "roleName"));
        assert_false(member_is_called("role_nam", 8, "roleName"));
        assert_false(member_is_called("role_names", 10, "roleName"));
        assert_false(member_is_called("_role", 5, "Role"));
        assert_false(member_is_called("", 0, "role"));
}

static void test_offset(void **state) {
        static const struct {
                const char *before, *expected;
        } table[] = {
                { "", "" },
                { "{", "" },
                { "{\"a\"", "a" },
                { "{\"a\": [1, {\"b\": ", "a[1].b" },
                { "{\"a\": [1, {\"b\": 2}, ", "a[2]" },
                { "{\"a\": 1, ", "" },
                { "}]{\"a", "" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *names = NULL, *path = NULL;
                struct place p;
                assert_int_equal(
                        locate_offset(table[i].before, strlen(table[i].before), SIZE_MAX, &p, &names), 0);
                path = place_format(&p);
                assert_string_equal(path, table[i].expected);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_locate),   cmocka_unit_test(test_several),
                cmocka_unit_test(test_any_text), cmocka_unit_test(test_format),
                cmocka_unit_test(test_names),    cmocka_unit_test(test_offset),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
