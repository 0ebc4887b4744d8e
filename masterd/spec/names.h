/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the configuration's enums, indexed by the C enum (spec.h). protobuf's numbers of upstream's
 * enums are the same as the C ones. */
#pragma once

#include "masterd/spec/spec.h"

extern const char *const schedule_type_names[_SCHEDULE_TYPE_MAX];
extern const char *const input_policy_names[_INPUT_POLICY_MAX];
extern const char *const lockstep_names[_LOCKSTEP_MAX];
extern const char *const restart_type_names[_RESTART_TYPE_MAX];
extern const char *const failure_policy_names[_FAILURE_POLICY_MAX];
extern const char *const role_category_names[_ROLE_CATEGORY_MAX];
extern const char *const on_partition_names[_SPEC_PARTITION_MAX];
extern const char *const gpu_visibility_names[_GPU_VISIBILITY_MAX];
extern const char *const visible_names[_VISIBLE_MAX];
extern const char *const progress_manager_names[3];
