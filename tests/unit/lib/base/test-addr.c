/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/addr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_parse(void **state) {
        static const struct {
                const char *text;
                int r;
                const char *formatted;
        } table[] = {
                { "192.0.2.1", 0, "192.0.2.1:7747" },
                { "192.0.2.1:80", 0, "192.0.2.1:80" },
                { "[2001:db8::1]", 0, "[2001:db8::1]:7747" },
                { "[2001:db8::1]:443", 0, "[2001:db8::1]:443" },
                { "2001:db8::1", 0, "[2001:db8::1]:7747" },
                { "::1", 0, "[::1]:7747" },
                { "", -EINVAL, NULL },
                { "host", -EINVAL, NULL },
                { "192.0.2.1:", -EINVAL, NULL },
                { "192.0.2.1:0", -EINVAL, NULL },
                { "192.0.2.1:65536", -EINVAL, NULL },
                { "192.0.2.256", -EINVAL, NULL },
                { "[192.0.2.1]:80", -EINVAL, NULL },
                { "[::1", -EINVAL, NULL },
                { "[::1]80", -EINVAL, NULL },
                { "fe80::1%eth0", -EINVAL, NULL },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                char buf[ADDR_TEXT_MAX];
                struct addr a, b;
                struct sockaddr_storage ss;
                assert_int_equal(addr_parse(table[i].text, 7747, &a), table[i].r);
                if (table[i].r < 0)
                        continue;
                assert_string_equal(addr_format(&a, buf), table[i].formatted);
                assert_true(addr_to_sockaddr(&a, &ss) > 0);
                assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, &b), 0);
                assert_true(addr_equal(&a, &b));
                b.port++;
                assert_false(addr_equal(&a, &b));
        }
}

static void test_split(void **state) {
        char *host;
        uint16_t port;

        assert_int_equal(addr_split("n1.example.org:99", 1, &host, &port), 0);
        assert_string_equal(host, "n1.example.org");
        assert_int_equal(port, 99);
        free(host);
        assert_int_equal(addr_split("[::1]", 5, &host, &port), 0);
        assert_string_equal(host, "::1");
        assert_int_equal(port, 5);
        free(host);
        assert_int_equal(addr_split("a b", 1, &host, &port), -EINVAL);
        assert_int_equal(addr_split("-n1", 1, &host, &port), -EINVAL);
        assert_int_equal(addr_split("[n1]", 1, &host, &port), -EINVAL);
}

static void test_cidr(void **state) {
        static const struct {
                const char *cidr, *address;
                bool contains;
        } table[] = {
                { "192.0.2.0/24", "192.0.2.77", true },
                { "192.0.2.0/24", "192.0.3.1", false },
                { "192.0.2.9/24", "192.0.2.77", true },
                { "192.0.2.1", "192.0.2.1", true },
                { "192.0.2.1", "192.0.2.2", false },
                { "0.0.0.0/0", "203.0.113.1", true },
                { "0.0.0.0/0", "::1", false },
                { "2001:db8::/33", "2001:db8:7fff::1", true },
                { "2001:db8::/33", "2001:db8:8000::1", false },
                { "192.0.2.0/24", "::ffff:192.0.2.5", true },
        };
        static const char *const bad[] = { "",    "/8",    "192.0.2.0/33", "192.0.2.0/", "192.0.2.0:80/8",
                                           "x/8", "::/129" };
        struct addr_cidr c;
        struct addr a;

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                assert_int_equal(addr_parse_cidr(table[i].cidr, &c), 0);
                assert_int_equal(addr_parse(table[i].address, 0, &a), 0);
                assert_true(addr_cidr_contains(&c, &a) == table[i].contains);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(addr_parse_cidr(bad[i], &c), -EINVAL);
}

static void test_loopback(void **state) {
        static const struct {
                const char *text;
                bool is;
        } table[] = {
                { "127.0.0.1", true },
                { "127.255.0.9:80", true },
                { "::1", true },
                { "[::1]:7747", true },
                { "::ffff:127.0.0.1", true },
                { "128.0.0.1", false },
                { "::", false },
                { "::2", false },
                { "fe80::1", false },
        };
        struct addr a = {};

        assert_false(addr_is_loopback(&a));
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                assert_int_equal(addr_parse(table[i].text, 0, &a), 0);
                assert_true(addr_is_loopback(&a) == table[i].is);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_split),
                cmocka_unit_test(test_cidr),
                cmocka_unit_test(test_loopback),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
