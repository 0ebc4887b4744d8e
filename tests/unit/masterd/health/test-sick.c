/* SPDX-License-Identifier: Apache-2.0 */
/* What is sick is called by its name, within its time, and the right one is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/health-scene.h"

#define MB 1e6
#define HOUR MIN_(60)
#define TRAINS                                                                                               \
        {                                                                                                    \
                0, HOUR, EVERYBODY, DOES, {                                                                  \
                        .cpu = 0.7, .net = 8 * MB, .unread = 0.05                                            \
                }                                                                                            \
        }
#define BLOCKED_WAIT                                                                                         \
        { .cpu = 0.01, .net = 400, .files = 100 }
#define SPINNING_WAIT                                                                                        \
        { .cpu = 1, .net = 400, .files = 100 }

static struct health_verdict sick(const char *name, uint32_t members, const struct line *lines, size_t n,
                                  enum verdict_kind kind, bool gang, uint32_t member, uint32_t after,
                                  uint32_t before) {
        return scene_is_sick(&(struct scene){ name, members, HOUR, .lines = lines, .n = n }, kind, gang,
                             member, after, before);
}
#define SICK(name, members, lines, ...)                                                                      \
        sick(name, members, lines, sizeof(lines) / sizeof((lines)[0]), __VA_ARGS__)

/* ---- hung */
static void test_stopped_rank(void **state) {
        static const struct line lines[] = { TRAINS,
                                             { MIN_(20), HOUR, EVERYBODY, DOES, BLOCKED_WAIT },
                                             { MIN_(20), HOUR, ONLY(2), DOES, { .stopped = true } } };
        static const struct line two[] = { TRAINS,
                                           { MIN_(20), HOUR, EVERYBODY, DOES, SPINNING_WAIT },
                                           { MIN_(20), HOUR, ONLY(1), DOES, { .stopped = true } } };
        struct health_verdict v =
                SICK("stopped rank", 4, lines, VERDICT_HUNG, true, 2, MIN_(30) - 5, MIN_(30) + 15);

        assert_int_equal(v.n_members, 4);
        assert_non_null(strstr(v.text, "is stopped"));
        (void)SICK("stopped rank of two", 2, two, VERDICT_HUNG, true, 1, MIN_(30) - 5, MIN_(30) + 15);
}

static void test_skips_collective(void **state) {
        static const struct line spin[] = { TRAINS,
                                            { MIN_(20), HOUR, EVERYBODY, DOES, SPINNING_WAIT },
                                            { MIN_(20), HOUR, ONLY(3), DOES, BLOCKED_WAIT } };
        static const struct line block[] = { TRAINS,
                                             { MIN_(20), HOUR, EVERYBODY, DOES, BLOCKED_WAIT },
                                             { MIN_(20), HOUR, ONLY(0), DOES, SPINNING_WAIT } };
        static const struct line all[] = { TRAINS, { MIN_(20), HOUR, EVERYBODY, DOES, BLOCKED_WAIT } };

        (void)SICK("others spin", 4, spin, VERDICT_HUNG, true, 3, MIN_(30) - 5, MIN_(30) + 15);
        (void)SICK("others block", 4, block, VERDICT_HUNG, true, 0, MIN_(30) - 5, MIN_(30) + 15);
        (void)SICK("deadlock of all", 4, all, VERDICT_HUNG, true, UINT32_MAX, MIN_(30) - 5, MIN_(30) + 15);
}

static void test_cut_cable(void **state) {
        static const struct line lines[] = { TRAINS,
                                             { MIN_(20), HOUR, EVERYBODY, DOES, BLOCKED_WAIT },
                                             { MIN_(20), HOUR, ONLY(1), SILENT, {} } };

        (void)SICK("cut cable", 4, lines, VERDICT_HUNG, true, 1, MIN_(30) - 5, MIN_(30) + 15);
}

static void test_hung_gpus(void **state) {
        static const struct line lines[] = {
                { 0, HOUR, EVERYBODY, DOES, { .cpu = 1, .net = 400, .gpu = 0.97, .watts = 2700 } },
                { 0, 120, EVERYBODY, DOES, { .cpu = 0.7, .net = 1 * MB, .files = 5 * MB, .watts = 500 } },
                { MIN_(20), HOUR, EVERYBODY, DOES, { .cpu = 1, .net = 400, .gpu = 1, .watts = 900 } },
                { MIN_(20), HOUR, ONLY(2), DOES, { .cpu = 0.01, .net = 400, .gpu = 0, .watts = 500 } },
        };
        struct scene s = { "GPUs spin in a collective", 4, MIN_(45), .gpus = 8, LINES(lines) };
        struct health_verdict v = scene_is_sick(&s, VERDICT_HUNG, true, 2, MIN_(30) - 5, MIN_(30) + 15);

        assert_non_null(strstr(v.text, "GPUs"));
        s.name = "one process with GPUs";
        s.members = 1;
        (void)scene_is_sick(&s, VERDICT_HUNG, false, 0, MIN_(30) - 5, MIN_(30) + 15);
}

static void test_deadlock_alone(void **state) {
        static const struct line lines[] = { { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.9, .connections = 1 } },
                                             { MIN_(20), HOUR, EVERYBODY, DOES, { .connections = 1 } } };
        struct verdicts v;

        scene_play(&(struct scene){ "deadlock", 1, HOUR, LINES(lines) }, &v);
        assert_true(v.n >= 1 && v.all[0].v.kind == VERDICT_HUNG && v.all[0].at >= MIN_(30) - 5 &&
                    v.all[0].at < MIN_(30) + 15);
        for (size_t i = 1; i < v.n; i++)
                assert_int_equal(v.all[i].v.kind, VERDICT_HUNG);
}

static void test_worker_of_many(void **state) {
        static const struct line lines[] = { TRAINS, { MIN_(20), HOUR, ONLY(3), DOES, BLOCKED_WAIT } };
        static const struct line short_[] = { TRAINS,
                                              { MIN_(20), MIN_(40), ONLY(3), DOES, { .stopped = true } } };
        struct verdicts v;

        (void)SICK("worker of an asynchronous job", 5, lines, VERDICT_HUNG, false, 3, MIN_(30),
                   MIN_(30) + 15);
        scene_play(&(struct scene){ "it goes on", 5, HOUR, LINES(short_) }, &v);
        assert_int_equal(v.n, 2);
        assert_true(v.all[0].v.begins && !v.all[1].v.begins);
        assert_true(v.all[1].at >= MIN_(40) && v.all[1].at < MIN_(40) + 20);
}

static void test_standstill_ends(void **state) {
        static const struct line lines[] = { TRAINS, { MIN_(20), MIN_(35), EVERYBODY, DOES, BLOCKED_WAIT } };
        struct verdicts v;

        scene_play(&(struct scene){ "goes on", 4, HOUR, LINES(lines) }, &v);
        assert_int_equal(v.n, 2);
        assert_true(v.all[0].v.gang && v.all[0].v.begins && v.all[1].v.gang && !v.all[1].v.begins);
        assert_true(v.all[1].at >= MIN_(35) && v.all[1].at <= MIN_(35) + 15);
}

/* What was before is not known to a new master: it takes as long once more, and no longer. */
static void test_hung_master_again(void **state) {
        static const struct line lines[] = { TRAINS,
                                             { MIN_(20), HOUR, EVERYBODY, DOES, BLOCKED_WAIT },
                                             { MIN_(20), HOUR, ONLY(2), DOES, { .stopped = true } },
                                             { MIN_(25), HOUR, EVERYBODY, MASTER_AGAIN, {} } };
        struct verdicts v;

        scene_play(&(struct scene){ "masterd again", 4, HOUR, LINES(lines) }, &v);
        assert_true(v.n >= 1 && v.all[0].v.kind == VERDICT_HUNG);
        assert_true(v.all[0].at >= MIN_(35) && v.all[0].at <= MIN_(36));
}

/* ---- straggler */
static void straggles(const char *name, struct doing how, const char *resource) {
        struct line lines[] = { TRAINS, { MIN_(20), HOUR, ONLY(2), DOES, how } };
        struct health_verdict v;

        lines[1].doing.net = 8 * MB;
        lines[1].doing.unread = 0.9;
        v = SICK(name, 4, lines, VERDICT_STRAGGLER, false, 2, MIN_(30), MIN_(35));
        assert_non_null(v.resource);
        assert_string_equal(v.resource, resource);
}

static void test_straggler(void **state) {
        straggles("CPU throttled", (struct doing){ .cpu = 0.5, .throttled = 0.6 }, "cpu-limit");
        straggles("CPU shared", (struct doing){ .cpu = 0.6, .runqueue = 0.8 }, "cpu");
        straggles("memory", (struct doing){ .cpu = 0.6, .memory_full = 0.2 }, "memory");
        straggles("I/O", (struct doing){ .cpu = 0.5, .io_full = 0.5 }, "io");
        straggles("data", (struct doing){ .cpu = 0.5, .data_wait = 0.5, .data = MB }, "data");
        straggles("bad link", (struct doing){ .cpu = 0.7, .retransmits = 40 }, "network");
        straggles("more to do", (struct doing){ .cpu = 1 }, "work");
}

/* Nothing lies unread where peers ask before they send; where they block, who computes is late. */
static void test_straggler_blocking(void **state) {
        static const struct line lines[] = {
                { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.6, .net = 8 * MB } },
                { MIN_(20), HOUR, EVERYBODY, DOES, { .cpu = 0.06, .net = 0.8 * MB } },
                { MIN_(20), HOUR, ONLY(1), DOES, { .cpu = 0.9, .net = 0.8 * MB } },
        };

        (void)SICK("computes while the others wait", 3, lines, VERDICT_STRAGGLER, false, 1, MIN_(30),
                   MIN_(35));
}

static void test_straggler_of_two(void **state) {
        static const struct line lines[] = {
                TRAINS, { MIN_(20), HOUR, ONLY(1), DOES, { .cpu = 1, .net = 8 * MB, .unread = 0.95 } }
        };
        static const struct line over[] = {
                TRAINS, { MIN_(10), MIN_(30), ONLY(1), DOES, { .cpu = 1, .net = 8 * MB, .unread = 0.95 } }
        };
        struct verdicts v;

        (void)SICK("straggler of two", 2, lines, VERDICT_STRAGGLER, false, 1, MIN_(30), MIN_(35));
        scene_play(&(struct scene){ "it catches up", 4, HOUR, LINES(over) }, &v);
        assert_int_equal(v.n, 2);
        assert_true(v.all[0].v.begins && !v.all[1].v.begins && v.all[1].at < MIN_(45));
}

/* Checkpoints in between are no interruption. */
static void test_straggler_checkpoints(void **state) {
        static const struct line lines[] = {
                TRAINS,
                { MIN_(20), HOUR, ONLY(1), DOES, { .cpu = 1, .net = 8 * MB, .unread = 0.95 } },
                { MIN_(24), MIN_(28), EVERYBODY, DOES, BLOCKED_WAIT },
                { MIN_(24),
                  MIN_(28),
                  ONLY(0),
                  DOES,
                  { .cpu = 0.2, .files = 90 * MB, .net = 300, .unread = 1 } },
        };

        (void)SICK("straggler, checkpoints", 4, lines, VERDICT_STRAGGLER, false, 1, MIN_(33), MIN_(40));
}

/* ---- the others */
static void test_idle(void **state) {
        static const struct line cpu[] = { { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.002, .connections = 1 } } };
        static const struct line gpu[] = {
                { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.8, .net = 3 * MB, .watts = 60, .connections = 1 } }
        };
        struct scene s = { "GPUs for nothing", 1, HOUR, .gpus = 1, LINES(gpu) };

        (void)SICK("sleep infinity", 1, cpu, VERDICT_IDLE, false, 0, MIN_(30), MIN_(32));
        (void)scene_is_sick(&s, VERDICT_IDLE, false, 0, MIN_(30), MIN_(32));
}

static void test_starved(void **state) {
        static const struct line lines[] = {
                { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.8, .data = 9 * MB, .data_wait = 0.1, .net = 3 * MB } },
                { MIN_(20),
                  HOUR,
                  ONLY(1),
                  DOES,
                  { .cpu = 0.1, .data = 1 * MB, .data_wait = 1, .net = 3 * MB } }
        };

        (void)SICK("starved", 2, lines, VERDICT_STARVED, false, 1, MIN_(30), MIN_(35));
}

static void test_thrashing(void **state) {
        static const struct line memory[] = {
                TRAINS, { MIN_(20), HOUR, ONLY(1), DOES, { .cpu = 0.2, .net = 2 * MB, .memory_full = 0.7 } }
        };
        static const struct line io[] = {
                { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.1, .files = 1 * MB, .io_full = 0.97 } }
        };
        struct health_verdict v = SICK("memory", 2, memory, VERDICT_THRASHING, false, 1, MIN_(25), MIN_(28));

        assert_string_equal(v.resource, "memory");
        v = SICK("I/O", 1, io, VERDICT_THRASHING, false, 0, MIN_(5), MIN_(7));
        assert_string_equal(v.resource, "io");
}

static void test_leaking(void **state) {
        static const struct line lines[] = {
                TRAINS,
                { 0, HOUR, ONLY(1), DOES, { .cpu = 0.7, .net = 8 * MB, .unread = 0.05, .grows = 0.3 * MB } }
        };
        struct health_verdict v = SICK("leak", 2, lines, VERDICT_LEAKING, false, 1, MIN_(30), MIN_(45));
        uint64_t left = 0;

        for (size_t i = 0; i < v.n_numbers; i++)
                if (strcmp(v.numbers[i].name, "leftUsec") == 0)
                        left = v.numbers[i].value / 60000000;
        /* 7 GiB to go at 0.3 MB/s are 417 minutes, less what has gone by. */
        assert_in_range(left, 350, 410);
}

static void test_oom(void **state) {
        static const struct line lines[] = {
                TRAINS, { MIN_(20), MIN_(21), ONLY(1), DOES, { .cpu = 0.7, .net = 8 * MB, .killed = 1 } }
        };

        (void)SICK("oom", 2, lines, VERDICT_OOM, false, 1, MIN_(20), MIN_(20) + 15);
}

static void test_crash_loop(void **state) {
        const struct health_rule *rule = &health_defaults.of[VERDICT_CRASH_LOOP];
        const uint64_t minute = 60000000, times[] = { 10 * minute, 50 * minute, 55 * minute, 60 * minute };
        const uint32_t two[] = { 1, 1, 2, 1 };
        struct health_verdict v;

        assert_false(health_crashes(rule, times, NULL, 3, 61 * minute, &v));
        assert_true(health_crashes(rule, times, NULL, 4, 61 * minute, &v));
        assert_int_equal(v.since_usec, 50 * minute);
        assert_non_null(strstr(v.text, "3 of its attempts failed within 11min"));
        assert_true(health_crashes(rule, times, two, 3, 61 * minute, &v));
        assert_false(health_crashes(rule, times, NULL, 4, 95 * minute, &v));
}

static void test_off(void **state) {
        static const struct line lines[] = { TRAINS, { MIN_(20), HOUR, EVERYBODY, DOES, BLOCKED_WAIT } };
        struct health_rules rules = health_defaults;

        rules.of[VERDICT_HUNG].off = true;
        scene_is_healthy(&(struct scene){ "hung is off", 4, HOUR, .rules = &rules, LINES(lines) });
}

/* As tests with real parts have them. */
static void test_short_times(void **state) {
        static const struct line lines[] = { TRAINS,
                                             { MIN_(1), HOUR, EVERYBODY, DOES, BLOCKED_WAIT },
                                             { MIN_(1), HOUR, ONLY(2), DOES, { .stopped = true } } };
        static const struct line slow[] = {
                TRAINS, { MIN_(1), HOUR, ONLY(1), DOES, { .cpu = 1, .net = 8 * MB, .unread = 0.95 } }
        };
        struct health_rules rules = health_defaults;

        rules.of[VERDICT_HUNG].after_usec = 10000000;
        rules.of[VERDICT_STRAGGLER].after_usec = 15000000;
        (void)scene_is_sick(
                &(struct scene){ "short", 3, MIN_(3), .sample = 1, .rules = &rules, LINES(lines) },
                VERDICT_HUNG, true, 2, MIN_(1) + 9, MIN_(1) + 20);
        (void)scene_is_sick(&(struct scene){ "short", 3, MIN_(3), .sample = 1, .rules = &rules, LINES(slow) },
                            VERDICT_STRAGGLER, false, 1, MIN_(1) + 15, MIN_(1) + 35);
}

/* gloo: nothing lies unread, and nobody computes much. */
#define IN_STEP(...)                                                                                         \
        { .cpu = 0.2, .net = 5 * MB, .unread = 0.03, __VA_ARGS__ }
static void test_straggler_apart(void **state) {
        static const struct line sleeps[] = {
                { 0, HOUR, EVERYBODY, DOES, IN_STEP(.locks = 0.75) },
                { MIN_(5), HOUR, ONLY(1), DOES, IN_STEP(.sleeps = 0.75) },
        };
        static const struct line storage[] = {
                { 0, HOUR, EVERYBODY, DOES,
                  IN_STEP(.locks = 0.7, .launcher = 1, .loaders = 2, .loading = 0.2) },
                { MIN_(5), HOUR, ONLY(2), DOES,
                  IN_STEP(.reads = 0.75, .launcher = 1, .loaders = 2, .loading = 0.2) },
        };
        static const struct line server[] = {
                { 0, HOUR, EVERYBODY, DOES, IN_STEP(.locks = 0.75) },
                { MIN_(5), HOUR, ONLY(0), DOES, IN_STEP(.server = 0.75) },
        };
        /* What the others sent lies unread meanwhile, so the verdict needs no look; its reason does. */
        static const struct line both[] = {
                { 0, HOUR, EVERYBODY, DOES, IN_STEP(.locks = 0.75) },
                { MIN_(5), HOUR, ONLY(1), DOES, { .cpu = 0.2, .net = 5 * MB, .unread = 0.9, .reads = 0.75 } },
        };
        /* It computes alone by a hair, and only at first. */
        static const struct line light[] = {
                { 0, HOUR, EVERYBODY, DOES, { .cpu = 0.01, .net = 5 * MB, .unread = 0.03, .locks = 0.75 } },
                { MIN_(5),
                  HOUR,
                  ONLY(1),
                  DOES,
                  { .cpu = 0.3, .net = 5 * MB, .unread = 0.03, .sleeps = 0.7 } },
        };
        static const struct {
                const char *name, *resource, *text;
                const struct line *lines;
                uint32_t who;
        } all[] = { { "one sleeps", "sleep", "its program sleeps, in step (train.py:12) in", sleeps, 1 },
                    { "one waits for storage", "storage", "it waits for storage, in step (train.py:12) in",
                      storage, 2 },
                    { "one waits for a server", "network", "it waits for a server, in step (train.py:12) in",
                      server, 0 },
                    { "what was sent to it lies, too", "storage",
                      "it waits for storage, in step (train.py:12) in", both, 1 },
                    { "it computes, too", "sleep", "its program sleeps, in step (train.py:12) in", light,
                      1 } };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                struct health_verdict v =
                        scene_is_sick(&(struct scene){ all[i].name, 3, HOUR, .lines = all[i].lines, .n = 2 },
                                      VERDICT_STRAGGLER, false, all[i].who, MIN_(14), MIN_(22));

                assert_string_equal(v.resource, all[i].resource);
                assert_non_null(strstr(v.text, all[i].text));
        }
}

/* It waits in little more than half of the looks, and of the signals each third comes too late: under a
 * rule of 20 s its place is told all the same, and hardly ever another one. */
static void test_place_of_a_straggler(void **state) {
        struct health_rules rules = health_defaults;
        unsigned right = 0;

        rules.of[VERDICT_STRAGGLER].after_usec = 20000000;
        for (uint32_t begin = 60; begin < 160; begin++) {
                const struct line lines[] = {
                        { 0, HOUR, EVERYBODY, DOES, IN_STEP(.locks = 0.75) },
                        { begin, HOUR, ONLY(2), DOES, IN_STEP(.reads = 0.58, .strays = 0.33) },
                };
                struct health_verdict v =
                        scene_is_sick(&(struct scene){ "it waits now and then", 3, 300, .sample = 1,
                                                       .rules = &rules, LINES(lines) },
                                      VERDICT_STRAGGLER, false, 2, begin + 15, begin + 90);

                assert_non_null(strstr(v.text, "it waits for storage, in "));
                assert_non_null(strstr(v.text, " (train.py:"));
                right += strstr(v.text, "in step (train.py:12) in") != NULL;
        }
        assert_in_range(right, 96, 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stopped_rank),
                cmocka_unit_test(test_skips_collective),
                cmocka_unit_test(test_cut_cable),
                cmocka_unit_test(test_hung_gpus),
                cmocka_unit_test(test_deadlock_alone),
                cmocka_unit_test(test_worker_of_many),
                cmocka_unit_test(test_standstill_ends),
                cmocka_unit_test(test_hung_master_again),
                cmocka_unit_test(test_straggler),
                cmocka_unit_test(test_straggler_blocking),
                cmocka_unit_test(test_straggler_of_two),
                cmocka_unit_test(test_straggler_apart),
                cmocka_unit_test(test_place_of_a_straggler),
                cmocka_unit_test(test_straggler_checkpoints),
                cmocka_unit_test(test_idle),
                cmocka_unit_test(test_starved),
                cmocka_unit_test(test_thrashing),
                cmocka_unit_test(test_leaking),
                cmocka_unit_test(test_oom),
                cmocka_unit_test(test_crash_loop),
                cmocka_unit_test(test_off),
                cmocka_unit_test(test_short_times),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
