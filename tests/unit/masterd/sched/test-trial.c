/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial says is what happens when the job really comes; and nothing else has changed by asking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/policy-kit.h"
#include "tests/kit/random.h"

static struct policy_job describe(struct owner *o, uint64_t id, uint32_t user, int32_t priority, uint32_t n,
                                  uint32_t cores, uint64_t duration) {
        o->shapes[id] = (struct sched_shape){ .min = n, .max = n, .cpu_milli = cores * 1000 };
        return (struct policy_job){
                .id = id, .user = user, .priority = priority, .submitted = o->now, .duration_usec = duration
        };
}

static struct policy_trial try_job(struct owner *o, const struct policy_job *job) {
        const struct sched_gang g = { o->shapes + job->id, 1 };
        struct policy_trial trial;

        assert_int_equal(policy_try(o->policy, job, &g, o->now, &trial), 0);
        return trial;
}

static void count_share(void *arg, const struct policy_share *s) {
        (*(unsigned *)arg)++;
}

static void test_it_would_start(void **state) {
        unsigned shares = 0, after = 0;
        struct policy_trial trial;
        struct policy_job job;
        struct owner o;

        policy_kit_begin(&o, 2, 4, NULL);
        policy_shares(o.policy, o.now, count_share, &shares);
        job = describe(&o, 1, 7, 0, 3, 2, UINT64_MAX);
        trial = try_job(&o, &job);
        assert_int_equal(trial.placed, 3);
        policy_shares(o.policy, o.now, count_share, &after);
        assert_int_equal(after, shares); /* its user is as unknown as before */
        assert_int_equal(policy_run(o.policy, o.now, &(uint64_t){ 0 }), 0);
        assert_int_equal(o.n_order, 0);
        policy_kit_submit(&o, 2, 0, 7, 0, 4, 2); /* all that there is is still there */
        assert_int_equal(policy_kit_run(&o), 1);
        policy_kit_end(&o);
}

static void test_it_would_wait(void **state) {
        struct policy_trial trial;
        struct policy_job job;
        struct owner o;

        policy_kit_begin(&o, 1, 4, NULL);
        job = describe(&o, 1, 7, 0, 1, 3, 100 * SECOND);
        assert_int_equal(policy_job_add(o.policy, &job), 0);
        assert_int_equal(policy_kit_run(&o), 1);
        job = describe(&o, 2, 7, 0, 1, 2, SECOND);
        trial = try_job(&o, &job);
        assert_int_equal(trial.placed, 0);
        assert_int_equal(trial.why.reason, POLICY_NO_FIT);
        assert_int_equal(trial.why.starts_by, o.now + 100 * SECOND);
        assert_int_equal(trial.why.position, 0);
        job = describe(&o, 2, 7, 0, 2, 4, SECOND);
        assert_int_equal(try_job(&o, &job).why.reason, POLICY_NEVER);
        assert_int_equal(
                policy_try(o.policy, &(struct policy_job){ .id = 1 }, &(struct sched_gang){}, o.now, &trial),
                -EEXIST);
        policy_kit_end(&o);
}

/* Others would be stopped for it, and are not. */
static void test_victims(void **state) {
        struct policy_trial trial;
        struct policy_conf conf;
        struct policy_job job;
        struct owner o;

        policy_conf_defaults(&conf);
        policy_kit_begin(&o, 1, 4, &conf);
        assert_int_equal(
                policy_pool_set(o.policy,
                                &(struct policy_pool){ .name = "default",
                                                       .weight = 1,
                                                       .preempts = true,
                                                       .limit = { UINT64_MAX, UINT64_MAX, UINT32_MAX },
                                                       .user_limit = { UINT64_MAX, UINT64_MAX, UINT32_MAX } },
                                NULL),
                0);
        job = describe(&o, 1, 7, 0, 4, 1, UINT64_MAX);
        job.preemptible = true;
        assert_int_equal(policy_job_add(o.policy, &job), 0);
        assert_int_equal(policy_kit_run(&o), 1);
        o.now += 1000 * SECOND; /* whoever has just started is not stopped */
        job = describe(&o, 2, 8, 10, 1, 2, UINT64_MAX);
        trial = try_job(&o, &job);
        assert_int_equal(trial.why.reason, POLICY_PREEMPTING);
        assert_int_equal(trial.why.victims, 1);
        assert_int_equal(policy_kit_run(&o), 0);
        job = describe(&o, 3, 8, 0, 1, 2, UINT64_MAX);
        assert_int_equal(try_job(&o, &job).why.reason, POLICY_NO_FIT);
        policy_kit_end(&o);
}

static void step(struct owner *o, uint64_t next_id) {
        o->now += random_below(40) * SECOND;
        for (uint64_t id = 1; id < next_id; id++)
                if (policy_kit_has_places(o, id) && random_below(4) == 0)
                        policy_kit_finish(o, id);
}

/* Random worlds: asked, asked again, and then it comes. */
static void test_as_it_comes(void **state) {
        unsigned started = 0, reserved = 0, others = 0, otherwise = 0;

        for (uint64_t world = 1; world <= 150; world++) {
                uint64_t id = 1;
                struct owner o;

                seed = world;
                policy_kit_begin(&o, 3, 4, NULL);
                while (id < JOBS - 1) {
                        struct policy_trial trial, again;
                        struct policy_job job;
                        struct policy_why why;
                        size_t before;

                        step(&o, id);
                        while (policy_kit_run(&o) > 0) /* nothing is left to be done */
                                ;
                        job = describe(&o, id, random_below(3), (int32_t)random_below(3), 1 + random_below(6),
                                       1 + random_below(4),
                                       random_below(5) == 0 ? UINT64_MAX : (1 + random_below(90)) * SECOND);
                        trial = try_job(&o, &job);
                        again = try_job(&o, &job);
                        assert_int_equal(again.placed, trial.placed);
                        assert_int_equal(again.why.starts_by, trial.why.starts_by);
                        before = o.n_order;
                        assert_int_equal(policy_job_add(o.policy, &job), 0);
                        (void)policy_kit_run(&o);
                        if (o.n_order - before > policy_kit_has_places(&o, id)) {
                                /* Its coming has put others into another order, of whom one has started. */
                                others++;
                                id++;
                                continue;
                        }
                        if (policy_kit_has_places(&o, id) != (trial.placed > 0))
                                fail_msg("world %llu, job %llu: a trial said %u", (unsigned long long)world,
                                         (unsigned long long)id, trial.placed);
                        started += trial.placed > 0;
                        if (trial.placed == 0) {
                                assert_int_equal(policy_why(o.policy, id, &why), 0);
                                assert_int_equal(trial.why.reason, why.reason);
                                assert_int_equal(trial.why.position, why.position);
                                assert_int_equal(trial.why.ahead, why.ahead);
                                /* A pass may find other times for those before it, too. */
                                otherwise += trial.why.starts_by != why.starts_by;
                                reserved += why.starts_by != UINT64_MAX;
                        } else
                                assert_int_equal(o.places[id].n, trial.placed);
                        id++;
                }
                policy_kit_end(&o);
        }
        if (started < 1000 || reserved < 1000 || others > 200 || otherwise > 5)
                fail_msg("%u started, %u had a time, %u of them another one; %u were not compared", started,
                         reserved, otherwise, others);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_would_start),
                cmocka_unit_test(test_it_would_wait),
                cmocka_unit_test(test_victims),
                cmocka_unit_test(test_as_it_comes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
