/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/cli/ssh-host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_split(void **state) {
        static const struct {
                const char *host, *name, *port;
        } table[] = {
                { "n1", "n1", NULL },
                { "ml@n1", "ml@n1", NULL },
                { "ml@gpu-7.example.org:2222", "ml@gpu-7.example.org", "2222" },
                { "10.0.0.1:22", "10.0.0.1", "22" },
                { "fe80::1", "fe80::1", NULL },
                { "ml@[fe80::1]", "ml@[fe80::1]", NULL },
                { "[fe80::1]:22", "[fe80::1]", "22" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
                _cleanup_free_ char *name = NULL;
                const char *port;

                assert_int_equal(ssh_host_split(table[i].host, &name, &port), 0);
                assert_string_equal(name, table[i].name);
                if (table[i].port)
                        assert_string_equal(port, table[i].port);
                else
                        assert_null(port);
        }
}

static void test_no_host(void **state) {
        static const char *const table[] = { "",          "-oProxyCommand=x", "n1 x", "n1\n", "n1;x",
                                             "$(x)",      "n1/machine",       "n1:",  ":22",  "n1:x",
                                             "n1:123456", "n1:22x",           "`x`",  "'n1'", "n1\x7f" };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
                _cleanup_free_ char *name = NULL;
                const char *port;

                assert_int_equal(ssh_host_split(table[i], &name, &port), -EINVAL);
                assert_null(name);
        }
        {
                _cleanup_free_ char *name = NULL;
                const char *port;
                char longest[1024];

                memset(longest, 'n', sizeof(longest) - 1);
                longest[sizeof(longest) - 1] = '\0';
                assert_int_equal(ssh_host_split(longest, &name, &port), -EINVAL);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_split),
                cmocka_unit_test(test_no_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
