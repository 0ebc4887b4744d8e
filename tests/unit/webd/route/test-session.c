/* SPDX-License-Identifier: Apache-2.0 */
#include "webd/route/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void once(void **state) {
        char token[SESSION_SECRET_MAX], other[SESSION_SECRET_MAX], header[256];
        struct session s;

        session_secret(token);
        session_secret(other);
        assert_int_equal(strlen(token), SESSION_SECRET_MAX - 1);
        assert_string_not_equal(token, other);
        session_begin(&s, token, 8099);
        assert_false(session_open(&s, other));
        assert_false(session_open(&s, ""));
        /* Nobody has come: no cookie is one, an empty one least of all. */
        assert_false(session_allows(&s, "primus-8099="));
        assert_false(session_allows(&s, NULL));
        assert_true(session_open(&s, token));
        assert_string_not_equal(s.cookie, token);
        assert_false(session_open(&s, token));
        assert_false(session_open(&s, ""));

        snprintf(header, sizeof(header), "a=b; primus-1=%s;  primus-8099=%s", other, s.cookie);
        assert_true(session_allows(&s, header));
        snprintf(header, sizeof(header), "primus-8099=%s", other);
        assert_false(session_allows(&s, header));
        snprintf(header, sizeof(header), "primus-80990=%s", s.cookie);
        assert_false(session_allows(&s, header));
        snprintf(header, sizeof(header), "primus-8099=%.10s", s.cookie);
        assert_false(session_allows(&s, header));
        snprintf(header, sizeof(header), "primus-8099=%s0", s.cookie);
        assert_false(session_allows(&s, header));
        snprintf(header, sizeof(header), "primus-8099=%s", token);
        assert_false(session_allows(&s, header));
        assert_false(session_allows(&s, ";;;; ; =; primus-8099"));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(once) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
