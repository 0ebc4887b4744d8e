/* SPDX-License-Identifier: Apache-2.0 */
/* A decision about hosts by demand: a thousand instances that are in use, a thousand jobs that wait, sixteen
 * shapes. What the scheduler is asked, and what follows from that for the provider. */
#include <stdio.h>
#include <stdlib.h>

#include "masterd/provision/decide.h"
#include "masterd/sched/demand.h"
#include "sim/world.h"
#include "tests/bench/report.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND UINT64_C(1000000)
#define INSTANCES 1000u
#define WAITING 1000u
#define ROUNDS 50u
#define GOAL_MS 20

static _Noreturn void die(const char *what) {
        fprintf(stderr, "bench-demand: %s\n", what);
        exit(1);
}

static struct sched_capacity host(uint32_t cpus, uint32_t gpus) {
        return (struct sched_capacity){ .cpu_milli = cpus * 1000,
                                        .memory = cpus * 4 * GIB,
                                        .gpus = gpus,
                                        .executors = 1000,
                                        .port_first = 20000,
                                        .port_last = 29999,
                                        .shm = GIB };
}

static void add_job(struct world *w, uint32_t user, uint32_t n, uint32_t cpus, uint32_t gpus) {
        struct world_job j = { .user = user,
                               .runtime = 3600 * SECOND,
                               .limit = UINT64_MAX,
                               .n_shapes = 1,
                               .shapes = { { .min = n,
                                             .max = n,
                                             .cpu_milli = cpus * 1000,
                                             .memory = cpus * GIB,
                                             .gpus = gpus } } };

        if (world_add_job(w, &j, NULL) < 0)
                die("cannot add a job");
}

/* Every host is full. */
static void fill(struct world *w) {
        const struct sched_capacity c = host(32, 0);
        struct policy_conf conf;
        uint32_t slot;

        policy_conf_defaults(&conf);
        if (world_init(w, &conf, 0) < 0)
                die("out of memory");
        for (uint32_t i = 0; i < INSTANCES; i++) {
                if (world_add_host(w, &c, &slot) < 0)
                        die("cannot add a host");
                add_job(w, i % 64, 1, 32, 0);
        }
        if (world_run(w, SECOND) < 0)
                die("world_run");
}

/* alike: all ask for the same. Otherwise a mixture of gangs, with GPUs and without; some never fit. */
static void submit(struct world *w, bool alike) {
        for (uint32_t i = 0; i < WAITING; i++)
                if (alike)
                        add_job(w, i % 64, 1, 4, 0);
                else
                        add_job(w, i % 64, 1 + i % 7, 1 + i % 60, i % 3 == 0 ? i % 9 : 0);
        if (world_run(w, 2 * SECOND) < 0)
                die("world_run");
}

static void measure(const char *what, bool alike) {
        struct demand_shape shapes[PROVISION_SHAPES_MAX];
        struct provision_instance *instances = calloc(INSTANCES, sizeof(*instances));
        struct demand_ask ask = { .shapes = shapes, .n_shapes = PROVISION_SHAPES_MAX };
        double asked[ROUNDS], decided[ROUNDS];
        struct provision_conf conf;
        struct world w;

        if (!instances)
                die("out of memory");
        fill(&w);
        submit(&w, alike);
        provision_conf_defaults(&conf);
        conf.n_shapes = PROVISION_SHAPES_MAX;
        conf.max = 2 * INSTANCES;
        for (uint32_t i = 0; i < PROVISION_SHAPES_MAX; i++) {
                shapes[i] = (struct demand_shape){ .capacity = host(4 << i / 4, i % 4 * 2),
                                                   .free = 100,
                                                   .cost = 100 + 37 * i };
                conf.shapes[i] = (struct provision_shape){ .max = 2 * INSTANCES, .cost = shapes[i].cost };
        }
        for (uint32_t i = 0; i < INSTANCES; i++)
                instances[i] = (struct provision_instance){
                        .state = INSTANCE_READY, .shape = i % 16, .made = 1, .since = 1
                };
        for (uint32_t k = 0; k < ROUNDS; k++) {
                struct provision_plan plan;
                struct demand d;
                double begun = bench_cpu();
                if (policy_demand(w.policy, w.now, &ask, &d) < 0)
                        die("policy_demand");
                asked[k] = (bench_cpu() - begun) * 1000;
                begun = bench_cpu();
                if (provision_decide(&conf, NULL, instances, INSTANCES, NULL, 0, NULL, 3600 * SECOND, &plan) <
                    0)
                        die("provision_decide");
                decided[k] = (bench_cpu() - begun) * 1000;
                if (k == 0)
                        fprintf(stderr, "%s: %zu of %u jobs looked at\n", what, d.n, WAITING);
                provision_plan_done(&plan);
                demand_done(&d);
        }
        {
                char name[128];
                snprintf(name, sizeof(name), "hosts by demand: %s, what 1,000 jobs would need", what);
                bench_report("provision", name, bench_percentile(asked, ROUNDS, 99), "ms", 0, BENCH_VALUE_MAX,
                             GOAL_MS);
                snprintf(name, sizeof(name), "hosts by demand: %s, what follows for 1,000 instances", what);
                bench_report("provision", name, bench_percentile(decided, ROUNDS, 99), "ms", 0,
                             BENCH_VALUE_MAX, GOAL_MS);
        }
        free(instances);
        world_done(&w);
}

int main(void) {
        measure("all alike", true);
        measure("all sorts", false);
        return 0;
}
