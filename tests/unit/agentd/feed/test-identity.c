/* SPDX-License-Identifier: Apache-2.0 */
/* Which unit a process is in, by every kind of /proc/PID/cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "agentd/feed/identity.h"
#include "lib/base/cleanup.h"

#define U "primus-418-worker-3.1.service"

static const struct {
        const char *text, *init;
        const char *unit; /* NULL: none */
} table[] = {
        /* cgroup v2 */
        { "0::/primus.slice/primus-418.slice/" U "\n", "0::/init.scope\n", U },
        { "0::/primus.slice/primus-418.slice/" U "/child/of/it\n", "0::/init.scope\n", U },
        { "0::/primus.slice/primus-418.slice/" U "\n", "0::/\n", U },
        /* hybrid: v1's name=systemd goes before 0:: */
        { "9:name=systemd:/primus.slice/primus-418.slice/" U
          "\n4:memory:/\n0::/primus.slice/primus-418.slice/" U "\n",
          "9:name=systemd:/init.scope\n4:memory:/\n0::/init.scope\n", U },
        { "1:name=systemd:/user.slice\n0::/primus.slice/primus-418.slice/" U "\n",
          "1:name=systemd:/init.scope\n0::/init.scope\n", NULL },
        /* a systemd that is itself in a group, without a namespace of groups */
        { "0::/machine/n1/payload/primus.slice/primus-418.slice/" U "\n",
          "0::/machine/n1/payload/init.scope\n", U },
        { "0::/machine/n2/payload/primus.slice/primus-418.slice/" U "\n",
          "0::/machine/n1/payload/init.scope\n", NULL },
        /* groups that a user made below its own */
        { "0::/user.slice/user-1000.slice/user@1000.service/primus.slice/primus-418.slice/" U "\n",
          "0::/init.scope\n", NULL },
        { "0::/primus.slice/primus-418.slice/x.scope/primus.slice/" U "\n", "0::/init.scope\n", NULL },
        { "0::/system.slice/sshd.service\n", "0::/init.scope\n", NULL },
        { "0::/primus.slice\n", "0::/init.scope\n", NULL },
        { "0::/primus.slice/\n", "0::/init.scope\n", NULL },
        { "0::/primus.slice/primus-418.slice\n", "0::/init.scope\n", NULL },
        { "0::/primus.slice/.service\n", "0::/init.scope\n", NULL },
        { "0::/\n", "0::/init.scope\n", NULL },
        { "", "0::/init.scope\n", NULL },
        { "junk", "", NULL },
        { ":", ":", NULL },
};

static void test_table(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                char unit[IDENTITY_UNIT_MAX] = "untouched";
                int r = identity_parse_cgroup(table[i].text, table[i].init, unit);

                if (table[i].unit) {
                        assert_int_equal(r, 0);
                        assert_string_equal(unit, table[i].unit);
                } else {
                        assert_int_equal(r, -ENOENT);
                        assert_string_equal(unit, "untouched");
                }
        }
}

static void test_long(void **state) {
        char text[600] = "0::/primus.slice/", unit[IDENTITY_UNIT_MAX];

        memset(text + strlen(text), 'x', 400);
        strcat(text, ".service");
        assert_int_equal(identity_parse_cgroup(text, "0::/init.scope\n", unit), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_long) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
