/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/join/local.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_listen_target(void **state) {
        static const struct {
                const char *listen, *target;
        } table[] = {
                { NULL, "127.0.0.1:7747" },
                { "", "127.0.0.1:7747" },
                { "*", "127.0.0.1:7747" },
                { "*:8000", "127.0.0.1:8000" },
                { "0.0.0.0:1", "127.0.0.1:1" },
                { "[::]:7748", "[::1]:7748" },
                { "::", "[::1]:7747" },
                { "192.0.2.1", "192.0.2.1:7747" },
                { " [2001:db8::1]:9 *:7747", "[2001:db8::1]:9" },
                { "nonsense 192.0.2.1:80", "192.0.2.1:80" }, /* masterd refuses it, and says so */
                { "nonsense", "127.0.0.1:7747" },
        };
        char text[ADDR_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct addr a = {};
                listen_target(table[i].listen, &a);
                assert_string_equal(addr_format(&a, text), table[i].target);
        }
}

static void test_this_host(void **state) {
        assert_true(is_this_host("127.0.0.1"));
        assert_true(is_this_host("127.0.0.1:7747"));
        assert_false(is_this_host("203.0.113.1"));
        assert_false(is_this_host("203.0.113.1:7747"));
        assert_false(is_this_host("no.such.host.invalid"));
        assert_false(is_this_host(""));
        assert_false(is_this_host("127.0.0.1:x"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_listen_target),
                cmocka_unit_test(test_this_host),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
