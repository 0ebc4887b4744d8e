/* SPDX-License-Identifier: Apache-2.0 */
/* What is described: each route, with schemas that are there; and that what --json says of a member is said.
 *
 * usage: test-openapi            looks
 *        test-openapi --print    the description */
#include "webd/route/openapi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/json/get.h"

static json_t *description;

static int setup(void **state) {
        description = openapi_new(routes, n_routes);
        return description ? 0 : -1;
}

static int teardown(void **state) {
        json_decref(description);
        return 0;
}

static json_t *at(const char *first, const char *second, const char *third) {
        json_t *o = json_object_get(json_object_get(description, first), second);

        return third ? json_object_get(o, third) : o;
}

static void each_route(void **state) {
        _cleanup_(json_decref_p) json_t *ids = json_object();

        for (const struct route *r = routes; r < routes + n_routes; r++) {
                char method[8] = "";
                const json_t *o;

                for (size_t i = 0; r->method[i]; i++)
                        method[i] = (char)(r->method[i] + ('a' - 'A'));
                o = at("paths", r->path, method);
                assert_non_null(o);
                /* Programs that are made of it call functions so. */
                assert_null(json_object_get(ids, json_get_text(o, "operationId")));
                assert_int_equal(json_object_set_new(ids, json_get_text(o, "operationId"), json_true()), 0);
                assert_non_null(json_object_get(json_object_get(o, "responses"), "default"));
        }
        assert_non_null(at("paths", "/v1/events", "get"));
}

/* Calls itself for whatever is in it. */
static void assert_references(const json_t *o) {
        const char *prefix = "#/components/schemas/", *to = json_string_value(json_object_get(o, "$ref")),
                   *key;
        json_t *x, *all = (json_t *)(uintptr_t)o;
        size_t i;

        if (to) {
                assert_memory_equal(to, prefix, strlen(prefix));
                assert_non_null(at("components", "schemas", to + strlen(prefix)));
        }
        json_object_foreach (all, key, x)
                assert_references(x);
        json_array_foreach (all, i, x)
                assert_references(x);
}

static void references(void **state) {
        assert_references(description);
}

static void schemas(void **state) {
        const json_t *list = at("components", "schemas", "List"), *ended, *name;

        assert_non_null(at("components", "schemas", "NodeShowHold"));
        ended = json_object_get(json_object_get(list, "properties"), "ended");
        assert_string_equal(json_get_text(ended, "type"), "integer");
        assert_true(json_get_flag(ended, "nullable"));
        name = json_object_get(json_object_get(list, "properties"), "name");
        assert_string_equal(json_get_text(name, "type"), "string");
        assert_false(json_get_flag(name, "nullable"));
        assert_null(json_object_get(json_object_get(list, "properties"), "indexInArray"));
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(each_route), cmocka_unit_test(references),
                                            cmocka_unit_test(schemas) };

        if (argc > 1 && strcmp(argv[1], "--print") == 0) {
                (void)setup(NULL);
                (void)json_dumpf(description, stdout, JSON_INDENT(1));
                return teardown(NULL);
        }
        return cmocka_run_group_tests(tests, setup, teardown);
}
