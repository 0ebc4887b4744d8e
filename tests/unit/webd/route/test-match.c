/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "webd/route/route.h"

static const struct route *find(const char *method, const char *path, struct route_values *v, bool *others) {
        return route_match(routes, n_routes, method, path, v, others);
}

static void found(void **state) {
        struct route_values v;
        bool others;

        assert_string_equal(find("GET", "/v1/jobs", &v, &others)->path, "/v1/jobs");
        assert_string_equal(find("HEAD", "/v1/jobs", &v, &others)->method, "GET");
        assert_string_equal(find("POST", "/v1/jobs", &v, &others)->calls[0].member, "Submit");
        assert_string_equal(find("GET", "/v1/jobs/418/why", &v, &others)->calls[0].member, "Why");
        assert_int_equal(v.job, 418);
        assert_string_equal(find("POST", "/v1/nodes/n3.example/cordon", &v, &others)->calls[0].member,
                            "Cordon");
        assert_string_equal(v.node, "n3.example");
}

static void not_found(void **state) {
        static const char *const none[] = {
                "/v1",
                "/v1/",
                "/v1/jobs/",
                "/v1/jobs/0",
                "/v1/jobs/x",
                "/v1/jobs/-1",
                "/v1/jobs/1/",
                "/v1/jobs//why",
                "/v1/jobs/4294967296",
                "/v1/jobs/1/bla",
                "/v1/nodes/N1",
                "/v1/nodes/../n1",
                "/v1/nodes/.",
                "//v1/jobs",
                "v1/jobs",
                "/v1/jobs/1 /a",
                "",
                "/v1/jobs/01e/x",
                "/v1/nodes/a b",
                "/v1/jobs/99999999999999999999",
        };
        struct route_values v;
        bool others;

        for (size_t i = 0; i < ELEMENTSOF(none); i++) {
                assert_null(find("GET", none[i], &v, &others));
                assert_false(others);
        }
        /* The address is one, and the method is not. */
        assert_null(find("DELETE", "/v1/jobs", &v, &others));
        assert_true(others);
        assert_null(find("GET", "/v1/jobs/1/kill", &v, &others));
        assert_true(others);
}

static void dry(void **state) {
        static const struct {
                const char *value, *path;
        } cases[] = {
                { NULL, "/v1/jobs" },
                { "false", "/v1/jobs" },
                { "0", "/v1/jobs" },
                { "1", "/v1/jobs/trial" },
                { "true", "/v1/jobs/trial" },
                { "perhaps", NULL },
                { "", NULL },
        };
        struct route_values v;
        bool others;
        const struct route *submit = find("POST", "/v1/jobs", &v, &others),
                           *kill = find("POST", "/v1/jobs/1/kill", &v, &others);

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *query = json_object();
                const struct route *r;

                if (cases[i].value)
                        assert_int_equal(json_object_set_new(query, "dryRun", json_string(cases[i].value)),
                                         0);
                r = route_dry(routes, n_routes, submit, query);
                if (!cases[i].path)
                        assert_null(r);
                else {
                        assert_string_equal(r->path, cases[i].path);
                        assert_int_equal(json_object_size(query), 0); /* else it were not known there */
                }
                json_decref(query);
        }
        /* Where there is no such thing it stays, and is refused. */
        json_t *query = json_pack("{s:s}", "dryRun", "1");
        assert_ptr_equal(route_dry(routes, n_routes, kill, query), kill);
        assert_int_equal(json_object_size(query), 1);
        json_decref(query);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(found), cmocka_unit_test(not_found),
                                            cmocka_unit_test(dry) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
