/* SPDX-License-Identifier: Apache-2.0 */
/* An hour of what healthy jobs do, and never a verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/kit/health-scene.h"

#define MB 1e6
#define HOUR MIN_(60)
#define AN_HOUR(...)                                                                                         \
        {                                                                                                    \
                0, HOUR, EVERYBODY, DOES, {                                                                  \
                        __VA_ARGS__                                                                          \
                }                                                                                            \
        }
/* Waiting for peers: heartbeats of a store, nothing else. */
#define BLOCKED_WAIT                                                                                         \
        { .cpu = 0.01, .net = 400 }
#define SPINNING_WAIT                                                                                        \
        { .cpu = 1, .net = 400 }
#define IMPORTS                                                                                              \
        { .cpu = 0.8, .files = 3 * MB, .connections = 1 }

static const struct line ddp_block[] = { AN_HOUR(.cpu = 0.6, .net = 8 * MB, .unread = 0.05, .files = 300),
                                         { 0, 60, EVERYBODY, DOES, IMPORTS } };
static const struct line ddp_spin[] = { AN_HOUR(.cpu = 1, .net = 8 * MB, .unread = 0.05),
                                        { 0, 60, EVERYBODY, DOES, IMPORTS } };
/* A small model: a step a second, some kilobytes. */
static const struct line ddp_small[] = { AN_HOUR(.cpu = 0.9, .net = 12000, .unread = 0.1) };
static const struct line ddp_uneven[] = {
        AN_HOUR(.cpu = 0.7, .net = 8 * MB, .unread = 0.3),
        { 0, HOUR, ONLY(2), DOES, { .cpu = 0.8, .net = 8 * MB, .unread = 0.55 } }
};
/* Collectives over another network: its bytes are not seen. */
static const struct line ddp_gpu[] = {
        AN_HOUR(.cpu = 1, .net = 400, .gpu = 0.97, .watts = 2700, .unread = 0),
        { 0, 120, EVERYBODY, DOES, { .cpu = 0.7, .files = 5 * MB, .watts = 500 } }
};
static const struct line gpus_unseen[] = { AN_HOUR(.cpu = 1, .net = 400, .gpu = -1, .unread = 0) };

/* All sleep in turn, or wait for storage: nobody more than the others. */
static const struct line all_sleep[] = { AN_HOUR(.cpu = 0.2, .net = 5 * MB, .sleeps = 0.5, .locks = 0.3) };
static const struct line all_read[] = { AN_HOUR(.cpu = 0.2, .net = 5 * MB, .reads = 0.4, .locks = 0.4) };
/* Loaders that read ahead, one more than the others, and its trainer is not late for that. */
static const struct line reads_ahead[] = {
        AN_HOUR(.cpu = 0.6, .net = 5 * MB, .locks = 0.5, .loaders = 4, .loading = 0.1),
        { 0, HOUR, ONLY(1), DOES, { .cpu = 0.6, .net = 5 * MB, .locks = 0.5, .loaders = 4, .loading = 0.8 } },
};
/* One has a launcher that sleeps, the others have none. */
static const struct line launcher[] = {
        AN_HOUR(.cpu = 0.6, .net = 5 * MB, .locks = 0.6),
        { 0, HOUR, ONLY(0), DOES, { .cpu = 0.6, .net = 5 * MB, .locks = 0.6, .launcher = 1 } },
};
/* Each waits for itself. */
static const struct line uneven_waits[] = {
        AN_HOUR(.cpu = 0.3, .net = 5 * MB, .sleeps = 0.1, .reads = 0.2, .locks = 0.4),
        { 0, HOUR, ONLY(2), DOES, { .cpu = 0.3, .net = 5 * MB, .sleeps = 0.3, .reads = 0.2, .locks = 0.3 } },
};
/* Between two checkpoints rank 0 sleeps and reads for some minutes, as it may. */
static const struct line writes[] = {
        AN_HOUR(.cpu = 0.5, .net = 5 * MB, .locks = 0.6),
        { MIN_(10), MIN_(16), ONLY(0), DOES, { .cpu = 0.3, .net = 5 * MB, .reads = 0.9 } },
        { MIN_(40), MIN_(46), ONLY(0), DOES, { .cpu = 0.3, .net = 5 * MB, .sleeps = 0.9 } },
};

static const struct line checkpoint[] = {
        AN_HOUR(.cpu = 0.6, .net = 8 * MB, .unread = 0.05),
        { MIN_(15), MIN_(19), EVERYBODY, DOES, BLOCKED_WAIT },
        { MIN_(15),
          MIN_(19),
          ONLY(0),
          DOES,
          { .cpu = 0.3, .net = 400, .files = 200 * MB, .io_full = 0.85, .unread = 1 } },
        { MIN_(40), MIN_(44), EVERYBODY, DOES, SPINNING_WAIT },
        { MIN_(40),
          MIN_(44),
          ONLY(0),
          DOES,
          { .cpu = 0.3, .net = 400, .files = 200 * MB, .io_full = 0.85, .unread = 1 } },
};
/* Longer than a hang takes to be called one. */
static const struct line long_checkpoint[] = {
        AN_HOUR(.cpu = 0.6, .net = 8 * MB, .unread = 0.05),
        { MIN_(10), MIN_(35), EVERYBODY, DOES, SPINNING_WAIT },
        { MIN_(10),
          MIN_(35),
          ONLY(0),
          DOES,
          { .cpu = 0.3, .net = 400, .files = 100 * MB, .io_full = 0.6, .unread = 1 } },
};
static const struct line compile[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.05),
        { MIN_(2), MIN_(8), EVERYBODY, DOES, { .cpu = 1, .net = 400, .files = 30000, .forks = true } },
        /* and once more, all of it in the process */
        { MIN_(30), MIN_(36), EVERYBODY, DOES, { .cpu = 1, .net = 400, .files = 200 } },
};
static const struct line long_compile[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.05),
        { MIN_(2), MIN_(24), EVERYBODY, DOES, { .cpu = 1, .net = 400, .files = 5000, .forks = true } },
};
static const struct line gpu_compile[] = {
        AN_HOUR(.cpu = 1, .net = 8 * MB, .gpu = 0.95, .watts = 2700),
        { 0, MIN_(1), EVERYBODY, DOES, { .cpu = 0.8, .files = 3 * MB, .watts = 500 } },
        { MIN_(1),
          MIN_(7),
          EVERYBODY,
          DOES,
          { .cpu = 6, .net = 400, .files = 300000, .forks = true, .watts = 500 } },
};
static const struct line slow_start[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.05),
        { 0, MIN_(9), EVERYBODY, DOES, { .cpu = 0.02, .net = 300, .connections = 2 } },
        { 0, MIN_(9), ONLY(0), DOES, { .cpu = 0.4, .net = 50 * MB, .files = 50 * MB } },
        { 0, 30, EVERYBODY, DOES, IMPORTS },
};
static const struct line evaluation[] = {
        AN_HOUR(.cpu = 0.6, .net = 8 * MB, .unread = 0.05),
        { MIN_(10), MIN_(17), EVERYBODY, DOES, BLOCKED_WAIT },
        { MIN_(10), MIN_(17), ONLY(0), DOES, { .cpu = 1, .net = 400, .files = 2 * MB, .unread = 1 } },
        { MIN_(27), MIN_(34), EVERYBODY, DOES, BLOCKED_WAIT },
        { MIN_(27), MIN_(34), ONLY(0), DOES, { .cpu = 1, .net = 400, .files = 2 * MB, .unread = 1 } },
        { MIN_(44), MIN_(51), EVERYBODY, DOES, BLOCKED_WAIT },
        { MIN_(44), MIN_(51), ONLY(0), DOES, { .cpu = 1, .net = 400, .files = 2 * MB, .unread = 1 } },
};
static const struct line data_bound[] = { AN_HOUR(.cpu = 0.4, .data = 20 * MB, .data_wait = 0.6,
                                                  .net = 2 * MB, .io_full = 0.5, .unread = 0.1) };
static const struct line data_gap[] = {
        AN_HOUR(.cpu = 0.8, .data = 20 * MB, .data_wait = 0.1, .net = 2 * MB, .unread = 0.1),
        { MIN_(20), MIN_(25), EVERYBODY, DOES, { .cpu = 0.01, .data_wait = 1, .net = 300 } },
        { MIN_(40), MIN_(45), ONLY(1), DOES, { .cpu = 0.01, .data_wait = 1, .net = 300 } },
};
static const struct line ps_worker[] = {
        AN_HOUR(.cpu = 0.9, .net = 5 * MB, .data = 5 * MB, .unread = 0.2),
        { 0, HOUR, ONLY(0), DOES, { .cpu = 0.2, .net = 15 * MB, .unread = 0.7 } },
};
/* Each for itself: some are done early, and steps are far between. */
static const struct line workers[] = { AN_HOUR(.cpu = 1, .net = 0, .connections = 1),
                                       { MIN_(20), HOUR, ONLY(1), LEAVES, {} },
                                       { MIN_(33), HOUR, ONLY(2), LEAVES, {} } };
/* The same, but each has a connection to where it reports to. */
static const struct line trackers[] = { AN_HOUR(.cpu = 1, .net = 300, .connections = 2) };
static const struct line cpu_job[] = { AN_HOUR(.cpu = 1, .connections = 1) };
static const struct line cpu_job_steps[] = { AN_HOUR(.cpu = 0.02, .connections = 1, .steps = true) };
static const struct line no_counters[] = { AN_HOUR(.cpu = -1, .net = -1, .files = -1, .unread = -1) };
static const struct line no_network[] = { AN_HOUR(.cpu = 0.5, .net = -1, .unread = -1) };

static const struct line agent_again[] = { AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.1),
                                           { MIN_(12), HOUR, ONLY(1), AGENT_AGAIN, {} },
                                           { MIN_(12), MIN_(12) + 20, ONLY(1), SILENT, {} },
                                           { MIN_(30), HOUR, EVERYBODY, AGENT_AGAIN, {} } };
static const struct line unheard[] = { AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.1),
                                       { MIN_(12), MIN_(12) + 30, EVERYBODY, SILENT, {} },
                                       { MIN_(20), MIN_(32), ONLY(2), SILENT, {} },
                                       { MIN_(40), MIN_(55), EVERYBODY, SILENT, {} } };
/* Nothing is heard for long, and when it is again, what runs is a checkpoint. */
static const struct line unheard_checkpoint[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.1),
        { MIN_(20), MIN_(32), EVERYBODY, SILENT, {} },
        { MIN_(20), MIN_(38), EVERYBODY, DOES, BLOCKED_WAIT },
        { MIN_(20), MIN_(38), ONLY(0), DOES, { .cpu = 0.2, .files = 90 * MB, .net = 300 } }
};
static const struct line master_again[] = { AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.1),
                                            { MIN_(12), HOUR, EVERYBODY, MASTER_AGAIN, {} },
                                            { MIN_(30), MIN_(36), EVERYBODY, DOES, SPINNING_WAIT },
                                            { MIN_(33), HOUR, EVERYBODY, MASTER_AGAIN, {} } };
static const struct line elastic[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.1),     { MIN_(12), HOUR, ONLY(3), LEAVES, {} },
        { MIN_(12), MIN_(14), EVERYBODY, DOES, BLOCKED_WAIT }, { MIN_(20), FOREVER, ONLY(3), COMES, {} },
        { MIN_(20), MIN_(22), EVERYBODY, DOES, BLOCKED_WAIT }, { MIN_(20), MIN_(22), ONLY(3), DOES, IMPORTS }
};
static const struct line held[] = { AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.1),
                                    { MIN_(12), MIN_(52), EVERYBODY, HELD, {} },
                                    { MIN_(12), MIN_(52), EVERYBODY, DOES, {} } };
/* Rank 0 does a little more: it logs, and writes summaries. */
static const struct line rank0[] = {
        AN_HOUR(.cpu = 0.7, .net = 8 * MB, .unread = 0.1),
        { 0, HOUR, ONLY(0), DOES, { .cpu = 0.85, .net = 8 * MB, .unread = 0.3, .files = 90000 } }
};
static const struct line noisy_neighbour[] = {
        AN_HOUR(.cpu = 0.7, .net = 8 * MB, .unread = 0.05),
        { MIN_(20), MIN_(25), ONLY(1), DOES, { .cpu = 0.9, .net = 7 * MB, .unread = 0.95, .runqueue = 0.5 } }
};
static const struct line pressure_burst[] = {
        AN_HOUR(.cpu = 0.7, .net = 8 * MB, .unread = 0.05),
        { MIN_(20), MIN_(22), ONLY(1), DOES, { .cpu = 0.1, .net = 8 * MB, .memory_full = 0.9 } }
};
/* Loads its data set into memory, then trains. */
static const struct line loads[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .unread = 0.1),
        { 0, MIN_(25), EVERYBODY, DOES, { .cpu = 0.8, .files = 4 * MB, .grows = 3 * MB } }
};
static const struct line levels_off[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .grows = 0),
        { 0, MIN_(15), EVERYBODY, DOES, { .cpu = 0.9, .net = 8 * MB, .grows = 2 * MB } },
        { MIN_(15), MIN_(30), EVERYBODY, DOES, { .cpu = 0.9, .net = 8 * MB, .grows = 1 * MB } },
        { MIN_(30), MIN_(45), EVERYBODY, DOES, { .cpu = 0.9, .net = 8 * MB, .grows = 0.3 * MB } },
};
static const struct line sawtooth[] = {
        AN_HOUR(.cpu = 0.9, .net = 8 * MB, .grows = 1 * MB), { MIN_(3), HOUR, EVERYBODY, SHRINKS, {} },
        { MIN_(9), HOUR, EVERYBODY, SHRINKS, {} },           { MIN_(17), HOUR, EVERYBODY, SHRINKS, {} },
        { MIN_(29), HOUR, EVERYBODY, SHRINKS, {} },          { MIN_(44), HOUR, EVERYBODY, SHRINKS, {} },
};

static const struct scene scenes[] = {
        { "ddp, blocking", 4, HOUR, LINES(ddp_block) },
        { "ddp, spinning", 4, HOUR, LINES(ddp_spin) },
        { "ddp, small model", 2, HOUR, LINES(ddp_small) },
        { "ddp, uneven", 4, HOUR, LINES(ddp_uneven) },
        { "all sleep for half of each step", 3, HOUR, LINES(all_sleep) },
        { "all read storage in each step", 3, HOUR, LINES(all_read) },
        { "loaders of one read ahead", 4, HOUR, LINES(reads_ahead) },
        { "one has a launcher", 3, HOUR, LINES(launcher) },
        { "waits that differ a little", 4, HOUR, LINES(uneven_waits) },
        { "rank 0 writes for six minutes, twice", 4, HOUR, LINES(writes) },
        { "ddp on GPUs, other network", 4, HOUR, .gpus = 8, LINES(ddp_gpu) },
        { "GPUs that nobody can look at", 4, HOUR, .gpus = 8, LINES(gpus_unseen) },
        { "checkpoint of 4 minutes", 4, HOUR, LINES(checkpoint) },
        { "checkpoint of 25 minutes", 4, HOUR, LINES(long_checkpoint) },
        { "checkpoint of 25 minutes, two ranks", 2, HOUR, LINES(long_checkpoint) },
        { "compilation of 6 minutes", 4, HOUR, LINES(compile) },
        { "compilation of 22 minutes", 4, HOUR, LINES(long_compile) },
        { "compilation on GPU hosts", 4, HOUR, .gpus = 8, LINES(gpu_compile) },
        { "compilation, alone", 1, HOUR, .gpus = 1, LINES(gpu_compile) },
        { "slow start", 4, HOUR, LINES(slow_start) },
        { "evaluation by rank 0", 4, HOUR, LINES(evaluation) },
        { "bound by data", 4, HOUR, LINES(data_bound) },
        { "bound by data, alone", 1, HOUR, LINES(data_bound) },
        { "data comes late", 4, HOUR, LINES(data_gap) },
        { "parameter server", 5, HOUR, .roles = true, LINES(ps_worker) },
        { "workers for themselves", 4, HOUR, LINES(workers) },
        { "workers that report", 4, HOUR, LINES(trackers) },
        { "one process", 1, HOUR, LINES(cpu_job) },
        { "one process that says its steps", 1, HOUR, LINES(cpu_job_steps) },
        { "nothing can be measured", 4, HOUR, LINES(no_counters) },
        { "no network counters", 4, HOUR, LINES(no_network) },
        { "agent restarted", 4, HOUR, LINES(agent_again) },
        { "samples missing", 4, HOUR, LINES(unheard) },
        { "samples missing, then a checkpoint", 4, HOUR, LINES(unheard_checkpoint) },
        { "masterd restarted", 4, HOUR, LINES(master_again) },
        { "elastic", 4, HOUR, LINES(elastic) },
        { "held for 40 minutes", 4, HOUR, LINES(held) },
        { "rank 0 does more", 4, HOUR, LINES(rank0) },
        { "a noisy neighbour for 5 minutes", 4, HOUR, LINES(noisy_neighbour) },
        { "pressure for 2 minutes", 4, HOUR, LINES(pressure_burst) },
        { "loads its data", 2, HOUR, LINES(loads) },
        { "memory levels off", 2, HOUR, LINES(levels_off) },
        { "memory as a sawtooth", 2, HOUR, LINES(sawtooth) },
};

static void test_healthy(void **state) {
        for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
                scene_is_healthy(scenes + i);
}

/* The same with samples that are farther apart, and nearer. */
/* Whatever the ranks of a gang wait in, how often, and what else runs beside them: nobody is a straggler who
 * does as the others do. */
static void test_random_worlds(void **state) {
        uint32_t random = 1;

        for (unsigned world = 0; world < 300; world++) {
                double shares[6], sum = 0;
                struct line line = { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.4, .net = 5 * MB } };
                struct scene scene = { "a random world", 3 + world % 6, HOUR, .lines = &line, .n = 1 };

                for (size_t i = 0; i < 6; i++) {
                        random = random * 1664525u + 1013904223u;
                        shares[i] = (double)(random >> 8) / (double)(1u << 24);
                        sum += shares[i];
                }
                line.doing.sleeps = shares[0] / sum;
                line.doing.reads = shares[1] / sum;
                line.doing.pipes = shares[2] / sum;
                line.doing.server = shares[3] / sum;
                line.doing.locks = shares[4] / sum;
                line.doing.launcher = random >> 30;
                line.doing.loaders = random >> 29 & 7;
                line.doing.loading = shares[5];
                scene_is_healthy(&scene);
        }
}

static void test_sampling(void **state) {
        for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
                for (uint32_t apart = 1; apart <= 16; apart *= 4) {
                        struct scene s = scenes[i];

                        s.sample = apart;
                        scene_is_healthy(&s);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_healthy),
                cmocka_unit_test(test_sampling),
                cmocka_unit_test(test_random_worlds),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
