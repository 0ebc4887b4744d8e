/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of link modes. What a driver says is that of the host. */
#include "agentd/net/ethtool.h"

#include <linux/ethtool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void set(uint32_t *words, unsigned bit) {
        words[bit / 32] |= UINT32_C(1) << bit % 32;
}

static void test_fastest(void **state) {
        uint32_t words[3] = {};

        assert_int_equal(ethtool_fastest(words, 3), 0);
        set(words, ETHTOOL_LINK_MODE_Autoneg_BIT); /* no speed at all */
        assert_int_equal(ethtool_fastest(words, 3), 0);
        set(words, ETHTOOL_LINK_MODE_1000baseT_Full_BIT);
        assert_int_equal(ethtool_fastest(words, 3), 1000);
        set(words, ETHTOOL_LINK_MODE_10baseT_Half_BIT);
        assert_int_equal(ethtool_fastest(words, 3), 1000);
        set(words, ETHTOOL_LINK_MODE_10000baseT_Full_BIT);
        assert_int_equal(ethtool_fastest(words, 3), 10000);
        set(words, 69); /* 400 Gbit/s, in the third word */
        assert_int_equal(ethtool_fastest(words, 3), 400000);
        assert_int_equal(ethtool_fastest(words, 2), 10000); /* of a shorter bitmap that is not read */
        assert_int_equal(ethtool_fastest(words, 0), 0);
}

/* The loopback interface has none, and an interface that is not there neither. */
static void test_unknown(void **state) {
        _cleanup_(ethtool_free_p) struct ethtool *e = NULL;
        uint64_t mbps = 7, max = 7;

        assert_int_equal(ethtool_new(&e), 0);
        ethtool_speed(e, 1, "lo", &mbps, &max);
        assert_true(mbps == 0 && max == 0);
        mbps = max = 7;
        ethtool_speed(e, 1 << 20, "primus-none", &mbps, &max);
        assert_true(mbps == 0 && max == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fastest),
                cmocka_unit_test(test_unknown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
