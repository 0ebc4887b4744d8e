/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a submitter can make larger is in the sum, and what he makes larger by n bytes counts n bytes at
 * least. */
#include "masterd/job/footprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

static struct job_spec *spec_of(const char *text) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;

        assert_int_equal(spec_parse(text, strlen(text), &s, &d), 0);
        assert_non_null(s);
        diagnostics_done(&d);
        return s;
}

static size_t size_of(const char *text) {
        _cleanup_(spec_free_p) struct job_spec *s = spec_of(text);

        return footprint_of_spec(s);
}

static void test_spec(void **state) {
        const size_t one =
                size_of(JSON({ "role" : [ { "roleName" : "w", "num" : 1, "command" : "true" } ] }));
        const size_t many =
                size_of(JSON({ "role" : [ { "roleName" : "w", "num" : 1001, "command" : "true" } ] }));

        assert_true(one > sizeof(struct job) + sizeof(struct role));
        assert_true(many - one >= 1000 * sizeof(struct executor));
        assert_true(size_of(JSON({
                            "role" : [
                                    { "roleName" : "w", "num" : 1, "command" : "true" },
                                    { "roleName" : "v", "num" : 1, "command" : "true" }
                            ]
                    })) > one + sizeof(struct role) + sizeof(struct executor));
        assert_true(size_of(JSON({
                            "env" : { "A" : "0123456789012345678901234567890123456789" },
                            "role" : [ { "roleName" : "w", "num" : 1, "command" : "true" } ]
                    })) >= one + 40);
}

static void test_secrets(void **state) {
        char name[] = "token", data[4097] = "";
        const struct job_secret secrets[2] = { { name, data, 1 }, { name, data, 4096 } };

        assert_int_equal(footprint_of_secrets(NULL, 0), 0);
        assert_true(footprint_of_secrets(secrets, 1) > sizeof(*secrets));
        assert_true(footprint_of_secrets(secrets, 2) >=
                    footprint_of_secrets(secrets, 1) + sizeof(*secrets) + 4096);
}

static void test_job(void **state) {
        static const char text[] = JSON({ "role" : [ { "roleName" : "w", "num" : 4, "command" : "true" } ] });
        struct job *j;
        size_t before;

        assert_int_equal(job_new(1, SD_ID128_NULL, 1000, spec_of(text), &j), 0);
        before = footprint_of_job(j);
        assert_true(before >= size_of(text));
        free(j->given.cwd);
        j->given.cwd = calloc(1, 1001);
        assert_non_null(j->given.cwd);
        memset(j->given.cwd, 'x', 1000);
        assert_true(footprint_of_job(j) >= before + 900);
        before = footprint_of_job(j);
        j->element.array = 1; /* an element has its configuration together with the others */
        assert_int_equal(footprint_of_job(j), before - spec_bytes(j->spec));
        job_free(j);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spec),
                cmocka_unit_test(test_secrets),
                cmocka_unit_test(test_job),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
