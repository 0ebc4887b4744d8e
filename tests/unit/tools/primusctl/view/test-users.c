/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/view/users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const char *lookup(uint32_t uid) {
        return uid == 1000 ? "ml" : uid == 0 ? "root" : uid == 7 ? "" : NULL;
}

static void test_named(void **state) {
        static const struct {
                const char *in, *out;
        } table[] = {
                { "killed by uid 1000", "killed by ml" },
                { "submitted by uid 1000: 2 executors", "submitted by ml: 2 executors" },
                { "it is stopped (uid 0)", "it is stopped (root)" },
                { "killed by uid 1000: as uid 0 said",
                  "killed by ml: as uid 0 said" }, /* a person's words stay */
                { "uid 1000", "ml" },
                { "by uid 1234", "by uid 1234" }, /* nobody's */
                { "by uid 7", "by uid 7" },
                { "by uid 99999999999999999999", "by uid 99999999999999999999" },
                { "by uid 4294967295", "by uid 4294967295" },
                { "by uid ", "by uid " },
                { "no user with uid 1000 on host n2", "no user with uid 1000 on host n2" },
                { "fluid 1000, by uid 0", "fluid 1000, by root" },
                { "", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *text = users_named(table[i].in, lookup);
                assert_string_equal(text, table[i].out);
        }
        assert_null(users_named(NULL, lookup));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_named) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
