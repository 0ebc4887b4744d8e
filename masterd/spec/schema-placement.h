/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a role, and of a job, about where executors may go. For the tables alone. */
#pragma once

#include "lib/base/labels.h"
#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/valid.h"

extern const char *const cpu_policy_names[_CPU_POLICY_MAX], *const numa_names[_NUMA_POLICY_MAX],
                                                                    *const fit_names[_FIT_POLICY_MAX];
extern const struct schema prefer_schema, gpu_schema, topology_schema;
bool role_has_gpu_want(const void *target);
bool job_has_topology(const void *target);

#define ROLE_PLACEMENT_ROWS                                                                                  \
        { "constraints", KEY_TEXTS, LIST_AT(role_spec, placement.constraints, placement.n_constraints),      \
          RANGE(0, SPEC_CONSTRAINTS_MAX), .valid = valid_constraint },                                       \
                { "prefer",                                                                                  \
                  KEY_LIST,                                                                                  \
                  LIST_AT(role_spec, placement.prefer, placement.n_prefer),                                  \
                  RANGE(0, SPEC_CONSTRAINTS_MAX),                                                            \
                  .message = &prefer_schema,                                                                 \
                  .item_size = sizeof(struct prefer_spec) },                                                 \
                { "gpu", KEY_MESSAGE, .offset = 0, .message = &gpu_schema, .written = role_has_gpu_want },   \
                { "rdma", KEY_BOOL, AT(role_spec, placement.rdma) },                                         \
                { "shmMb", KEY_SCALED, AT(role_spec, placement.shm), RANGE(0, SPEC_MEMORY_MB_MAX),           \
                  .scale = 1 << 20 },                                                                        \
                { "consumables",                                                                             \
                  KEY_MAP,                                                                                   \
                  LIST_AT(role_spec, placement.consumables, placement.n_consumables),                        \
                  RANGE(0, SPEC_CONSUMABLES_MAX),                                                            \
                  .scale = 1,                                                                                \
                  .valid = valid_label_key },                                                                \
                { "cpuPolicy", KEY_ENUM, AT(role_spec, placement.cpu_policy), WORDS(cpu_policy_names) },     \
                { "numa", KEY_ENUM, AT(role_spec, placement.numa), WORDS(numa_names) },                      \
                { "fit", KEY_ENUM, AT(role_spec, placement.fit), WORDS(fit_names) },                         \
                { "affinity", KEY_TEXTS, LIST_AT(role_spec, placement.affinity, placement.n_affinity),       \
                  RANGE(0, SPEC_ROLES_MAX), .valid = valid_role_name },                                      \
        {                                                                                                    \
                "antiAffinity", KEY_TEXTS,                                                                   \
                        LIST_AT(role_spec, placement.anti_affinity, placement.n_anti_affinity),              \
                        RANGE(0, SPEC_ROLES_MAX), .valid = valid_role_name                                   \
        }

#define JOB_PLACEMENT_ROWS                                                                                   \
        { "topology", KEY_MESSAGE, .offset = 0, .message = &topology_schema, .written = job_has_topology },  \
        {                                                                                                    \
                "wholeHosts", KEY_BOOL, AT(job_spec, whole_hosts)                                            \
        }
