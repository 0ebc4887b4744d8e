/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of where executors may go. */
#include "masterd/spec/schema-placement.h"

#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/valid.h"

const char *const cpu_policy_names[_CPU_POLICY_MAX] = { "shared", "exclusive" };
const char *const numa_names[_NUMA_POLICY_MAX] = { "none", "prefer", "require" };
const char *const fit_names[_FIT_POLICY_MAX] = { "best", "worst" };
static const char *const topology_names[_TOPOLOGY_MODE_MAX] = { "anywhere", "pack", "require", "spread" };

static const struct key prefer_keys[] = {
        { "constraint", KEY_TEXT, AT(prefer_spec, constraint), RANGE(1, CONSTRAINT_MAX), .required = true,
          .hint = "what is preferred, such as \"gpu.model=H100\"", .valid = valid_constraint },
        { "weight", KEY_U32, AT(prefer_spec, weight), RANGE(1, SPEC_WEIGHTS_MAX), .preset = 1 },
};
const struct schema prefer_schema = SCHEMA(prefer_keys);

static const struct key gpu_keys[] = {
        { "model", KEY_TEXT, AT(role_spec, placement.gpu_model), RANGE(1, 63), .valid = valid_label_value },
        { "memoryMb", KEY_U32, AT(role_spec, placement.gpu_memory_mb), RANGE(0, SPEC_MEMORY_MB_MAX) },
        { "mig", KEY_TEXT, AT(role_spec, placement.gpu_mig), RANGE(1, 31), .valid = valid_label_value },
};
const struct schema gpu_schema = SCHEMA(gpu_keys);

bool role_has_gpu_want(const void *target) {
        const struct role_spec *r = target;
        return r->placement.gpu_model || r->placement.gpu_mig || r->placement.gpu_memory_mb > 0;
}

static const struct key topology_keys[] = {
        { "mode", KEY_ENUM, AT(job_spec, topology.mode), WORDS(topology_names), .required = true,
          .hint = "pack, require or spread" },
        { "level", KEY_TEXT, AT(job_spec, topology.level), RANGE(1, LABEL_MAX), .valid = valid_label_key },
};
const struct schema topology_schema = SCHEMA(topology_keys);

bool job_has_topology(const void *target) {
        const struct job_spec *s = target;
        return s->topology.mode != TOPOLOGY_ANYWHERE;
}
