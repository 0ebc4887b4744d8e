/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a role about what its executors may use. For the tables alone. */
#pragma once

#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"

extern const struct schema io_schema;

#define ROLE_LIMITS_ROWS                                                                                     \
        { "memoryHighMb", KEY_SCALED, AT(role_spec, limits.memory_high), RANGE(0, SPEC_MEMORY_MB_MAX),       \
          .scale = 1 << 20 },                                                                                \
                { "cpuWeight", KEY_U32, AT(role_spec, limits.cpu_weight),                                    \
                  RANGE(0, SPEC_WEIGHT_CGROUP_MAX) },                                                        \
                { "tasksMax",                                                                                \
                  KEY_U32,                                                                                   \
                  AT(role_spec, limits.tasks),                                                               \
                  RANGE(1, SPEC_TASKS_MAX),                                                                  \
                  .preset = SPEC_TASKS_PRESET,                                                               \
                  .zero_is_preset = true },                                                                  \
                { "io",                                                                                      \
                  KEY_LIST,                                                                                  \
                  LIST_AT(role_spec, limits.io, limits.n_io),                                                \
                  RANGE(0, SPEC_IO_MAX),                                                                     \
                  .message = &io_schema,                                                                     \
                  .item_size = sizeof(struct io_spec) },                                                     \
                { "openFiles", KEY_U32, AT(role_spec, limits.open_files), RANGE(0, SPEC_OPEN_FILES_MAX) },   \
                { "lockedMemoryMb", KEY_SCALED, AT(role_spec, limits.locked_memory),                         \
                  RANGE(0, SPEC_MEMORY_MB_MAX), .scale = 1 << 20 },                                          \
        {                                                                                                    \
                "delegate", KEY_BOOL, AT(role_spec, limits.delegate)                                         \
        }
