/* SPDX-License-Identifier: Apache-2.0 */
/* Placement over 10,000 nodes that are partly in use, against a bare loop over two flat arrays that looks for
 * the best fit by CPU and memory and knows nothing else. One decision is one sched_place() and its release.
 * Then the same with all that may be asked for beside it, and over 1,000 and 100,000 nodes. */
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

/* 10 nodes to a switch, 4 switches to a rack, 4 zones; GPUs on every fourth node, two kinds; every second has
 * an SSD; two NUMA nodes. */
static void describe(struct sched *s, uint32_t slot) {
        char texts[4][32];
        const char *labels[5] = { texts[0], texts[1], texts[2], texts[3], "ssd" };
        struct sched_gpu gpus[8];
        struct sched_cpuset numa[2] = { { { 0xffff } }, { { 0xffff0000 } } };
        struct sched_description d = {
                .labels = labels, .n_labels = 4 + slot / 2 % 2, .gpus = gpus, .numa = numa
        };

        snprintf(texts[0], sizeof(texts[0]), "host=n%u", slot);
        snprintf(texts[1], sizeof(texts[1]), "switch=s%u", slot / 10);
        snprintf(texts[2], sizeof(texts[2]), "rack=r%u", slot / 40);
        snprintf(texts[3], sizeof(texts[3]), "zone=%c", "abcd"[slot / 40 % 4]);
        for (uint32_t i = 0; i < 8; i++)
                gpus[i] = (struct sched_gpu){ slot / 4 % 2 ? "H100" : "A100", slot / 4 % 2 ? 81559 : 40960,
                                              NULL, i / 4 };
        d.n_gpus = slot % 4 ? 0 : 8;
        d.n_numa = 2;
        if (sched_node_describe(s, slot, &d) < 0)
                die("cannot describe");
}

/* Nodes of 32 cores, 128 GiB and 8 GPUs on every fourth, each in use by some part. */
static struct sched *cluster(uint32_t n, uint32_t *cpu, uint32_t *memory) {
        static const char *const levels[] = { "switch", "rack" };
        struct sched *s;

        if (sched_new(&s) < 0 || sched_topology_set(s, levels, 2) < 0)
                die("out of memory");
        for (uint32_t i = 0; i < n; i++) {
                struct sched_capacity c = { 32000, 128 * GIB, i % 4 ? 0 : 8, 30000, 39999, 1000, 64 * GIB };
                struct sched_hold h = { .cpu_milli = 1000 * random_below(30),
                                        .memory = random_below(100) * GIB };
                if (i % 16 == 15)
                        h.cpu_milli = 0, h.memory = 0;
                if (sched_node_add(s, &c, &h.slot) < 0 || (h.cpu_milli > 0 && sched_reserve(s, &h) != 0))
                        die("cannot set up");
                describe(s, h.slot);
                if (cpu) {
                        cpu[i] = c.cpu_milli - h.cpu_milli;
                        memory[i] = (uint32_t)((c.memory - h.memory) >> 20);
                }
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
static double time_whole_gang(struct sched *s, const struct sched_gang *gang, unsigned times,
                              bool *ret_fits) {
        struct sched_gang g = *gang;
        struct sched_no_fit why;
        const unsigned each = times / ROUNDS;
        double best = INFINITY;

        for (unsigned round = 0; round < ROUNDS; round++) {
                double begin = bench_cpu();
                for (unsigned i = 0; i < each; i++) {
                        struct sched_placement p;
                        int r = sched_place(s, &g, &p, &why);
                        if (r < 0)
                                die("sched_place");
                        *ret_fits = r == 0;
                        if (r == 0)
                                release(s, &p);
                }
                best = MIN(best, (bench_cpu() - begin) / each * 1e6);
        }
        return best;
}

static double time_gang(struct sched *s, const struct sched_shape *shapes, size_t n, unsigned times,
                        bool *ret_fits) {
        return time_whole_gang(s, &(struct sched_gang){ shapes, n }, times, ret_fits);
}

/* Reports how many a second; they have to fit. */
static void report_gang(struct sched *s, const struct sched_gang *g, const char *what, double goal) {
        bool fits = false;
        double us = time_whole_gang(s, g, goal > 10000 ? 5000 : 500, &fits);

        if (!fits) {
                fprintf(stderr, "bench-sched: %s: was meant to fit\n", what);
                exit(1);
        }
        bench_report("sched", what, 1e6 / us, "1/s", 0, goal > 0 ? BENCH_VALUE_MIN : BENCH_NO_GOAL, goal);
}

static const struct constraint *constraint(const char *text) {
        struct constraint *c;

        if (constraint_parse(text, &c, NULL) < 0)
                die(text);
        return c;
}

static void all_that_may_be_asked_for(struct sched *s) {
        const struct constraint *ssd = constraint("ssd"), *zones = constraint("zone in (a,b)"),
                                *not_r3 = constraint("rack!=r3"), *zone_b = constraint("zone=b");
        const struct constraint *const required[] = { ssd, zones, not_r3 };
        const struct sched_preference preferred[] = { { zone_b, 10 } };
        const struct sched_shape plain = {
                .min = 1, .max = 1, .cpu_milli = 4000, .memory = 8 * GIB, .ports = 1
        };
        struct sched_shape h = plain;
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };

        h.required = required;
        h.n_required = ELEMENTSOF(required);
        report_gang(s, &g, "single decisions, 3 constraints", 50000);
        h.preferred = preferred;
        h.n_preferred = 1;
        report_gang(s, &g, "single decisions, 3 constraints and a preference", 50000);
        h.min = h.max = 64;
        report_gang(s, &g, "gangs of 64, 3 constraints and a preference", 1000);
        g.level = 1;
        g.topology = SCHED_SPREAD;
        report_gang(s, &g, "gangs of 64, the same, over many racks", 1000);
        h = plain;
        h.min = h.max = 64;
        g.topology = SCHED_REQUIRE;
        report_gang(s, &g, "gangs of 64 in one rack", 1000);
        g.topology = SCHED_PACK;
        report_gang(s, &g, "gangs of 64, switch or rack", 1000);
        h.n_required = 1;
        h.required = required;
        report_gang(s, &g, "gangs of 64, switch or rack, with a constraint", 1000);
        h = plain;
        g.topology = SCHED_ANYWHERE;
        h.gpus = 1;
        h.gpu.model = "H100";
        report_gang(s, &g, "single decisions, a GPU of one model", 50000);
        h.exclusive_cpus = true;
        h.numa = SCHED_NUMA_REQUIRE;
        report_gang(s, &g, "single decisions, GPU and own CPUs of one NUMA node", 0);
        h.min = h.max = 64;
        report_gang(s, &g, "gangs of 64, GPU and own CPUs of one NUMA node", 1000);
        h = plain;
        h.min = h.max = 64;
        g.whole_hosts = 1;
        report_gang(s, &g, "gangs of 64 on whole hosts", 1000);
}

static void growth(void) {
        const struct sched_shape one = {
                .min = 1, .max = 1, .cpu_milli = 4000, .memory = 8 * GIB, .ports = 1
        };
        struct sched_shape gang = one;
        static const uint32_t sizes[] = { 1000, 10000, 100000 };
        bool fits;

        gang.min = gang.max = 64;
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                struct sched *s = cluster(sizes[i], NULL, NULL);
                char what[64];
                snprintf(what, sizeof(what), "single decision, %u nodes", sizes[i]);
                bench_report("sched", what, time_gang(s, &one, 1, 1000, &fits), "us", 0, BENCH_NO_GOAL, 0);
                snprintf(what, sizeof(what), "gang of 64, %u nodes", sizes[i]);
                bench_report("sched", what, time_gang(s, &gang, 1, 100, &fits), "us", 0, BENCH_NO_GOAL, 0);
                snprintf(what, sizeof(what), "gang of 64 in one rack, %u nodes", sizes[i]);
                bench_report("sched", what,
                             time_whole_gang(s,
                                             &(struct sched_gang){ .shapes = &gang,
                                                                   .n_shapes = 1,
                                                                   .topology = SCHED_REQUIRE,
                                                                   .level = 1 },
                                             100, &fits),
                             "us", 0, BENCH_NO_GOAL, 0);
                sched_free(s);
        }
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
        const unsigned each = times / ROUNDS;
        double best = INFINITY;

        for (unsigned round = 0; round < ROUNDS; round++) {
                double begin = bench_cpu();
                for (unsigned k = 0; k < each; k++)
                        sink = best_of_loop(cpu, memory, need_cpu, need_memory);
                best = MIN(best, (bench_cpu() - begin) / each * 1e6);
        }
        (void)sink;
        return best;
}

int main(void) {
        static uint32_t cpu[NODES], memory[NODES];
        struct sched *s = cluster(NODES, cpu, memory);
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
        all_that_may_be_asked_for(s);
        sched_free(s);
        growth();
        return 0;
}
