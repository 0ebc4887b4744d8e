/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of how failures are met: the keys that a job and a role have in common, and their own. */
#include "lib/base/pattern.h"
#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/valid.h"

const char *const restart_scope_words[3] = { "executor", "role", "job" };

static const struct key exit_rule_keys[] = {
        { "codes", KEY_TEXT, AT(exit_rule_spec, codes), RANGE(1, SPEC_CODES_MAX), .valid = exit_codes_valid },
        { "output", KEY_TEXT, AT(exit_rule_spec, output), RANGE(1, PATTERN_MAX), .valid = pattern_valid },
        { "action", KEY_ENUM, AT(exit_rule_spec, action), WORDS(exit_action_words), .required = true,
          .hint = "restart, fail, success, ignore, blame, requeue or note" },
};
const struct schema exit_rule_schema = SCHEMA(exit_rule_keys);

static bool ready_has_started(const void *target) {
        return ((const struct ready_spec *)target)->started;
}

static bool ready_has_notify(const void *target) {
        return ((const struct ready_spec *)target)->notify;
}

static bool ready_has_port(const void *target) {
        return ((const struct ready_spec *)target)->port > 0;
}

static const struct key ready_keys[] = {
        { "started", KEY_BOOL, AT(ready_spec, started), .written = ready_has_started },
        { "tcp", KEY_INDEX, AT(ready_spec, port), RANGE(0, SPEC_PORTS_MAX - 1), .written = ready_has_port },
        { "notify", KEY_BOOL, AT(ready_spec, notify), .written = ready_has_notify },
        { "file", KEY_TEXT, AT(ready_spec, file), RANGE(1, SPEC_PATH_MAX), .valid = valid_output },
        { "timeout", KEY_DURATION, AT(ready_spec, timeout_usec), RANGE(1000, DURATION_MAX),
          .preset = UINT64_C(600) * 1000000 },
};
const struct schema ready_schema = SCHEMA(ready_keys);

bool role_has_watchdog(const void *target) {
        return ((const struct role_spec *)target)->failure.watchdog_usec > 0;
}

static const struct key elastic_keys[] = {
        { "extendMemRatio", KEY_MILLI, AT(elastic_spec, ratio_milli), RANGE(0, 100) },
        { "extendMemSize", KEY_SCALED, AT(elastic_spec, size), RANGE(0, SPEC_MEMORY_MB_MAX),
          .scale = 1 << 20 },
        { "minMemSize", KEY_SCALED, AT(elastic_spec, min), RANGE(0, SPEC_MEMORY_MB_MAX), .scale = 1 << 20 },
        { "maxMemSize", KEY_SCALED, AT(elastic_spec, max), RANGE(0, SPEC_MEMORY_MB_MAX), .scale = 1 << 20 },
};
const struct schema elastic_schema = SCHEMA(elastic_keys);

static const struct key blacklist_keys[] = {
        { "enabled", KEY_BOOL, AT(blacklist_spec, enabled) },
        WARNED("maxFailedTaskPerContainer", KEY_NUMBER,
               "has no effect: what a task fails counts for inputManager.maxTaskAttempts, not against an "
               "executor; remove it"),
        { "maxFailedContainerPerNode", KEY_U32, AT(blacklist_spec, max_failed), RANGE(1, 1000), .preset = 2,
          .zero_is_preset = true },
        { "blacklistTimeoutMillis", KEY_SCALED, AT(blacklist_spec, timeout_usec),
          RANGE(1, UINT64_C(3650) * 86400000), .scale = 1000, .preset = UINT64_C(3600) * 1000000,
          .zero_is_preset = true },
        WARNED("maxBlacklistContainer", KEY_NUMBER,
               "has no effect: hosts are kept off, not executors; see maxBlacklistNode, and remove it"),
        { "maxBlacklistNode", KEY_U32, AT(blacklist_spec, max_nodes), RANGE(1, 1000), .preset = 20,
          .zero_is_preset = true },
};
const struct schema blacklist_schema = SCHEMA(blacklist_keys);
