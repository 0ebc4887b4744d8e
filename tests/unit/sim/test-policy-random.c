/* SPDX-License-Identifier: Apache-2.0 */
/* What has to hold of the policy, whatever comes: random clusters, jobs, time limits and failures. A failure
 * names its seed; PRIMUS_TEST_SEED runs that one alone, PRIMUS_TEST_SEEDS=N so many times as many. */
#include "sim/world.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/random.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND UINT64_C(1000000)
#define HOSTS_MAX 6u

/* What a random world may have in it. */
struct kind {
        uint32_t jobs, users, pools;
        bool priorities, preemption, quotas, failures;
        bool at_once;       /* all jobs come at the beginning */
        bool exact;         /* every job runs exactly as long as it may */
        uint32_t unlimited; /* percent of jobs without a limit */
};

static const struct policy_amount no_limit = { UINT64_MAX, UINT64_MAX, UINT32_MAX };

static struct policy_conf conf_for(const struct kind *k, uint64_t s) {
        struct policy_conf conf;

        policy_conf_defaults(&conf);
        conf.half_life_usec = 1000 * SECOND;
        conf.aging_usec = k->users > 1 ? 300 * SECOND : 0;
        conf.reservations = 1000;
        conf.looks = 100000;
        conf.replan_usec = s % 2 * 10 * SECOND;
        conf.min_run_usec = 5 * SECOND;
        conf.patience_usec = 50 * SECOND;
        return conf;
}

static void make_hosts(struct world *w) {
        uint32_t n = 2 + random_below(HOSTS_MAX - 1), gpus = random_below(3) * 4;

        for (uint32_t i = 0; i < n; i++) {
                struct sched_capacity c = { .cpu_milli = 1000 * (4 + 4 * random_below(3)),
                                            .memory = (16 + 16 * random_below(3)) * GIB,
                                            .gpus = random_below(4) ? gpus : 0,
                                            .executors = 100 };
                assert_int_equal(world_add_host(w, &c, NULL), 0);
        }
}

static void make_pools(struct world *w, const struct kind *k) {
        for (uint32_t i = 0; i < k->pools; i++) {
                struct policy_pool pool = { .weight = 1 + random_below(3),
                                            .limit = no_limit,
                                            .user_limit = no_limit };
                snprintf(pool.name, sizeof(pool.name), i == 0 ? "default" : "pool%u", i);
                pool.preempts = k->preemption && random_below(2);
                if (k->quotas && random_below(2))
                        pool.limit.cpu_milli = 1000 * (8 + random_below(32));
                if (k->quotas && random_below(2))
                        pool.user_limit.cpu_milli = 1000 * (4 + random_below(16));
                if (k->quotas && random_below(3) == 0)
                        pool.guarantee.cpu_milli = 1000 * (1 + random_below(12));
                assert_int_equal(policy_pool_set(w->policy, &pool, NULL), 0);
        }
}

static struct sched_shape random_shape(bool gpus) {
        uint32_t size = random_below(10), n = size < 5   ? 1
                                              : size < 8 ? 1 + random_below(4)
                                                         : 1 + random_below(16);
        struct sched_shape h = {
                .min = n, .max = n, .cpu_milli = 500 * (1 + random_below(8)), .memory = random_below(8) * GIB
        };

        if (gpus && random_below(3) == 0)
                h.gpus = 1 + random_below(4);
        if (random_below(10) == 0)
                h.max_per_node = 1 + random_below(2);
        return h;
}

static struct world_job random_job(const struct kind *k) {
        struct world_job j = { .pool = random_below(k->pools), .user = random_below(k->users) };

        j.submitted = k->at_once ? 0 : random_below(200) * SECOND;
        j.runtime = (1 + random_below(random_below(4) ? 20 : 120)) * SECOND;
        j.limit = k->exact ? j.runtime : j.runtime + random_below(100) * SECOND;
        if (random_below(100) < k->unlimited)
                j.limit = UINT64_MAX;
        j.priority = k->priorities ? (int32_t)random_below(4) * 10 : 0;
        j.preemptible = k->preemption && random_below(2);
        j.savepoint = random_below(3) * 4 * SECOND;
        j.n_shapes = 1 + (random_below(4) == 0);
        for (uint32_t i = 0; i < j.n_shapes; i++)
                j.shapes[i] = random_shape(true);
        if (!k->exact && random_below(8) == 0)
                j.shapes[0].max += 1 + random_below(4);
        return j;
}

/* The same world for the same seed; of its jobs only those that keep says are there. */
static void make_world(struct world *w, const struct kind *k, uint64_t s,
                       bool (*keep)(const struct world_job *a, size_t i, const struct world_job *b, size_t k),
                       const struct world_job *of, size_t of_index) {
        struct policy_conf conf = conf_for(k, s);
        struct world_job all[128];
        uint64_t submitted = 0;

        seed = s;
        assert_int_equal(world_init(w, &conf, 3 * SECOND), 0);
        make_hosts(w);
        make_pools(w, k);
        assert_true(k->jobs <= ELEMENTSOF(all));
        for (size_t i = 0; i < k->jobs; i++)
                all[i] = random_job(k);
        for (size_t i = 0; i < k->jobs && !k->at_once; i++) { /* in the order of their numbers */
                submitted += random_below(8) * SECOND;
                all[i].submitted = submitted;
        }
        for (size_t i = 0; i < k->jobs; i++)
                if (keep &&
                    !keep(all + i, i, of, of_index)) { /* it keeps its number, and comes when all is over */
                        all[i].submitted = UINT64_MAX;
                        assert_int_equal(world_add_job(w, all + i, NULL), 0);
                } else
                        assert_int_equal(world_add_job(w, all + i, NULL), 0);
        for (uint32_t i = 0; k->failures && i < w->n_hosts; i++)
                if (random_below(2)) {
                        uint64_t from = random_below(300) * SECOND;
                        assert_int_equal(world_fail_host(w, i, from, from + (1 + random_below(60)) * SECOND),
                                         0);
                }
}

/* ---- at any time ---- */

/* Nothing is held twice, beyond what a host has, or in part. */
static void check_holds(void *userdata) {
        const struct world *w = userdata;
        struct sched_usage sum[HOSTS_MAX + 1] = {}, u;
        struct policy_amount pools[POLICY_POOLS_MAX] = {};

        for (size_t i = 0; i < w->n_jobs; i++) {
                const struct world_job *j = w->jobs + i;
                uint32_t counts[WORLD_SHAPES_MAX] = {};
                bool holds = j->state == WORLD_RUNNING || j->state == WORLD_LEAVING;
                assert_int_equal(holds, j->places.n > 0);
                for (size_t k = 0; k < j->places.n; k++) {
                        const struct sched_item *it = j->places.items + k;
                        struct sched_usage *s = sum + it->hold.slot;
                        assert_true((s->gpus & it->hold.gpus) == 0);
                        assert_false(w->host_down[it->hold.slot]);
                        s->gpus |= it->hold.gpus;
                        s->cpu_milli += it->hold.cpu_milli;
                        s->memory += it->hold.memory;
                        s->executors++;
                        pools[j->pool].cpu_milli += it->hold.cpu_milli;
                        counts[it->shape]++;
                        assert_int_equal(__builtin_popcountll(it->hold.gpus), j->shapes[it->shape].gpus);
                }
                for (uint32_t k = 0; holds && k < j->n_shapes; k++)
                        assert_in_range(counts[k], j->shapes[k].min, j->shapes[k].max);
        }
        for (uint32_t i = 0; i < w->n_hosts; i++) {
                assert_int_equal(sched_node_usage(w->sched, i, &u), 0);
                assert_true(sum[i].cpu_milli == u.cpu_milli && u.cpu_milli <= u.capacity.cpu_milli);
                assert_true(sum[i].memory == u.memory && u.memory <= u.capacity.memory);
                assert_true(sum[i].gpus == u.gpus && u.gpus < (UINT64_C(1) << u.capacity.gpus));
                assert_int_equal(sum[i].executors, u.executors);
        }
}

static uint64_t digest(const struct world *w) {
        uint64_t d = w->now;

        for (size_t i = 0; i < w->n_jobs; i++) {
                d = (d ^ w->jobs[i].first_started) * UINT64_C(0x100000001b3);
                d = (d ^ w->jobs[i].ended) * UINT64_C(0x100000001b3);
                d = (d ^ w->jobs[i].preempted) * UINT64_C(0x100000001b3);
        }
        return d;
}

/* What still waits or runs, for whoever looks for the error. */
static void print_open(const struct world *w) {
        for (size_t i = 0; i < w->n_jobs; i++) {
                const struct world_job *j = w->jobs + i;
                if (j->state == WORLD_DONE)
                        continue;
                fprintf(stderr,
                        "job %zu: state %d, pool %u, priority %d%s, reason %d, lacks %x (%u of %u of shape "
                        "%u), ahead %" PRIu64 ", runs %u, preempted %u:",
                        i, j->state, j->pool, j->priority, j->preemptible ? ", preemptible" : "",
                        j->why.reason, j->why.no_fit.lacking, j->why.no_fit.fits, j->why.no_fit.wanted,
                        j->why.no_fit.shape, j->why.ahead, j->runs, j->preempted);
                for (uint32_t k = 0; k < j->n_shapes; k++)
                        fprintf(stderr, " %u..%u x %u mC %u GPU %" PRIu64 " GiB, %u a node;",
                                j->shapes[k].min, j->shapes[k].max, j->shapes[k].cpu_milli, j->shapes[k].gpus,
                                j->shapes[k].memory / GIB, j->shapes[k].max_per_node);
                fprintf(stderr, "\n");
        }
        for (uint32_t i = 0; i < w->n_hosts; i++) {
                struct sched_usage u;
                assert_int_equal(sched_node_usage(w->sched, i, &u), 0);
                fprintf(stderr,
                        "host %u: %" PRIu64 " of %u mC, %" PRIx64 " of %u GPUs, %" PRIu64 " of %" PRIu64
                        " GiB%s\n",
                        i, u.cpu_milli, u.capacity.cpu_milli, u.gpus, u.capacity.gpus, u.memory / GIB,
                        u.capacity.memory / GIB, u.usable ? "" : ", down");
        }
}

static void each_seed(uint64_t n, void (*test)(uint64_t s)) {
        const char *one = getenv("PRIMUS_TEST_SEED"), *times = getenv("PRIMUS_TEST_SEEDS");

        n *= times ? strtoull(times, NULL, 10) : 1;
        for (uint64_t s = one ? strtoull(one, NULL, 10) : 1; s <= (one ? strtoull(one, NULL, 10) : n); s++)
                test(s * 1000003);
}

#define check(condition, s, ...)                                                                             \
        do {                                                                                                 \
                if (!(condition)) {                                                                          \
                        fprintf(stderr, "seed %" PRIu64 ": ", (s) / 1000003);                                \
                        fprintf(stderr, __VA_ARGS__);                                                        \
                        fprintf(stderr, "\n");                                                               \
                        fail();                                                                              \
                }                                                                                            \
        } while (0)

/* Everything at once. Whatever can run at all does, and ends; and twice the same is the same. */
static void all_end(uint64_t s) {
        static const struct kind k = { .jobs = 50,
                                       .users = 3,
                                       .pools = 3,
                                       .priorities = true,
                                       .preemption = true,
                                       .quotas = true,
                                       .failures = true,
                                       .unlimited = 20 };
        uint64_t digests[2];

        for (size_t round = 0; round < 2; round++) {
                struct world w;
                make_world(&w, &k, s, NULL, NULL, 0);
                w.userdata = &w;
                w.pass = check_holds;
                assert_int_equal(world_run(&w, 1000000 * SECOND), 0);
                if (getenv("PRIMUS_TEST_SEED"))
                        print_open(&w);
                for (size_t i = 0; i < w.n_jobs; i++)
                        check(w.jobs[i].state == WORLD_DONE || (w.jobs[i].state == WORLD_WAITING &&
                                                                w.jobs[i].why.reason == POLICY_NEVER),
                              s, "job %zu waits for ever, reason %d, job %" PRIu64 " ahead", i,
                              w.jobs[i].why.reason, w.jobs[i].why.ahead);
                digests[round] = digest(&w);
                world_done(&w);
        }
        assert_int_equal(digests[0], digests[1]);
}

static void test_all_end(void **state) {
        each_seed(120, all_end);
}

/* ---- backfill delays nobody ---- */

static bool keep_earlier(const struct world_job *a, size_t i, const struct world_job *b, size_t k) {
        return i <= k;
}

static bool keep_before(const struct world_job *a, size_t i, const struct world_job *b, size_t k) {
        return a->priority > b->priority || (a->priority == b->priority && i <= k);
}

static uint32_t compared, earlier_without;

/* A job is promised what it would be if those behind it did not exist, and starts when it would then, or as
 * promised. The latter is later only if, without them, somebody before it found earlier places than the ones
 * promised: not every arrangement of a gang is tried, so what others hold can help it to one. */
static void compare(uint64_t s, const struct kind *k,
                    bool (*keep)(const struct world_job *a, size_t i, const struct world_job *b, size_t k)) {
        const struct world_job *a, *b;
        struct world w, without;
        bool late;

        make_world(&w, k, s, NULL, NULL, 0);
        w.userdata = &w;
        w.pass = check_holds;
        assert_int_equal(world_run(&w, UINT64_MAX), 0);
        for (size_t n = 0; n < 4; n++) {
                size_t i = (size_t)((s / 7 + n * 13) % k->jobs);
                make_world(&without, k, s, keep, w.jobs + i, i);
                assert_int_equal(world_run(&without, UINT64_MAX), 0);
                a = w.jobs + i;
                b = without.jobs + i;
                check(a->first_promise == b->first_promise, s,
                      "job %zu is promised %" PRIu64 " s, without those behind it %" PRIu64 " s", i,
                      a->first_promise / SECOND, b->first_promise / SECOND);
                late = a->first_started > b->first_started;
                check(!late || (a->first_promise != UINT64_MAX && a->first_started <= a->first_promise), s,
                      "job %zu starts at %" PRIu64 " s, without those behind it at %" PRIu64 " s", i,
                      a->first_started / SECOND, b->first_started / SECOND);
                compared++;
                earlier_without += late;
                world_done(&without);
        }
        world_done(&w);
}

static void one_by_one(uint64_t s) {
        static const struct kind k = { .jobs = 40, .users = 1, .pools = 1, .exact = true };

        compare(s, &k, keep_earlier);
}

static void all_at_once(uint64_t s) {
        static const struct kind k = {
                .jobs = 40, .users = 1, .pools = 1, .exact = true, .at_once = true, .priorities = true
        };

        compare(s, &k, keep_before);
}

static void test_backfill_delays_nobody(void **state) {
        compared = earlier_without = 0;
        each_seed(50, one_by_one);
        each_seed(50, all_at_once);
        print_message("%u compared, %u would have started before their promise without those behind them\n",
                      compared, earlier_without);
        assert_true(earlier_without <= 4 + compared / 1000);
}

static uint32_t promises, broken, backfilled;

/* Jobs end earlier than they might: whoever is first in the queue starts by the time it was told first. */
static void promises_are_kept(uint64_t s) {
        static const struct kind k = { .jobs = 40, .users = 1, .pools = 1 };
        struct world w;

        make_world(&w, &k, s, NULL, NULL, 0);
        assert_int_equal(world_run(&w, UINT64_MAX), 0);
        for (size_t i = 0; i < w.n_jobs; i++) {
                const struct world_job *j = w.jobs + i;
                bool first = true;
                backfilled += j->backfilled;
                for (size_t b = 0; b < i; b++) /* somebody before it was still waiting when it came */
                        first &= w.jobs[b].first_started <= j->submitted ||
                                 w.jobs[b].why.reason == POLICY_NEVER;
                if (j->first_promise == UINT64_MAX)
                        continue;
                promises++;
                broken += j->first_started > j->first_promise;
                check(!first || j->first_started <= j->first_promise, s,
                      "job %zu starts at %" PRIu64 " s, promised was %" PRIu64 " s", i,
                      j->first_started / SECOND, j->first_promise / SECOND);
        }
        world_done(&w);
}

static void test_promises_are_kept(void **state) {
        promises = broken = backfilled = 0;
        each_seed(80, promises_are_kept);
        print_message("%u promises, %u not kept because those before it changed places, %u backfilled\n",
                      promises, broken, backfilled);
        assert_true(broken * 10 <= promises);
}

/* ---- fair shares ---- */

/* Pools that always want more get what their weights say, up to what a job is large. */
static void fair_shares(uint64_t s) {
        struct policy_conf conf;
        double used[4] = {}, all = 0;
        uint32_t weights[4], sum = 0, n;
        struct world w;

        seed = s;
        n = 2 + random_below(3);
        policy_conf_defaults(&conf);
        conf.aging_usec = 0;
        assert_int_equal(world_init(&w, &conf, 0), 0);
        for (uint32_t i = 0; i < 8; i++)
                assert_int_equal(
                        world_add_host(&w, &(struct sched_capacity){ 16000, 64 * GIB, 0, 0, 0, 100 }, NULL),
                        0);
        for (uint32_t i = 0; i < n; i++) {
                struct policy_pool pool = { .limit = no_limit, .user_limit = no_limit };
                weights[i] = pool.weight = 1 + random_below(4);
                sum += weights[i];
                snprintf(pool.name, sizeof(pool.name), i == 0 ? "default" : "pool%u", i);
                assert_int_equal(policy_pool_set(w.policy, &pool, NULL), 0);
                for (uint32_t k = 0; k < 600; k++) {
                        uint64_t runtime = (60 + random_below(600)) * SECOND;
                        struct world_job j = {
                                .pool = i, .runtime = runtime, .limit = runtime, .n_shapes = 1
                        };
                        j.shapes[0] = (struct sched_shape){ .min = 1 + random_below(4) };
                        j.shapes[0].max = j.shapes[0].min;
                        j.shapes[0].cpu_milli = 1000 * (1 + random_below(4));
                        assert_int_equal(world_add_job(&w, &j, NULL), 0);
                }
        }
        assert_int_equal(world_run(&w, 3 * 3600 * SECOND), 0);
        for (size_t i = 0; i < w.n_jobs; i++) {
                const struct world_job *j = w.jobs + i;
                double cores = (double)j->shapes[0].cpu_milli * j->shapes[0].min;
                if (j->first_started == UINT64_MAX)
                        continue;
                used[j->pool] +=
                        cores * (double)((j->state == WORLD_DONE ? j->ended : w.now) - j->first_started);
        }
        for (uint32_t i = 0; i < n; i++)
                all += used[i];
        for (uint32_t i = 0; i < n; i++)
                check(fabs(used[i] / all - (double)weights[i] / sum) < 0.03, s, "pool %u got %.3f of %.3f", i,
                      used[i] / all, (double)weights[i] / sum);
        check(w.cpu_time / w.cpu_capacity > 0.95, s, "%.2f of the cluster used", w.cpu_time / w.cpu_capacity);
        world_done(&w);
}

static void test_fair_shares(void **state) {
        each_seed(2, fair_shares);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_end),
                cmocka_unit_test(test_backfill_delays_nobody),
                cmocka_unit_test(test_promises_are_kept),
                cmocka_unit_test(test_fair_shares),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
