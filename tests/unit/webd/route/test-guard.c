/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as browsers, attackers' pages and programs send them. */
#include "webd/route/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define JSON_TYPE "application/json"

static const char *const names[] = { "n1.example", "10.0.0.5", NULL };

static const struct {
        struct guard_request request;
        unsigned status;
} cases[] = {
        /* The page, a program, a tunnel. */
        { { "GET", false, "127.0.0.1:8099" }, 0 },
        { { "GET", true, "primus" }, 0 },
        { { "GET", true, "localhost:8088" }, 0 },
        { { "GET", true, "[::1]:8088" }, 0 },
        { { "GET", true, "LOCALHOST" }, 0 },
        { { "HEAD", true, "primus", .fetch_site = "same-origin" }, 0 },
        { { "GET", true, "primus", .fetch_site = "none" }, 0 },
        { { "POST", true, "primus", JSON_TYPE, NULL, NULL, "1" }, 0 },
        { { "POST", true, "primus", "application/json; charset=utf-8", NULL, NULL, "1" }, 0 },
        { { "DELETE", true, "127.0.0.1:1", JSON_TYPE, "http://127.0.0.1:1", "same-origin", "1" }, 0 },
        /* A door for looking, with a name of its own. */
        { { "GET", true, "n1.example:8479", .reads_only = true, .names = names }, 0 },
        { { "HEAD", false, "N1.EXAMPLE", .reads_only = true, .names = names }, 0 },
        { { "GET", true, "10.0.0.5", .reads_only = true, .names = names }, 0 },
        { { "GET", true, "n1.example.evil", .reads_only = true, .names = names }, 421 },
        { { "GET", true, "n1", .reads_only = true, .names = names }, 421 },
        { { "POST", true, "n1.example", JSON_TYPE, NULL, NULL, "1", true, names }, 405 },
        { { "DELETE", true, "primus", JSON_TYPE, NULL, NULL, "1", true }, 405 },
        { { "POST", false, "primus", JSON_TYPE, NULL, NULL, "1", true }, 405 },
        { { "BREW", true, "primus", .reads_only = true }, 405 },
        { { "GET", true, "primus", .fetch_site = "cross-site", .reads_only = true }, 403 },
        /* A name of the attacker's that now means this address. */
        { { "GET", false, "evil.example:8099" }, 421 },
        { { "GET", true, "127.0.0.1.evil.example" }, 421 },
        { { "GET", true, "localhost.evil.example:80" }, 421 },
        { { "GET", true, "localhost:80@evil.example" }, 421 },
        { { "GET", true, "[::1].evil" }, 421 },
        { { "GET", true, "[::1" }, 421 },
        { { "GET", true, "" }, 421 },
        { { "GET", true, NULL }, 421 },
        /* A page of another site: forms, scripts, fetch() without and with a preflight; each method. */
        { { "POST", true, "primus", "application/x-www-form-urlencoded", NULL, NULL, "1" }, 415 },
        { { "POST", true, "primus", "text/plain", NULL, NULL, "1" }, 415 },
        { { "POST", true, "primus", "application/jsonp", NULL, NULL, "1" }, 415 },
        { { "POST", true, "primus", NULL, NULL, NULL, "1" }, 415 },
        { { "DELETE", true, "primus", NULL }, 415 },
        { { "DELETE", true, "primus", JSON_TYPE }, 403 },
        { { "PATCH", true, "primus", JSON_TYPE, NULL, NULL, "0" }, 403 },
        { { "PUT", true, "primus", JSON_TYPE }, 403 },
        { { "GET", true, "primus", .fetch_site = "cross-site" }, 403 },
        { { "GET", true, "primus", .fetch_site = "same-site" }, 403 },
        { { "POST", true, "primus", JSON_TYPE, NULL, "cross-site", "1" }, 403 },
        { { "POST", true, "primus", JSON_TYPE, "https://evil.example", NULL, "1" }, 403 },
        { { "POST", true, "127.0.0.1:1", JSON_TYPE, "http://127.0.0.1:2", NULL, "1" }, 403 },
        { { "POST", true, "primus", JSON_TYPE, "null", NULL, "1" }, 403 },
        { { "GET", true, "primus", .origin = "https://evil.example" }, 403 },
        /* A link to the page from anywhere is one. */
        { { "GET", false, "primus", .fetch_site = "cross-site" }, 0 },
};

static void let_through(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *why = NULL;
                unsigned status = guard_check(&cases[i].request, &why);

                if (status != cases[i].status)
                        print_error("case %zu\n", i);
                assert_int_equal(status, cases[i].status);
                assert_true((status > 0) == (why != NULL));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(let_through) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
