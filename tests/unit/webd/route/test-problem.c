/* SPDX-License-Identifier: Apache-2.0 */
#include "webd/route/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/json/get.h"
#include "lib/json/shape.h"

static void of_errors(void **state) {
        static const struct {
                const char *name, *type;
                unsigned status;
                bool if_match;
        } cases[] = {
                { "org.primus.Error.NoSuchJob", "urn:primus:error:NoSuchJob", 404, false },
                { "org.primus.Error.Conflict", "urn:primus:error:Conflict", 409, false },
                { "org.primus.Error.Conflict", "urn:primus:error:Conflict", 412, true },
                { "org.primus.Error.Busy", "urn:primus:error:Busy", 503, false },
                { "org.freedesktop.DBus.Error.AccessDenied", "about:blank", 403, false },
                { "org.freedesktop.DBus.Error.InvalidArgs", "about:blank", 400, false },
                { "org.freedesktop.DBus.Error.ServiceUnknown", "about:blank", 502, false },
                { "org.freedesktop.DBus.Error.NoReply", "about:blank", 504, false },
                { "org.example.Other", "about:blank", 500, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                unsigned status = 0;
                _cleanup_(json_decref_p) json_t *o =
                        problem_of_error(cases[i].name, "a sentence", cases[i].if_match, &status);

                assert_non_null(o);
                assert_int_equal(status, cases[i].status);
                assert_int_equal(json_get_number(o, "status"), cases[i].status);
                assert_string_equal(json_get_text(o, "type"), cases[i].type);
                assert_string_equal(json_get_text(o, "detail"), "a sentence");
                assert_null(json_object_get(o, "line"));
        }
}

static void positions(void **state) {
        unsigned status;
        _cleanup_(json_decref_p) json_t *o = problem_of_error(
                "org.primus.Error.BadConfig", "3:14: role[0].num: must be 1 to 1000", false, &status);
        _cleanup_(json_decref_p) json_t *none =
                problem_of_error("org.primus.Error.BadConfig", "the configuration is empty", false, &status);

        assert_int_equal(status, 422);
        assert_int_equal(json_get_number(o, "line"), 3);
        assert_int_equal(json_get_number(o, "column"), 14);
        assert_null(json_object_get(none, "line"));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(of_errors), cmocka_unit_test(positions) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
