/* SPDX-License-Identifier: Apache-2.0 */
/* Where executors may go and what they hold there, beyond CPUs, memory and a number of GPUs. Part of spec.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_CONSTRAINTS_MAX 32u /* required and preferred ones of a role together */
#define SPEC_WEIGHTS_MAX 1000000u
#define SPEC_CONSUMABLES_MAX 8u
#define SPEC_EXCLUSIVE_CPUS_MAX 1024u

enum cpu_policy {
        CPU_SHARED,
        CPU_EXCLUSIVE, /* whole CPUs that nobody else runs on */
        _CPU_POLICY_MAX,
};
/* The same order as enum sched_numa. */
enum numa_policy {
        NUMA_NONE,
        NUMA_PREFER,
        NUMA_REQUIRE,
        _NUMA_POLICY_MAX
};
enum fit_policy {
        FIT_BEST,
        FIT_WORST,
        _FIT_POLICY_MAX
};
/* The same order as enum sched_topology. */
enum topology_mode {
        TOPOLOGY_ANYWHERE,
        TOPOLOGY_PACK,
        TOPOLOGY_REQUIRE,
        TOPOLOGY_SPREAD,
        _TOPOLOGY_MODE_MAX
};
#define TOPOLOGY_LEVEL_HOST "host" /* of TOPOLOGY_SPREAD, where no level of the site has this name */

struct prefer_spec {
        char *constraint;
        uint32_t weight; /* >= 1 */
};

/* Of a role. Lists of texts are NULL-ended and never NULL. */
struct placement_spec {
        char **constraints; /* constraint_parse() takes each */
        size_t n_constraints;
        struct prefer_spec *prefer;
        size_t n_prefer;
        char *gpu_model;        /* or NULL */
        char *gpu_mig;          /* or NULL */
        uint32_t gpu_memory_mb; /* at least */
        uint64_t shm;           /* bytes */
        char **consumables;     /* NAME=N */
        size_t n_consumables;
        uint32_t cpu_policy; /* enum cpu_policy */
        uint32_t numa;       /* enum numa_policy */
        uint32_t fit;        /* enum fit_policy */
        char **affinity;     /* names of roles */
        size_t n_affinity;
        char **anti_affinity;
        size_t n_anti_affinity;
        bool rdma; /* it opens RDMA devices, on hosts that have some */
};

/* Of a job. */
struct topology_spec {
        char *level;   /* a label; NULL: the nearest */
        uint32_t mode; /* enum topology_mode */
};

/* The name and number of a consumable ("NAME=N"); name has room for size bytes. -EINVAL. */
int spec_consumable(const char *text, char *name, size_t size, uint32_t *ret_n);
