/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/conf/pools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/admit/submit-options.h"
#include "masterd/conf/conf.h"
#include "masterd/queue/submit-pool.h"
#include "tests/kit/json.h"

static struct job_spec *parse(const char *text) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;

        assert_int_equal(spec_parse(json_text(text), strlen(text), &s, &d), 0);
        diagnostics_done(&d);
        return s;
}

#define JOB(keys)                                                                                            \
        "{" keys "'role':[{'roleName':'w','num':4,'vcores':2,'memoryMb':1024,'command':'x'}"                 \
        "]}"

static void test_amounts(void **state) {
        struct policy_amount a;
        char text[POLICY_AMOUNT_TEXT_MAX];
        const char *why;
        int32_t priority;

        assert_int_equal(pools_parse_limit("cpus=1.5 memory=2G", &a, &why), 0);
        assert_true(a.cpu_milli == 1500 && a.memory == UINT64_C(2) << 30 && a.gpus == UINT32_MAX);
        assert_string_equal(policy_amount_text(&a, text, sizeof(text)), "1.5 CPUs, 2G");
        assert_int_equal(pools_parse_guarantee("gpus=4", &a, &why), 0);
        assert_true(a.cpu_milli == 0 && a.memory == 0 && a.gpus == 4);
        assert_int_equal(pools_parse_limit("", &a, &why), 0);
        assert_string_equal(policy_amount_text(&a, text, sizeof(text)), "none");
        for (size_t i = 0; i < 6; i++) {
                static const char *const bad[] = { "cpus",    "cpus=",    "cpus=-1",
                                                   "discs=4", "memory=x", "gpus=1.5" };
                assert_true(pools_parse_limit(bad[i], &a, &why) < 0);
        }
        assert_int_equal(pools_parse_priority("-1000", &priority, &why), 0);
        assert_int_equal(priority, -1000);
        assert_true(pools_parse_priority("1001", &priority, &why) < 0);
        assert_true(pools_parse_priority("--1", &priority, &why) < 0);
}

static void test_sections(void **state) {
        struct conf c = {};
        const char *why;
        struct pool *p;
        char *unknown = NULL;

        assert_int_equal(pools_new(&c.pools), 0);
        p = pools_find_section(&c, "gpu", &why);
        assert_non_null(p);
        assert_ptr_equal(pools_find_section(&c, "gpu", &why), p);
        assert_null(pools_find_section(&c, "a b", &why));
        assert_null(pools_find_section(&c, "", &why));
        /* What does not go together. */
        p->policy.weight = 0;
        p->policy.guarantee.gpus = 8;
        p->policy.limit.gpus = 4;
        p->max_time_usec = 60 * USEC_PER_SEC;
        p->priority = 7;
        p->max_priority = 5;
        c.pools.policy.half_life_usec = 0;
        pools_check(&c.pools);
        assert_int_equal(p->policy.weight, 1);
        assert_int_equal(p->policy.guarantee.gpus, 4);
        assert_true(p->default_time_usec == p->max_time_usec);
        assert_int_equal(p->priority, 5);
        assert_true(c.pools.policy.half_life_usec == USEC_PER_SEC);
        /* Who may. */
        assert_true(pool_admits(p, 12345));
        p->users = strdup("root, 4711 nobody-of-that-name");
        p->groups = strdup("no-such-group");
        assert_int_equal(pools_resolve(&c.pools, &unknown), 0);
        assert_non_null(strstr(unknown, "user nobody-of-that-name"));
        assert_non_null(strstr(unknown, "group no-such-group"));
        assert_true(pool_admits(p, 4711) && pool_admits(p, 0) && !pool_admits(p, 12345));
        free(unknown);
        pools_done(&c.pools);
}

/* NULL: let in. */
static void check_admitted(struct pools *pools, const char *text, uint32_t owner, const char *refusal) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job_spec *s = parse(text);
        int r = submit_pool_admit(pools, owner, s, &error);

        if (refusal) {
                assert_true(r < 0);
                assert_non_null(strstr(error.message, refusal));
        } else {
                assert_true(r >= 0);
                assert_true(s->waits.priority != SPEC_PRIORITY_NONE);
        }
        sd_bus_error_free(&error);
        spec_free(s);
}

static void test_door(void **state) {
        struct conf c = {};
        const char *why;
        struct pool *p;

        assert_int_equal(pools_new(&c.pools), 0);
        p = pools_find_section(&c, "small", &why);
        p->max_time_usec = p->default_time_usec = 600 * USEC_PER_SEC;
        p->max_priority = 5;
        p->policy.limit.cpu_milli = 8000;
        p->policy.user_limit.memory = UINT64_C(4) << 30;
        check_admitted(&c.pools, JOB(""), 1, NULL);
        check_admitted(&c.pools, JOB("'queue':'small',"), 1, NULL);
        check_admitted(&c.pools, JOB("'queue':'large',"), 1,
                       "there is no pool large; there are: default, small");
        check_admitted(&c.pools, JOB("'queue':'small','timeLimit':601,"), 1,
                       "pool small allows 10min at most");
        check_admitted(&c.pools, JOB("'queue':'small','priority':6,"), 1, "pool small allows 5 at most");
        check_admitted(&c.pools, JOB("'queue':'small','priority':6,"), 0, NULL);
        check_admitted(&c.pools, JOB("'queue':'small','signal':'USR1@1h',"), 1,
                       "the time limit of pool small");
        p->policy.limit.cpu_milli = 7999;
        check_admitted(&c.pools, JOB("'queue':'small',"), 1, "all jobs together of pool small");
        p->policy.limit.cpu_milli = UINT64_MAX;
        p->policy.user_limit.memory--;
        check_admitted(&c.pools, JOB("'queue':'small',"), 1, "a user of pool small");
        p->defined = false;
        check_admitted(&c.pools, JOB("'queue':'small',"), 1, "there is no pool small");
        pools_done(&c.pools);
}

/* Who may look: what the pool says is taken at the door, and its bound held. */
static void test_visible(void **state) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job_spec *s = parse(JOB("'queue':'lab',"));
        struct conf c = {};
        struct pool *p;
        const char *why;
        uint32_t v;

        for (uint32_t i = 0; i < _VISIBLE_MAX; i++) {
                assert_int_equal(pools_parse_visible(visible_to_string((enum visible)i), &v, &why), 0);
                assert_int_equal(v, i);
        }
        assert_true(pools_parse_visible("", &v, &why) < 0 && pools_parse_visible("Owner", &v, &why) < 0);
        assert_int_equal(pools_new(&c.pools), 0);
        p = pools_find_section(&c, "lab", &why);
        assert_int_equal(pools_parse_group("domain users", &p->group, &why), 0);
        assert_string_equal(p->group, "domain users"); /* one name */
        assert_int_equal(pools_parse_group("", &p->group, &why), 0);
        assert_null(p->group);
        assert_int_equal(pools_parse_group("lab", &p->group, &why), 0);
        assert_int_equal(pools_parse_visible_default("", &v, &why), 0);
        assert_int_equal(v, _VISIBLE_MAX);
        assert_int_equal(submit_pool_admit(&c.pools, 1000, s, &error), 0);
        assert_int_equal(s->visible, VISIBLE_GROUP);
        s->visible = VISIBLE_ALL;
        p->visible_max = VISIBLE_POOL;
        assert_true(submit_pool_admit(&c.pools, 1000, s, &error) < 0);
        assert_string_equal(error.message,
                            "visible: all, but pool lab allows pool at most (VisibleMax= of [Pool lab])");
        sd_bus_error_free(&error);
        s->visible = _VISIBLE_MAX;
        p->visible = VISIBLE_ALL; /* too much: said at the start, and here not more than the bound */
        assert_int_equal(submit_pool_visible(&c.pools, s, &error), 0);
        assert_int_equal(s->visible, VISIBLE_POOL);
        spec_free(s);
        pools_done(&c.pools);
}

static void test_overrides(void **state) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job_spec *s = parse(JOB("'priority':3,'timeLimit':60,"));
        json_t *good = json_pack("{s:i, s:s, s:b, s:s}", "priority", -4, "timeLimit", "2h", "requeue", 1,
                                 "signal", "USR2@5s"),
               *bad = json_pack("{s:i}", "priority", 4000);

        assert_int_equal(submit_options_apply(&s, NULL, &error), 0);
        assert_int_equal(s->waits.priority, 3);
        assert_int_equal(submit_options_apply(&s, good, &error), 0);
        assert_int_equal(s->waits.priority, -4);
        assert_true(s->time_limit_usec == 7200 * USEC_PER_SEC && s->waits.requeue);
        assert_true(s->waits.signal_before_usec == 5 * USEC_PER_SEC);
        assert_true(submit_options_apply(&s, bad, &error) < 0);
        assert_string_equal(error.message, "priority: must be -1000 to 1000, not 4000");
        assert_int_equal(s->waits.priority, -4); /* as it was */
        sd_bus_error_free(&error);
        json_decref(good);
        json_decref(bad);
        spec_free(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_amounts), cmocka_unit_test(test_sections),  cmocka_unit_test(test_door),
                cmocka_unit_test(test_visible), cmocka_unit_test(test_overrides),
        };

        log_set_level(LOG_CRIT);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
