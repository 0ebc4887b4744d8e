/* SPDX-License-Identifier: Apache-2.0 */
/* A policy with jobs of one shape each, in small worlds that can be followed by hand. What goes wrong fails
 * the test. */
#pragma once

#include "lib/base/cleanup.h"
#include "masterd/sched/policy.h"

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

/* So many hosts of so many CPUs; conf NULL: the defaults. */
void policy_kit_begin(struct owner *o, uint32_t hosts, uint32_t cpus, const struct policy_conf *conf);
void policy_kit_end(struct owner *o);
/* n executors of so many cores each. */
void policy_kit_submit(struct owner *o, uint64_t id, uint32_t pool, uint32_t user, int32_t priority,
                       uint32_t n, uint32_t cores);
/* A pass: how many jobs got something. */
int policy_kit_run(struct owner *o);
/* The job has ended. */
void policy_kit_finish(struct owner *o, uint64_t id);
bool policy_kit_has_places(const struct owner *o, uint64_t id);

#define assert_order(o, ...)                                                                                 \
        do {                                                                                                 \
                static const uint64_t expected[] = { __VA_ARGS__ };                                          \
                assert_int_equal((o)->n_order, ELEMENTSOF(expected));                                        \
                assert_memory_equal((o)->order, expected, sizeof(expected));                                 \
        } while (0)
