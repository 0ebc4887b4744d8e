/* SPDX-License-Identifier: Apache-2.0 */
/* RelayFrom=: which rule holds, and what is none. */
#include "masterd/conf/relay-conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void read_from(struct relay_conf *c, const char *value) {
        const char *why = NULL;

        assert_int_equal(relay_parse_from(value, c, &why), 0);
        assert_int_equal(relay_conf_resolve(c), 0);
}

static void test_default(void **state) {
        _cleanup_(relay_conf_done) struct relay_conf c;

        assert_int_equal(relay_conf_init(&c), 0);
        assert_int_equal(relay_conf_resolve(&c), 0);
        assert_true(relay_conf_may(&c, "n1", 1000));
        assert_false(relay_conf_may(&c, "n1", 0));
        read_from(&c, "");
        assert_false(relay_conf_host(&c, "n1"));
        assert_false(relay_conf_may(&c, "n1", 1000));
}

static void test_rules(void **state) {
        _cleanup_(relay_conf_done) struct relay_conf c = {};

        read_from(&c, "login* gpu[0-3]:1000,1001  gpu*:no-such-user-here rack1.n?:0,5");
        assert_true(relay_conf_may(&c, "login", 7));
        assert_true(relay_conf_may(&c, "login-2", 1000));
        assert_true(relay_conf_may(&c, "gpu3", 1001));
        assert_false(relay_conf_may(&c, "gpu3", 1002));
        /* The first one alone; and whom nobody knows is not everybody. */
        assert_true(relay_conf_host(&c, "gpu7"));
        assert_false(relay_conf_may(&c, "gpu7", 1000));
        assert_false(relay_conf_may(&c, "rack1.n2", 0));
        assert_true(relay_conf_may(&c, "rack1.n2", 5));
        assert_false(relay_conf_host(&c, "n1"));
        assert_false(relay_conf_host(&c, "xlogin"));
}

static void test_mistakes(void **state) {
        static const char *const wrong[] = { ":1000", "n1:", "n1:,", "n1 n2:", "n(1)", "n1:a b/c", "$x" };
        _cleanup_(relay_conf_done) struct relay_conf c = {};

        read_from(&c, "n1:1000");
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                const char *why = NULL;

                assert_true(relay_parse_from(wrong[i], &c, &why) < 0);
                assert_non_null(why);
        }
        assert_true(relay_conf_may(&c, "n1", 1000));
        assert_false(relay_conf_host(&c, "n2"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_default),
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_mistakes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
