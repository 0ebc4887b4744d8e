/* SPDX-License-Identifier: Apache-2.0 */
/* The whole policy over 10,000 hosts: many users, pools and priorities wait. First decisions a second where
 * there is room (half of the cluster is in use), then how long a pass keeps its caller where there is none:
 * thousands wait, and something ends or comes before each pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "sim/world.h"
#include "tests/bench/report.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND UINT64_C(1000000)
#define HOSTS 10000u
#define POOLS 8u
#define USERS 64u
#define WAITING 8600u
#define PASSES_MAX 4000u

static uint32_t random_below(uint32_t n) {
        static uint64_t seed = 7;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (uint32_t)(seed >> 33) % n;
}

static _Noreturn void die(const char *what) {
        fprintf(stderr, "bench-policy: %s\n", what);
        exit(1);
}

static const struct constraint *constraint(const char *text) {
        struct constraint *c;

        if (constraint_parse(text, &c, NULL) < 0)
                die(text);
        return c;
}

/* As in bench-sched: 10 hosts to a switch, 4 switches to a rack, 4 zones, every second one has an SSD. */
static void describe(struct sched *s, uint32_t slot) {
        char texts[3][32];
        const char *labels[4] = { texts[0], texts[1], texts[2], "ssd" };
        struct sched_description d = { .labels = labels, .n_labels = 3 + slot / 2 % 2 };

        snprintf(texts[0], sizeof(texts[0]), "switch=s%u", slot / 10);
        snprintf(texts[1], sizeof(texts[1]), "rack=r%u", slot / 40);
        snprintf(texts[2], sizeof(texts[2]), "zone=%c", "abcd"[slot / 40 % 4]);
        if (sched_node_describe(s, slot, &d) < 0)
                die("cannot describe");
}

static void begin(struct world *w, uint32_t n) {
        static const char *const levels[] = { "switch", "rack" };
        static const struct policy_amount none = { UINT64_MAX, UINT64_MAX, UINT32_MAX };
        const struct sched_capacity c = { 32000, 128 * GIB, 0, 30000, 39999, 1000, 64 * GIB };
        struct policy_conf conf;

        policy_conf_defaults(&conf);
        if (world_init(w, &conf, 0) < 0 || sched_topology_set(w->sched, levels, 2) < 0)
                die("out of memory");
        for (uint32_t i = 0; i < POOLS; i++) {
                struct policy_pool pool = { .weight = 1 + i % 3, .limit = none, .user_limit = none };
                snprintf(pool.name, sizeof(pool.name), i == 0 ? "default" : "pool%u", i);
                pool.preempts = i == 1;
                if (policy_pool_set(w->policy, &pool, NULL) < 0)
                        die("cannot make a pool");
        }
        for (uint32_t i = 0; i < n; i++) {
                uint32_t slot;
                if (world_add_host(w, &c, &slot) < 0)
                        die("cannot add a host");
                describe(w->sched, slot);
        }
}

static struct world_job somebodys(uint64_t submitted, uint64_t limit) {
        uint32_t user = random_below(USERS);

        return (struct world_job){ .pool = user % POOLS,
                                   .user = user,
                                   .priority = 10 * (int32_t)random_below(4),
                                   .submitted = submitted,
                                   .runtime = limit - random_below((uint32_t)(limit / SECOND / 2)) * SECOND,
                                   .limit = limit,
                                   .n_shapes = 1 };
}

static void add(struct world *w, const struct world_job *j) {
        if (world_add_job(w, j, NULL) < 0)
                die("cannot add a job");
}

/* Half of everything is in use by jobs of many users. */
static void fill_half(struct world *w) {
        for (uint32_t i = 0; i < w->n_hosts; i++) {
                struct world_job j = somebodys(0, 100000 * SECOND);
                j.shapes[0] = (struct sched_shape){
                        .min = 1, .max = 1, .cpu_milli = 16000, .memory = 60 * GIB, .max_per_node = 1
                };
                add(w, &j);
        }
        if (world_run(w, 0) < 0)
                die("world_run");
}

/* How many decisions a second when n such jobs come at once. */
static void decide(const char *what, uint32_t n, const struct sched_shape *h, uint8_t topology,
                   uint32_t level, double goal) {
        struct world w;
        double used;

        begin(&w, HOSTS);
        fill_half(&w);
        for (uint32_t i = 0; i < n; i++) {
                struct world_job j = somebodys(SECOND, 3600 * SECOND);
                j.shapes[0] = *h;
                j.topology = topology;
                j.level = level;
                add(&w, &j);
        }
        used = bench_cpu();
        if (world_run(&w, SECOND) < 0)
                die("world_run");
        used = bench_cpu() - used;
        for (size_t i = 0; i < w.n_jobs; i++)
                if (w.jobs[i].state != WORLD_RUNNING)
                        die("one was meant to fit, and waits");
        bench_report("sched", what, n / used, "1/s", 0, BENCH_VALUE_MIN, goal);
        world_done(&w);
}

static void decisions(void) {
        const struct constraint *const required[] = { constraint("ssd"), constraint("zone in (a,b)") };
        struct sched_shape h = { .min = 1, .max = 1, .cpu_milli = 4000, .memory = 8 * GIB, .ports = 1 };

        decide("policy: single jobs", 10000, &h, SCHED_ANYWHERE, 0, 50000);
        h.required = required;
        h.n_required = ELEMENTSOF(required);
        decide("policy: single jobs, 2 constraints", 5000, &h, SCHED_ANYWHERE, 0, 50000);
        h.n_required = 0;
        h.min = h.max = 64;
        decide("policy: gangs of 64", 300, &h, SCHED_ANYWHERE, 0, 1000);
        decide("policy: gangs of 64 in one rack", 200, &h, SCHED_REQUIRE, 1, 1000);
        decide("policy: gangs of 64, switch or rack", 200, &h, SCHED_PACK, 1, 1000);
        h.required = required;
        h.n_required = 1;
        decide("policy: gangs of 64, a constraint, switch or rack", 100, &h, SCHED_PACK, 1, 1000);
}

/* ---- a cluster that is full ---- */

static struct {
        double times[PASSES_MAX];
        size_t n;
        double last;
} passes;

static void pass_over(void *userdata) {
        double now = bench_cpu();

        if (passes.n < PASSES_MAX)
                passes.times[passes.n++] = (now - passes.last) * 1e3;
        passes.last = bench_cpu();
}

static struct world_job mixed(uint64_t submitted, const struct constraint *const *ssd) {
        struct world_job j = somebodys(submitted, 600 * SECOND * (1 + random_below(20)));
        struct sched_shape *h = j.shapes;
        uint32_t kind = random_below(100);

        *h = (struct sched_shape){ .min = 1 };
        h->cpu_milli = 1000 * (1 + random_below(32));
        h->memory = random_below(100) * GIB;
        if (kind >= 80)
                h->min = kind < 95 ? 2 + random_below(14) : 16u << random_below(4);
        h->max = h->min;
        if (kind % 10 == 0) {
                h->required = ssd;
                h->n_required = 1;
        }
        if (kind >= 90) {
                j.topology = kind % 2 ? SCHED_PACK : SCHED_SPREAD;
                j.level = 1;
        }
        j.preemptible = random_below(2);
        if (random_below(10) == 0)
                j.limit = UINT64_MAX;
        return j;
}

static void full(void) {
        const struct constraint *const ssd[] = { constraint("ssd") };
        struct world w;
        double sum = 0;
        size_t n, first;

        begin(&w, HOSTS);
        for (uint32_t i = 0; i < HOSTS + WAITING; i++) {
                struct world_job j = mixed(0, ssd);
                add(&w, &j);
        }
        for (uint32_t i = 0; i < 2000; i++) {
                struct world_job j = mixed((1 + i) * SECOND / 2, ssd);
                add(&w, &j);
        }
        w.pass = pass_over;
        passes.last = bench_cpu();
        if (world_run(&w, 0) < 0)
                die("world_run");
        first = passes.n;
        n = 0;
        for (size_t i = 0; i < w.n_jobs; i++)
                n += w.jobs[i].state == WORLD_WAITING;
        bench_report("sched", "policy: jobs that wait", (double)n, "jobs", 0, BENCH_NO_GOAL, 0);
        bench_report("sched", "policy: calls for the first pass", (double)first, "calls", 0, BENCH_NO_GOAL,
                     0);
        bench_report("sched", "policy: the longest of them", bench_percentile(passes.times, first, 100), "ms",
                     0, BENCH_VALUE_MAX, 50);
        passes.n = 0;
        if (world_run(&w, 30 * SECOND) < 0)
                die("world_run");
        for (size_t i = 0; i < passes.n; i++)
                sum += passes.times[i];
        bench_report("sched", "policy: later calls", (double)passes.n, "calls", 0, BENCH_NO_GOAL, 0);
        bench_report("sched", "policy: a call, mean", sum / (double)passes.n, "ms", 0, BENCH_NO_GOAL, 0);
        bench_report("sched", "policy: a call, p99", bench_percentile(passes.times, passes.n, 99), "ms", 0,
                     BENCH_VALUE_MAX, 50);
        bench_report("sched", "policy: a call, longest", bench_percentile(passes.times, passes.n, 100), "ms",
                     0, BENCH_VALUE_MAX, 50);
        world_done(&w);
}

int main(int argc, char **argv) {
        if (argc < 2 || strcmp(argv[1], "full") != 0)
                decisions();
        full();
        return 0;
}
