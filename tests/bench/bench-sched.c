/* SPDX-License-Identifier: Apache-2.0 */
/* Placement over 10,000 nodes that are partly in use, against a bare loop over two flat arrays that looks for
 * the best fit by CPU and memory and knows nothing else. One decision is one sched_place() and its release.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/sched.h"
#include "tests/bench/report.h"

#define NODES 10000u
#define ROUNDS 10u
#define GIB (UINT64_C(1) << 30)

static uint32_t random_below(uint32_t n) {
        static uint64_t seed = 1;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (uint32_t)(seed >> 33) % n;
}

static _Noreturn void die(const char *what) {
        fprintf(stderr, "bench-sched: %s\n", what);
        exit(1);
}

/* Nodes of 32 cores, 128 GiB and 8 GPUs on every fourth, each in use by some part. */
static struct sched *cluster(uint32_t *cpu, uint32_t *memory) {
        struct sched *s;

        if (sched_new(&s) < 0)
                die("out of memory");
        for (uint32_t i = 0; i < NODES; i++) {
                struct sched_capacity c = { 32000, 128 * GIB, i % 4 ? 0 : 8, 30000, 39999, 1000 };
                struct sched_hold h = { .cpu_milli = 1000 * random_below(30),
                                        .memory = random_below(100) * GIB };
                if (sched_node_add(s, &c, &h.slot) < 0 || sched_reserve(s, &h) != 0)
                        die("cannot set up");
                cpu[i] = c.cpu_milli - h.cpu_milli;
                memory[i] = (uint32_t)((c.memory - h.memory) >> 20);
        }
        return s;
}

static void release(struct sched *s, struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++)
                sched_release(s, &p->items[i].hold);
        sched_placement_done(p);
}

/* Microseconds for one try of a gang, the best of some rounds, for what else the machine does is not ours to
 * measure. *ret_fits: it was placed. */
static double time_gang(struct sched *s, const struct sched_shape *shapes, size_t n, unsigned times,
                        bool *ret_fits) {
        struct sched_gang g = { shapes, n };
        struct sched_no_fit why;
        double best = INFINITY;

        for (unsigned round = 0; round < ROUNDS; round++) {
                double begin = bench_cpu();
                for (unsigned i = 0; i < times / ROUNDS; i++) {
                        struct sched_placement p;
                        int r = sched_place(s, &g, &p, &why);
                        if (r < 0)
                                die("sched_place");
                        *ret_fits = r == 0;
                        if (r == 0)
                                release(s, &p);
                }
                best = MIN(best, (bench_cpu() - begin) / (times / ROUNDS) * 1e6);
        }
        return best;
}

static uint32_t best_of_loop(const uint32_t *cpu, const uint32_t *memory, uint32_t need_cpu,
                             uint32_t need_memory) {
        uint32_t best = UINT32_MAX, least = UINT32_MAX;

        for (uint32_t i = 0; i < NODES; i++)
                if (cpu[i] >= need_cpu && memory[i] >= need_memory && cpu[i] - need_cpu < least) {
                        least = cpu[i] - need_cpu;
                        best = i;
                }
        return best;
}

static double time_loop(const uint32_t *cpu, const uint32_t *memory, unsigned times) {
        volatile uint32_t need_cpu = 4000, need_memory = 8192, sink;
        double best = INFINITY;

        for (unsigned round = 0; round < ROUNDS; round++) {
                double begin = bench_cpu();
                for (unsigned k = 0; k < times / ROUNDS; k++)
                        sink = best_of_loop(cpu, memory, need_cpu, need_memory);
                best = MIN(best, (bench_cpu() - begin) / (times / ROUNDS) * 1e6);
        }
        (void)sink;
        return best;
}

int main(void) {
        static uint32_t cpu[NODES], memory[NODES];
        struct sched *s = cluster(cpu, memory);
        struct sched_shape one = { .min = 1, .max = 1, .cpu_milli = 4000, .memory = 8 * GIB, .ports = 1 };
        struct sched_shape gang = one, spread = one, large = one;
        struct sched_shape roles[] = {
                { .min = 4, .max = 4, .cpu_milli = 2000, .memory = 4 * GIB, .ports = 1 },
                { .min = 60, .max = 60, .cpu_milli = 4000, .memory = 8 * GIB, .ports = 1 }
        };
        double loop, us;
        bool fits;

        gang.min = gang.max = 64;
        spread.min = spread.max = 64;
        spread.max_per_node = 1;
        large.min = large.max = 90000;
        loop = time_loop(cpu, memory, 2000);
        bench_report("sched", "loop over flat arrays", loop, "us", 0, BENCH_NO_GOAL, 0);
        us = time_gang(s, &one, 1, 5000, &fits);
        bench_report("sched", "single decision", us, "us", loop, BENCH_NO_GOAL, 0);
        bench_report("sched", "single decisions", 1e6 / us, "1/s", 1e6 / loop, BENCH_VALUE_MIN, 50000);
        us = time_gang(s, &gang, 1, 1000, &fits);
        bench_report("sched", "gangs of 64", 1e6 / us, "1/s", 1e6 / (64 * loop), BENCH_VALUE_MIN, 1000);
        us = time_gang(s, &spread, 1, 1000, &fits);
        bench_report("sched", "gangs of 64, one per node", 1e6 / us, "1/s", 1e6 / (64 * loop),
                     BENCH_VALUE_MIN, 1000);
        us = time_gang(s, roles, ELEMENTSOF(roles), 1000, &fits);
        bench_report("sched", "gangs of 4 + 60", 1e6 / us, "1/s", 1e6 / (64 * loop), BENCH_VALUE_MIN, 1000);
        us = time_gang(s, &large, 1, 100, &fits);
        if (fits)
                die("the large gang was meant not to fit");
        bench_report("sched", "gang of 90,000 that does not fit", us, "us", loop, BENCH_NO_GOAL, 0);
        sched_free(s);
        return 0;
}
