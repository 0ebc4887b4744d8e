/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs next, in small worlds that can be followed by hand. */
#include "masterd/sched/policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND UINT64_C(1000000)
#define JOBS 64u

/* An owner of jobs of one shape each. */
struct owner {
        struct sched *sched;
        struct policy *policy;
        uint64_t now;
        struct sched_shape shapes[JOBS];
        struct sched_placement places[JOBS];
        struct policy_why why[JOBS];
        uint32_t waits[JOBS]; /* how often it was told */
        uint64_t order[JOBS]; /* in which jobs got their places */
        size_t n_order;
};

static int gang(void *userdata, uint64_t id, struct sched_gang *ret) {
        struct owner *o = userdata;

        *ret = (struct sched_gang){ o->shapes + id, 1 };
        return o->places[id].n > 0;
}

static void holds(void *userdata, uint64_t id, void (*each)(void *arg, const struct sched_hold *h),
                  void *arg) {
        const struct owner *o = userdata;

        for (size_t i = 0; i < o->places[id].n; i++)
                each(arg, &o->places[id].items[i].hold);
}

static struct policy_amount amount_of(const struct sched_hold *h) {
        return (struct policy_amount){ h->cpu_milli, h->memory, (uint32_t)__builtin_popcountll(h->gpus) };
}

static void placed(void *userdata, uint64_t id, const struct sched_placement *p) {
        struct owner *o = userdata;
        struct sched_placement *mine = o->places + id;

        mine->items = calloc(p->n, sizeof(*mine->items));
        assert_non_null(mine->items);
        memcpy(mine->items, p->items, p->n * sizeof(*mine->items));
        mine->n = p->n;
        o->order[o->n_order++] = id;
        for (size_t i = 0; i < p->n; i++) {
                struct policy_amount a = amount_of(&p->items[i].hold);
                policy_held(o->policy, id, &a, 1, o->now);
        }
        policy_job_runs(o->policy, id, o->now);
}

static void preempt(void *userdata, uint64_t victim, uint64_t by_id) {
}

static uint64_t cost(void *userdata, uint64_t id, uint64_t now) {
        return 0;
}

static void waits(void *userdata, uint64_t id, const struct policy_why *why) {
        struct owner *o = userdata;

        o->why[id] = *why;
        o->waits[id]++;
}

static const struct policy_ops ops = { gang, holds, placed, preempt, cost, waits };

static void begin(struct owner *o, uint32_t hosts, uint32_t cpus, const struct policy_conf *conf) {
        struct sched_capacity c = { cpus * 1000, 64 * GIB, 0, 0, 0, 1000 };
        struct policy_conf defaults;
        uint32_t slot;

        *o = (struct owner){ .now = 1000 * SECOND };
        assert_int_equal(sched_new(&o->sched), 0);
        for (uint32_t i = 0; i < hosts; i++)
                assert_int_equal(sched_node_add(o->sched, &c, &slot), 0);
        policy_conf_defaults(&defaults);
        assert_int_equal(policy_new(o->sched, conf ?: &defaults, &ops, o, &o->policy), 0);
}

static void end(struct owner *o) {
        policy_free(o->policy);
        sched_free(o->sched);
        for (size_t i = 0; i < JOBS; i++)
                free(o->places[i].items);
}

/* n executors of so many cores each. */
static void submit(struct owner *o, uint64_t id, uint32_t pool, uint32_t user, int32_t priority, uint32_t n,
                   uint32_t cores) {
        struct policy_job job = { .id = id,
                                  .pool = pool,
                                  .user = user,
                                  .priority = priority,
                                  .submitted = o->now + id,
                                  .duration_usec = UINT64_MAX };

        o->shapes[id] = (struct sched_shape){ .min = n, .max = n, .cpu_milli = cores * 1000 };
        assert_int_equal(policy_job_add(o->policy, &job), 0);
}

static int run(struct owner *o) {
        uint64_t next;

        return policy_run(o->policy, o->now, &next);
}

static void finish(struct owner *o, uint64_t id) {
        for (size_t i = 0; i < o->places[id].n; i++) {
                struct policy_amount a = amount_of(&o->places[id].items[i].hold);
                sched_release(o->sched, &o->places[id].items[i].hold);
                policy_held(o->policy, id, &a, -1, o->now);
        }
        free(o->places[id].items);
        o->places[id] = (struct sched_placement){};
        policy_job_remove(o->policy, id);
}

static bool has_places(const struct owner *o, uint64_t id) {
        return o->places[id].n > 0;
}

#define assert_order(o, ...)                                                                                 \
        do {                                                                                                 \
                static const uint64_t expected[] = { __VA_ARGS__ };                                          \
                assert_int_equal((o)->n_order, ELEMENTSOF(expected));                                        \
                assert_memory_equal((o)->order, expected, sizeof(expected));                                 \
        } while (0)

static void test_priority_then_arrival(void **state) {
        struct owner o;

        begin(&o, 1, 2, NULL);
        submit(&o, 1, 0, 7, 0, 1, 1);
        submit(&o, 2, 0, 7, 5, 1, 1);
        submit(&o, 3, 0, 7, 5, 1, 1);
        assert_int_equal(run(&o), 2);
        assert_order(&o, 2, 3);
        assert_int_equal(o.why[1].reason, POLICY_NO_FIT);
        finish(&o, 3);
        assert_int_equal(run(&o), 1);
        assert_order(&o, 2, 3, 1);
        end(&o);
}

static void test_aging(void **state) {
        struct owner o;
        uint64_t ids[3];

        begin(&o, 1, 1, NULL);
        submit(&o, 1, 0, 7, 0, 1, 2); /* never fits: they only wait */
        o.now += 3601 * SECOND;
        submit(&o, 2, 0, 7, 1, 1, 2);
        submit(&o, 3, 0, 7, 2, 1, 2);
        assert_int_equal(policy_order(o.policy, o.now, ids, 3), 3);
        assert_true(ids[0] == 3 && ids[1] == 1 && ids[2] == 2); /* one hour is one level */
        assert_int_equal(policy_order(o.policy, o.now + 7201 * SECOND, ids, 3), 3);
        assert_true(ids[0] == 3); /* all have aged by as much */
        end(&o);
}

/* Users of a pool, and pools by weight, take turns: whoever holds or has used the least is next. */
static void test_fair_share(void **state) {
        struct policy_pool pool = { .name = "big", .weight = 3 };
        struct owner o;
        uint32_t big, users[2] = {}, pools[2] = {};

        begin(&o, 4, 4, NULL);
        pool.limit = pool.user_limit = (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &big), 0);
        assert_int_equal(policy_pool_find(o.policy, "big", &big), 0);
        for (uint64_t id = 1; id <= 12; id++)
                submit(&o, id, big, id <= 8 ? 1 : 2, 0, 1, 1);
        for (uint64_t id = 13; id <= 24; id++)
                submit(&o, id, 0, 1, 0, 1, 1);
        assert_int_equal(run(&o), 16);
        for (size_t i = 0; i < o.n_order; i++) {
                pools[o.order[i] <= 12]++;
                if (o.order[i] <= 12)
                        users[o.order[i] > 8]++;
        }
        assert_int_equal(pools[1], 12); /* three quarters */
        assert_int_equal(users[0], 8);
        assert_int_equal(users[1], 4); /* it had no more */
        end(&o);
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
        begin(&o, 1, 4, &conf);
        submit(&o, 1, 0, 7, 0, 2, 1);
        assert_int_equal(run(&o), 1);
        o.now += 10 * SECOND;
        policy_shares(o.policy, o.now, see_share, &s);
        assert_true(s.usage > 4.8 &&
                    s.usage < 5.0); /* half of the cluster, ten seconds, a little is forgotten */
        assert_int_equal(s.running, 1);
        assert_int_equal(s.held.cpu_milli, 2000);
        finish(&o, 1);
        assert_int_equal(policy_share_restore(o.policy, 0, 7, 40, o.now), 0);
        assert_int_equal(policy_share_restore(o.policy, 0, UINT32_MAX, 40, o.now), 0);
        policy_shares(o.policy, o.now + 100 * SECOND, see_share, &s);
        assert_true(s.usage > 19.999 && s.usage < 20.001);
        assert_int_equal(s.running, 0);
        end(&o);
}

static void test_limits(void **state) {
        struct policy_pool pool = { .name = "small", .weight = 1 };
        struct owner o;
        uint32_t small;

        begin(&o, 1, 16, NULL);
        pool.limit = (struct policy_amount){ 8000, UINT64_MAX, UINT32_MAX };
        pool.user_limit = (struct policy_amount){ 4000, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &small), 0);
        submit(&o, 1, small, 1, 0, 3, 1);
        submit(&o, 2, small, 1, 0, 2, 1);
        submit(&o, 3, small, 2, 0, 4, 1);
        submit(&o, 4, small, 3, 0, 2, 1);
        submit(&o, 5, small, 3, 0, 5, 1);
        submit(&o, 6, 0, 3, 0, 5, 1);
        (void)run(&o);
        assert_true(has_places(&o, 1) && has_places(&o, 3) && has_places(&o, 6));
        assert_int_equal(o.why[2].reason, POLICY_USER_LIMIT);
        assert_int_equal(o.why[4].reason, POLICY_POOL_LIMIT);
        assert_int_equal(o.why[5].reason, POLICY_NEVER);
        finish(&o, 3);
        assert_int_equal(run(&o), 1);
        assert_true(has_places(&o, 4));
        end(&o);
}

static void test_elastic_stays_within_limits(void **state) {
        struct policy_pool pool = { .name = "small", .weight = 1 };
        struct owner o;
        uint32_t small;

        begin(&o, 4, 16, NULL);
        pool.limit = (struct policy_amount){ 7500, UINT64_MAX, UINT32_MAX };
        pool.user_limit = (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &small), 0);
        submit(&o, 1, small, 1, 0, 2, 1);
        o.shapes[1].max = 20;
        assert_int_equal(run(&o), 1);
        assert_int_equal(o.places[1].n, 7);
        end(&o);
}

/* What is guaranteed to others is lent only to those who can give it back. */
static void test_guarantee(void **state) {
        struct policy_pool pool = { .name = "owner", .weight = 1, .guarantee = { 12000, 0, 0 } };
        struct policy_job job = { .id = 3, .user = 1, .duration_usec = UINT64_MAX, .preemptible = true };
        struct owner o;
        uint32_t index;

        begin(&o, 1, 16, NULL);
        pool.limit = pool.user_limit = (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX };
        assert_int_equal(policy_pool_set(o.policy, &pool, &index), 0);
        submit(&o, 1, 0, 1, 0, 4, 1);
        submit(&o, 2, 0, 1, 0, 1, 1);
        o.shapes[3] = (struct sched_shape){ .min = 1, .max = 1, .cpu_milli = 1000 };
        assert_int_equal(policy_job_add(o.policy, &job), 0);
        submit(&o, 4, index, 1, 0, 11, 1);
        (void)run(&o);
        assert_true(has_places(&o, 1) && has_places(&o, 3) && has_places(&o, 4));
        assert_int_equal(o.why[2].reason, POLICY_GUARANTEED);
        end(&o);
}

static void test_told_once(void **state) {
        struct owner o;

        begin(&o, 1, 2, NULL);
        submit(&o, 1, 0, 7, 0, 2, 1);
        submit(&o, 2, 0, 7, 0, 1, 1);
        submit(&o, 3, 0, 7, 0, 3, 1);
        (void)run(&o);
        (void)run(&o);
        assert_int_equal(o.waits[2], 1);
        assert_int_equal(o.why[3].reason, POLICY_NEVER);
        assert_true(o.why[3].no_fit.never);
        end(&o);
}

static void test_bad_calls(void **state) {
        struct policy_pool pool = { .name = "x", .weight = 1 };
        struct policy_job job = { .id = 1, .pool = 9 };
        struct policy_why why;
        struct owner o;

        begin(&o, 1, 2, NULL);
        assert_int_equal(policy_job_add(o.policy, &job), -EINVAL);
        job.pool = 0;
        job.priority = POLICY_PRIORITY_MAX + 1;
        assert_int_equal(policy_job_add(o.policy, &job), -EINVAL);
        assert_int_equal(policy_job_update(o.policy, &job), -ENOENT);
        assert_int_equal(policy_why(o.policy, 1, &why), -ENOENT);
        assert_int_equal(policy_job_wants(o.policy, 1), -ENOENT);
        submit(&o, 2, 0, 1, 0, 1, 1);
        job = (struct policy_job){ .id = 2 };
        assert_int_equal(policy_job_add(o.policy, &job), -EEXIST);
        assert_int_equal(policy_why(o.policy, 2, &why), 0);
        assert_int_equal(why.reason, POLICY_NOT_TRIED);
        assert_int_equal(policy_last_why(o.policy, 2, &why), 0);
        assert_int_equal(policy_last_why(o.policy, 1, &why), -ENOENT);
        pool.weight = 0;
        assert_int_equal(policy_pool_set(o.policy, &pool, NULL), -EINVAL);
        pool.weight = 1;
        for (uint32_t i = 1; i < POLICY_POOLS_MAX; i++) {
                snprintf(pool.name, sizeof(pool.name), "p%u", i);
                assert_int_equal(policy_pool_set(o.policy, &pool, NULL), 0);
        }
        snprintf(pool.name, sizeof(pool.name), "one-more");
        assert_int_equal(policy_pool_set(o.policy, &pool, NULL), -E2BIG);
        end(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_priority_then_arrival),
                cmocka_unit_test(test_aging),
                cmocka_unit_test(test_fair_share),
                cmocka_unit_test(test_usage_decays),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_elastic_stays_within_limits),
                cmocka_unit_test(test_guarantee),
                cmocka_unit_test(test_told_once),
                cmocka_unit_test(test_bad_calls),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
