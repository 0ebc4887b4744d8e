/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/spec/spec.h"
#include "tests/kit/json.h"

static void test_after(void **state) {
        static const char *const bad[] = {
                "",
                ":ok",
                "0",
                "0:ok",
                "417:",
                "417:OK",
                "417:okay",
                "417:ok:any",
                "-1",
                "4294967296",
                "4 17",
                "417[]",
                "417[3",
                "417]",
                "[3]",
                "417[3]x",
                "417[3][4]",
                "417[-3]",
                "417[1000000000]",
                "417[3]:",
                "417[0000000000000000003]",
                "417 [3]",
                "12345678901234567890",
        };
        char name[AFTER_NAME_MAX];
        struct after_entry e = { .job = 1 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_true(after_parse(bad[i], &e) < 0);
        assert_int_equal(e.job, 1);
        assert_int_equal(after_parse("417", &e), 0);
        assert_int_equal(e.job, 417);
        assert_int_equal(e.condition, AFTER_OK);
        assert_int_equal(after_parse("4294967295:fail", &e), 0);
        assert_int_equal(e.job, UINT32_MAX);
        assert_int_equal(e.condition, AFTER_FAIL);
        assert_int_equal(after_parse("417[3]", &e), 0);
        assert_int_equal(e.job, 417);
        assert_int_equal(e.index, 3);
        assert_int_equal(e.condition, AFTER_OK);
        assert_string_equal(after_name(&e, name), "417[3]");
        assert_int_equal(after_parse("4294967295[999999999]:fail", &e), 0);
        assert_int_equal(e.condition, AFTER_FAIL);
        assert_string_equal(after_name(&e, name), "4294967295[999999999]");
        assert_int_equal(after_parse("7:any", &e), 0);
        assert_int_equal(e.index, AFTER_WHOLE);
        assert_string_equal(after_name(&e, name), "7");
        assert_int_equal(e.condition, AFTER_ANY);
}

static void assert_range(const char *text, uint32_t limit, size_t n, const uint32_t *wanted) {
        const char *why = NULL;
        struct array_range a;

        assert_int_equal(array_range_parse(text, &a, &why), 0);
        assert_int_equal(a.limit, limit);
        assert_int_equal(a.n, n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(a.indices[i], wanted[i]);
        array_range_done(&a);
}

static void test_ranges(void **state) {
        static const char *const bad[] = {
                "",
                ",",
                "1,",
                ",1",
                "a",
                "1-",
                "-1",
                "1-2-3",
                "3-1",
                "0-9:0",
                "0-9:",
                "1:2",
                "0-9%",
                "0-9%0",
                "0-9%100001",
                "0-9%8%8",
                "0-9%8,1",
                "0-9,5",
                "1,1",
                "0-100000",
                "0 - 9",
                "0-9 ",
                "+1",
                "0x10",
                "1000000000",
                "0-99999,100000",
                "18446744073709551616",
                "0-1000000000",
        };
        const char *why;
        struct array_range a = { .n = 77 };

        assert_range("0-3", 0, 4, (uint32_t[]){ 0, 1, 2, 3 });
        assert_range("0-3%2", 2, 4, (uint32_t[]){ 0, 1, 2, 3 });
        assert_range("7-9,1,3", 0, 5, (uint32_t[]){ 1, 3, 7, 8, 9 });
        assert_range("0-99:40", 0, 3, (uint32_t[]){ 0, 40, 80 });
        assert_range("5-5:7%100000", 100000, 1, (uint32_t[]){ 5 });
        assert_range("999999999", 0, 1, (uint32_t[]){ 999999999 });
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                why = NULL;
                if (array_range_parse(bad[i], &a, &why) >= 0)
                        fail_msg("'%s' was taken", bad[i]);
                assert_non_null(why);
                assert_memory_equal(why, "must ", 5);
        }
        assert_int_equal(a.n, 77);
        assert_int_equal(array_range_parse("0-99999", &a, &why), 0);
        assert_int_equal(a.n, ARRAY_ELEMENTS_MAX);
        array_range_done(&a);
}

#define ROLE "'role':[{'roleName':'w','command':'x'}]"

static void refused(const char *keys, const char *wanted) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        struct job_spec *s;
        char text[512];

        snprintf(text, sizeof(text), "{%s," ROLE "}", keys);
        assert_int_equal(spec_parse(json_text(text), strlen(text), &s, &d), -EBADMSG);
        if (!strstr(diagnostics_first_error(&d)->message, wanted))
                fail_msg("%s: %s", keys, diagnostics_first_error(&d)->message);
}

static void test_keys(void **state) {
        static const char text[] = "{'after':['12','13:any'],'begin':'2026-01-31T08:00:00+01:00',"
                                   "'array':'0-9%2'," ROLE "}";
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(spec_free_p) struct job_spec *s = NULL, *again = NULL;
        _cleanup_free_ char *json = NULL;

        assert_int_equal(spec_parse(json_text(text), strlen(text), &s, &d), 0);
        assert_int_equal(s->array.n_after, 2);
        assert_string_equal(s->array.after[1], "13:any");
        assert_int_equal(spec_effective(s, &json), 0);
        assert_int_equal(spec_load(json, strlen(json), &again, &d), 0);
        assert_string_equal(again->array.array, "0-9%2");
        assert_string_equal(again->array.begin, "2026-01-31T08:00:00+01:00");
        assert_string_equal(again->array.after[0], "12");
        refused("'after':['0']", "must be a job's number");
        refused("'after':'12'", "must be an array");
        refused("'begin':'08:00'", "with its offset");
        refused("'begin':'2026-02-30T08:00:00Z'", "that there is");
        refused("'array':'0-9%0'", "1 to 100000 elements at a time");
        refused("'array':'9-0'", "the smaller index first");
        refused("'array':'0-100000'", "at most 100000 elements");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_after),
                cmocka_unit_test(test_ranges),
                cmocka_unit_test(test_keys),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
