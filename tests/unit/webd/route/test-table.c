/* SPDX-License-Identifier: Apache-2.0 */
/* The table against itself, and against dbus/org.primus.Master1.xml by tests/contracts.py, for which it is
 * printed.
 *
 * usage: test-table            looks
 *        test-table --print    METHOD PATH OBJECT.MEMBER SIGNATURE, a line for each call */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/message-kit.h"
#include "webd/route/route.h"

static const char *const objects[] = {
        [ROUTE_MANAGER] = "Manager", [ROUTE_JOB] = "Job", [ROUTE_NODE] = "Node"
};

static const char *signature_of(const struct given *g) {
        return strcmp(g->type, "json") == 0 ? "s" : strcmp(g->type, "path") == 0 ? "ay" : g->type;
}

static void print_call(const struct route *r, const struct call *c) {
        printf("%s %s %s.%s ", r->method, r->path, c->interface ?: objects[c->object], c->member);
        FOREACH_GIVEN (c, g)
                if (!g->option && g->from != FROM_REST)
                        fputs(signature_of(g), stdout);
        puts(c->has_options ? "a{sv}" : "");
}

static void print_table(void) {
        for (const struct route *r = routes; r < routes + n_routes; r++)
                FOREACH_CALL (r, c)
                        print_call(r, c);
}

static void entries(void **state) {
        for (const struct route *r = routes; r < routes + n_routes; r++) {
                const struct call *c = r->calls;

                assert_true(strncmp(r->path, "/v1/", 4) == 0);
                /* An object of the address is one that the address has. */
                for (; c < r->calls + ROUTE_CALLS_MAX && c->member; c++) {
                        assert_true(c->object != ROUTE_JOB || strstr(r->path, "{job}"));
                        assert_true(c->object != ROUTE_NODE || strstr(r->path, "{node}"));
                }
                assert_true(c == r->calls + 1 || r->join);
                for (const struct route *other = r + 1; other < routes + n_routes; other++)
                        assert_false(strcmp(other->path, r->path) == 0 &&
                                     strcmp(other->method, r->method) == 0);
        }
}

/* Whatever the table can say can be appended. */
static void types(void **state) {
        struct brought b = { .query = json_object(), .raw = "", .get = true };

        for (const struct route *r = routes; r < routes + n_routes; r++)
                FOREACH_CALL (r, c)
                        FOREACH_GIVEN (c, g) {
                                struct call one = { .given = { *g } };
                                sd_bus_message *m = message_new();
                                char *why = NULL;
                                int k;

                                one.given[0].option = false;
                                one.given[0].otherwise = g->otherwise ?: "1";
                                k = g->from == FROM_REST ? 0 : given_append(&one, &b, m, &why);
                                /* "1" is no list, no object and no two digits, and every other type's. */
                                assert_true(k >= 0 || (k == -EINVAL && why));
                                free(why);
                                sd_bus_message_unref(m);
                        }
        json_decref((json_t *)(uintptr_t)b.query);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(entries), cmocka_unit_test(types) };

        if (argc > 1 && strcmp(argv[1], "--print") == 0) {
                print_table();
                return 0;
        }
        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
