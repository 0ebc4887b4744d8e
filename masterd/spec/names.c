/* SPDX-License-Identifier: Apache-2.0 */
/* One table of words per enum, and the lookups that spec.h offers. */
#include "masterd/spec/names.h"

#include <string.h>

const char *const schedule_type_names[_SCHEDULE_TYPE_MAX] = {
        [SCHEDULE_GANG] = "GANG",
        [SCHEDULE_DYNAMIC] = "DYNAMIC",
};
const char *const input_policy_names[_INPUT_POLICY_MAX] = {
        [INPUT_ENV] = "ENV",
        [INPUT_STREAMING] = "STREAMING",
};
const char *const restart_type_names[_RESTART_TYPE_MAX] = {
        [RESTART_ON_FAILURE] = "ON_FAILURE",
        [RESTART_NEVER] = "NEVER",
        [RESTART_ALWAYS] = "ALWAYS",
};
const char *const failure_policy_names[_FAILURE_POLICY_MAX] = {
        [FAILURE_FAIL_APP] = "FAIL_APP",
        [FAILURE_FAIL_ATTEMPT] = "FAIL_ATTEMPT",
        [FAILURE_NONE] = "NONE",
};
const char *const role_category_names[_ROLE_CATEGORY_MAX] = {
        [ROLE_CATEGORY_UNKNOWN] = "UNKNOWN",
        [ROLE_CATEGORY_PS] = "PS",
        [ROLE_CATEGORY_WORKER] = "WORKER",
};
const char *const lockstep_names[_LOCKSTEP_MAX] = {
        [LOCKSTEP_OFF] = "off",
        [LOCKSTEP_DROP] = "drop",
        [LOCKSTEP_PAD] = "pad",
};
const char *const on_partition_names[_SPEC_PARTITION_MAX] = {
        [SPEC_PARTITION_REPLACE] = "replace",
        [SPEC_PARTITION_STOP] = "stop",
        [SPEC_PARTITION_WAIT] = "wait",
};
const char *const gpu_visibility_names[_GPU_VISIBILITY_MAX] = {
        [GPU_VISIBILITY_JOB] = "job",
        [GPU_VISIBILITY_EXECUTOR] = "executor",
};
const char *const visible_names[_VISIBLE_MAX] = {
        [VISIBLE_OWNER] = "owner",
        [VISIBLE_GROUP] = "group",
        [VISIBLE_POOL] = "pool",
        [VISIBLE_ALL] = "all",
};
const char *const progress_manager_names[3] = { "PM_ROLE", "PM_FILE", "PM_KAFKA" };
static const char *const schedule_policy_names[_SCHEDULE_POLICY_MAX] = {
        [SCHEDULE_POLICY_GANG] = "gang",
        [SCHEDULE_POLICY_DYNAMIC] = "dynamic",
        [SCHEDULE_POLICY_ORDER] = "order",
};

#define DEFINE_TO_STRING(function, type, table)                                                              \
        const char *function(enum type v) {                                                                  \
                return (size_t)v < ELEMENTSOF(table) ? table[v] : NULL;                                      \
        }

DEFINE_TO_STRING(schedule_type_to_string, schedule_type, schedule_type_names)
DEFINE_TO_STRING(schedule_policy_to_string, schedule_policy, schedule_policy_names)
DEFINE_TO_STRING(input_policy_to_string, input_policy, input_policy_names)
DEFINE_TO_STRING(lockstep_to_string, lockstep, lockstep_names)
DEFINE_TO_STRING(restart_type_to_string, restart_type, restart_type_names)
DEFINE_TO_STRING(failure_policy_to_string, failure_policy, failure_policy_names)
DEFINE_TO_STRING(role_category_to_string, role_category, role_category_names)
DEFINE_TO_STRING(spec_on_partition_to_string, spec_on_partition, on_partition_names)
DEFINE_TO_STRING(gpu_visibility_to_string, gpu_visibility, gpu_visibility_names)
DEFINE_TO_STRING(visible_to_string, visible, visible_names)

enum visible visible_from_string(const char *s) {
        for (enum visible v = 0; v < _VISIBLE_MAX; v++)
                if (strcmp(s, visible_names[v]) == 0)
                        return v;
        return _VISIBLE_INVALID;
}
