/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and their users take turns; what was used is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kit/policy-kit.h"

/* Users of a pool, and pools by weight, take turns: whoever holds or has used the least is next. */
static void test_fair_share(void **state) {
        struct policy_pool pool = { .name = "big", .weight = 3 };
        struct owner o;
        uint32_t big, users[2] = {}, pools[2] = {};

        policy_kit_begin(&o, 4, 4, NULL);
        pool.limit = pool.user_limit = (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &big), 0);
        assert_int_equal(policy_pool_find(o.policy, "big", &big), 0);
        for (uint64_t id = 1; id <= 12; id++)
                policy_kit_submit(&o, id, big, id <= 8 ? 1 : 2, 0, 1, 1);
        for (uint64_t id = 13; id <= 24; id++)
                policy_kit_submit(&o, id, 0, 1, 0, 1, 1);
        assert_int_equal(policy_kit_run(&o), 16);
        for (size_t i = 0; i < o.n_order; i++) {
                pools[o.order[i] <= 12]++;
                if (o.order[i] <= 12)
                        users[o.order[i] > 8]++;
        }
        assert_int_equal(pools[1], 12); /* three quarters */
        assert_int_equal(users[0], 8);
        assert_int_equal(users[1], 4); /* it had no more */
        policy_kit_end(&o);
}

static void see_share(void *arg, const struct policy_share *s) {
        struct policy_share *ret = arg;

        if (s->pool == ret->pool && s->user == ret->user)
                *ret = *s;
}

static void test_usage_decays(void **state) {
        struct policy_conf conf;
        struct policy_share s = { .pool = 0, .user = 7 };
        struct owner o;

        policy_conf_defaults(&conf);
        conf.half_life_usec = 100 * SECOND;
        policy_kit_begin(&o, 1, 4, &conf);
        policy_kit_submit(&o, 1, 0, 7, 0, 2, 1);
        assert_int_equal(policy_kit_run(&o), 1);
        o.now += 10 * SECOND;
        policy_shares(o.policy, o.now, see_share, &s);
        assert_true(s.usage > 4.8 &&
                    s.usage < 5.0); /* half of the cluster, ten seconds, a little is forgotten */
        assert_int_equal(s.running, 1);
        assert_int_equal(s.held.cpu_milli, 2000);
        policy_kit_finish(&o, 1);
        assert_int_equal(policy_share_restore(o.policy, 0, 7, 40, o.now), 0);
        assert_int_equal(policy_share_restore(o.policy, 0, UINT32_MAX, 40, o.now), 0);
        policy_shares(o.policy, o.now + 100 * SECOND, see_share, &s);
        assert_true(s.usage > 19.999 && s.usage < 20.001);
        assert_int_equal(s.running, 0);
        policy_kit_end(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fair_share),
                cmocka_unit_test(test_usage_decays),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
