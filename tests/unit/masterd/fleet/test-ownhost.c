/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/fleet/ownhost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "masterd/core/manager.h"
#include "masterd/fleet/fleet-parts.h"

static struct addr at(const char *text) {
        struct addr a = {};

        if (*text)
                assert_int_equal(addr_parse(text, 0, &a), 0);
        return a;
}

/* What no machine has: addresses for documentation. */
static void test_address(void **state) {
        static const struct {
                const char *reported, *reached, *before, *is;
        } table[] = {
                { "198.51.100.1", "", "",
                  "198.51.100.1" }, /* it dials another host, or was told an address */
                { "198.51.100.1", "203.0.113.1", "203.0.113.2", "198.51.100.1" },
                { "127.0.0.1", "", "", "127.0.0.1" },
                { "127.0.0.1", "", "127.0.0.1", "127.0.0.1" },
                { "::1", "", "", "::1" },
                { "127.0.0.1", "203.0.113.1", "", "127.0.0.1" }, /* which this host does not have any more */
                { "127.0.0.1", "", "203.0.113.1", "127.0.0.1" },
                { "127.0.0.1", "203.0.113.1", "203.0.113.2", "127.0.0.1" },
        };
        struct fleet fleet = {};
        struct manager m = { .fleet = &fleet };
        struct node node = {};
        char text[ADDR_TEXT_MAX];

        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
                struct addr reported = at(table[i].reported), is;
                fleet.reached = at(table[i].reached);
                node.address = at(table[i].before);
                is = ownhost_address(&m, &node, &reported);
                assert_string_equal(addr_format(&is, text), table[i].is);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_address) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
