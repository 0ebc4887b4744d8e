/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a job: upstream's keys under upstream's names, and ours. docs/man/primus-job.5.scd describes
 * the same keys; tests/unit/masterd/spec/test-schema.c compares the two. */
#include "masterd/spec/array.h"
#include "masterd/spec/names.h"
#include "masterd/spec/schema-health.h"
#include "masterd/spec/schema-limits.h"
#include "masterd/spec/schema-placement.h"
#include "masterd/spec/schema-rows.h"
#include "masterd/spec/schema-search.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/valid.h"

#define JVM "has no effect: there is no JVM beside the command; remove it"
#define NO_MASTER "has no effect: a job has no application master of its own; remove it"

/* ---- failover ---- */
static const struct key common_failover_keys[] = {
        { "restartType", KEY_ENUM, AT(failover_spec, restart_type), WORDS(restart_type_names) },
        { "maxFailureTimes", KEY_U32, AT(failover_spec, max_failure_times), RANGE(1, SPEC_FAILURES_MAX),
          .preset = 1, .zero_is_preset = true },
        { "maxFailurePolicy", KEY_ENUM, AT(failover_spec, max_failure_policy), WORDS(failure_policy_names) },
        { "maxGlobalRoleFailureTimes", KEY_U32, AT(failover_spec, max_role_failures),
          RANGE(0, SPEC_FAILURES_MAX) },
};
static const struct schema common_failover_schema = SCHEMA(common_failover_keys);

/* Some examples write commonFailoverPolicy.commonFailover{}, which is one level too many. */
static const struct key common_policy_keys[] = {
        { "restartType", KEY_ENUM, AT(failover_spec, restart_type), WORDS(restart_type_names) },
        { "maxFailureTimes", KEY_U32, AT(failover_spec, max_failure_times), RANGE(1, SPEC_FAILURES_MAX),
          .preset = 1, .zero_is_preset = true },
        { "maxFailurePolicy", KEY_ENUM, AT(failover_spec, max_failure_policy), WORDS(failure_policy_names) },
        { "maxGlobalRoleFailureTimes", KEY_U32, AT(failover_spec, max_role_failures),
          RANGE(0, SPEC_FAILURES_MAX) },
        { "commonFailover", KEY_MESSAGE, STATUS_SLIP,
          "taken as if its keys stood in commonFailoverPolicy, which is where they belong", .offset = 0,
          .message = &common_failover_schema },
};
static const struct schema common_policy_schema = SCHEMA(common_policy_keys);

static const struct key hybrid_policy_keys[] = {
        { "commonFailover", KEY_MESSAGE, .offset = 0, .message = &common_failover_schema },
};
static const struct schema hybrid_policy_schema = SCHEMA(hybrid_policy_keys);

static const struct key failover_keys[] = {
        { "commonFailoverPolicy", KEY_MESSAGE, .offset = 0, .message = &common_policy_schema,
          CHOOSES(1, failover_spec, form, FAILOVER_COMMON) },
        { "hybridDeploymentFailoverPolicy", KEY_MESSAGE, .offset = 0, .message = &hybrid_policy_schema,
          CHOOSES(1, failover_spec, form, FAILOVER_HYBRID) },
};
static const struct schema failover_schema = SCHEMA(failover_keys);

/* ---- role ---- */
static bool role_is_elastic(const void *target) {
        const struct role_spec *r = target;
        return r->failure.elastic.max > 0;
}

static bool role_has_scope(const void *target) {
        const struct role_spec *r = target;
        return r->failure.restart_scope < _RESTART_SCOPE_MAX;
}

static const struct key schedule_strategy_keys[] = {
        { "maxReplicasPerNode", KEY_U32, AT(role_spec, max_per_node), RANGE(0, SPEC_EXECUTORS_MAX),
          .group = 1 },
        { "replicasPerNode", KEY_U32, AT(role_spec, per_node), RANGE(0, SPEC_EXECUTORS_MAX), .group = 1 },
        { "roleCategory", KEY_ENUM, AT(role_spec, category), WORDS(role_category_names) },
        { "executorDelayStartSeconds", KEY_DURATION, AT(role_spec, failure.delay_usec),
          RANGE(0, UINT64_C(86400) * 1000000) },
        { "elasticResource", KEY_MESSAGE, AT(role_spec, failure.elastic), .message = &elastic_schema,
          .written = role_is_elastic },
};
static const struct schema schedule_strategy_schema = SCHEMA(schedule_strategy_keys);

static bool role_uses_argv(const void *target) {
        const struct role_spec *r = target;
        return !r->command && r->actors == 0;
}

static bool role_has_placement(const void *target) {
        const struct role_spec *r = target;
        return r->max_per_node > 0 || r->per_node > 0 || r->category != ROLE_CATEGORY_UNKNOWN ||
               r->failure.delay_usec > 0 || role_is_elastic(r);
}

static const struct key role_keys[] = {
        { "roleName", KEY_TEXT, AT(role_spec, name), RANGE(1, 32), .required = true, .valid = valid_role_name,
          .group = 6 },
        { "num", KEY_U32, AT(role_spec, num), RANGE(1, SPEC_EXECUTORS_MAX), .preset = 1, .group = 5 },
        { "minNum", KEY_U32, AT(role_spec, min_num), RANGE(1, SPEC_EXECUTORS_MAX), .preset = 0,
          .zero_is_preset = true },
        { "vcores", KEY_MILLI, AT(role_spec, cpu_milli), RANGE(0, SPEC_VCORES_MAX), .preset = 1000,
          .group = 2 },
        { "memoryMb", KEY_SCALED, AT(role_spec, memory), RANGE(0, SPEC_MEMORY_MB_MAX), .scale = 1 << 20,
          .preset = 1 << 30, .group = 3 },
        { "gpuNum", KEY_U32, AT(role_spec, gpus), RANGE(0, SPEC_GPUS_MAX), .group = 4 },
        { "portNum", KEY_U32, AT(role_spec, ports), RANGE(1, SPEC_PORTS_MAX), .preset = 1,
          .zero_is_preset = true, .group = 9 },
        { "command", KEY_TEXT, AT(role_spec, command), RANGE(1, SPEC_STRING_MAX), .group = 1 },
        { "argv", KEY_TEXTS, LIST_AT(role_spec, argv, n_argv), RANGE(1, SPEC_ARGV_MAX), .group = 1,
          .written = role_uses_argv },
        { "actors", KEY_U32, AT(role_spec, actors), RANGE(0, SPEC_ACTORS_MAX), .group = 1 },
        { "env", KEY_MAP, LIST_AT(role_spec, env, n_env), RANGE(0, SPEC_ENV_MAX), .valid = valid_env_name },
        { "nodes", KEY_NODES, LIST_AT(role_spec, nodes, n_nodes), RANGE(0, SPEC_NODES_MAX) },
        { "inputPolicy", KEY_ENUM, AT(role_spec, input_policy), WORDS(input_policy_names) },
        { "successPercent", KEY_U32, AT(role_spec, success_percent), RANGE(0, 100), .preset = 100 },
        { "failover", KEY_MESSAGE, AT(role_spec, failover), .message = &failover_schema, .group = 7 },
        { "restartScope", KEY_ENUM, AT(role_spec, failure.restart_scope), WORDS(restart_scope_words),
          .preset = _RESTART_SCOPE_MAX, .written = role_has_scope },
        { "exitCodes", KEY_LIST, LIST_AT(role_spec, failure.exit_rules, failure.n_exit_rules),
          RANGE(0, SPEC_EXIT_RULES_MAX), .message = &exit_rule_schema,
          .item_size = sizeof(struct exit_rule_spec) },
        { "failPercent", KEY_U32, AT(role_spec, failure.fail_percent), RANGE(0, 100) },
        { "ready", KEY_MESSAGE, AT(role_spec, failure.ready), .message = &ready_schema },
        { "watchdog", KEY_DURATION, AT(role_spec, failure.watchdog_usec),
          RANGE(UINT64_C(1) * 1000000, UINT64_C(86400) * 1000000), .written = role_has_watchdog },
        { "scheduleStrategy", KEY_MESSAGE, .offset = 0, .message = &schedule_strategy_schema,
          .written = role_has_placement, .group = 10 },
        { "timeLimit", KEY_DURATION, AT(role_spec, time_limit_usec), RANGE(1, DURATION_MAX),
          .preset = UINT64_MAX, .group = 8 },
        SHORT("name", KEY_TEXT, 6, AT(role_spec, name), RANGE(1, 32), .valid = valid_role_name),
        SHORT("hosts", KEY_U32, 5, AT(role_spec, hosts), RANGE(1, SPEC_NODES_MAX)),
        SHORT("perHost", KEY_U32, 10, AT(role_spec, per_node), RANGE(1, SPEC_EXECUTORS_MAX)),
        SHORT("cpus", KEY_MILLI, 2, AT(role_spec, cpu_milli), RANGE(0, SPEC_VCORES_MAX)),
        SHORT("memory", KEY_SIZE, 3, AT(role_spec, memory),
              RANGE(UINT64_C(1) << 20, (uint64_t)SPEC_MEMORY_MB_MAX << 20)),
        SHORT("gpus", KEY_U32, 4, AT(role_spec, gpus), RANGE(0, SPEC_GPUS_MAX)),
        SHORT("ports", KEY_U32, 9, AT(role_spec, ports), RANGE(1, SPEC_PORTS_MAX)),
        SHORT("retries", KEY_U32, 7, AT(role_spec, failover.max_failure_times),
              RANGE(0, SPEC_FAILURES_MAX - 1), .plus = 1),
        SHORT("time", KEY_DURATION, 8, AT(role_spec, time_limit_usec), RANGE(1, DURATION_MAX),
              .preset = UINT64_MAX),
        ROLE_PLACEMENT_ROWS,
        ROLE_HEALTH_ROW,
        ROLE_LIMITS_ROWS,
        WARNED("jvmMemoryMb", KEY_NUMBER, JVM " (memoryMb is all the command's)"),
        WARNED("javaOpts", KEY_TEXT, JVM),
        UNBUILT("useTfDataService", KEY_BOOL,
                "a tf.data service beside the executors is not built yet; set it to false"),
        WARNED("pluginConfig", KEY_MESSAGE, "has no effect: plugins are Java classes; remove it",
               .message = &plugin_config_schema),
        WARNED("roleScheduler", KEY_MESSAGE, "has no effect: it is for YARN; use scheduler.schedulePolicy",
               .message = &yarn_scheduler_schema),
        WARNED("attribute", KEY_MESSAGE, DEAD, .message = &attribute_schema),
        WARNED("gpuSoftConstraint", KEY_BOOL, DEAD),
        WARNED("localRestartTimes", KEY_NUMBER, DEAD " (failover says how often an executor is restarted)"),
        WARNED("isEvaluation", KEY_BOOL, DEAD " (successPercent: 0 makes a role optional)"),
};
const struct schema role_schema = SCHEMA(role_keys);

/* ---- scheduler ---- */
static const struct key timeout_policy_keys[] = {
        CHECKED("roleName", KEY_TEXT, .max = SPEC_STRING_MAX),
        CHECKED("schedulePercent", KEY_NUMBER),
        CHECKED("timeoutSecond", KEY_NUMBER),
};
static const struct schema timeout_policy_schema = SCHEMA(timeout_policy_keys);
static const struct key gang_policy_keys[] = {
        WARNED("timeoutPolicy", KEY_MESSAGE, DEAD, .message = &timeout_policy_schema),
};
static const struct schema gang_policy_schema = SCHEMA(gang_policy_keys);
static const struct key dynamic_policy_keys[] = {
        WARNED("timeoutPolicy", KEY_LIST, DEAD, .max = SPEC_ROLES_MAX, .message = &timeout_policy_schema),
};
static const struct schema dynamic_policy_schema = SCHEMA(dynamic_policy_keys);

static const struct key role_policy_keys[] = {
        { "roleName", KEY_TEXT, AT(order_spec, role), RANGE(1, 32), .required = true },
        { "scheduleType", KEY_ENUM, AT(order_spec, schedule_type), WORDS(schedule_type_names) },
};
static const struct schema role_policy_schema = SCHEMA(role_policy_keys);
static const struct key order_policy_keys[] = {
        { "rolePolicy", KEY_LIST, LIST_AT(job_spec, order, n_order), RANGE(1, SPEC_ROLES_MAX),
          .required = true, .message = &role_policy_schema, .item_size = sizeof(struct order_spec) },
};
static const struct schema order_policy_schema = SCHEMA(order_policy_keys);

static const struct key schedule_policy_keys[] = {
        { "gangPolicy", KEY_MESSAGE, .offset = 0, .message = &gang_policy_schema,
          CHOOSES(1, job_spec, schedule_policy, SCHEDULE_POLICY_GANG) },
        { "dynamicPolicy", KEY_MESSAGE, .offset = 0, .message = &dynamic_policy_schema,
          CHOOSES(1, job_spec, schedule_policy, SCHEDULE_POLICY_DYNAMIC) },
        { "orderPolicy", KEY_MESSAGE, .offset = 0, .message = &order_policy_schema,
          CHOOSES(1, job_spec, schedule_policy, SCHEDULE_POLICY_ORDER) },
};
static const struct schema schedule_policy_schema = SCHEMA(schedule_policy_keys);

static const struct key scheduler_keys[] = {
        { "schedulePolicy", KEY_MESSAGE, .offset = 0, .message = &schedule_policy_schema },
        UNBUILT("command", KEY_TEXT,
                "a master program in the place of roles is not supported; make it a role and use "
                "orderPolicy"),
        WARNED("vcores", KEY_NUMBER, NO_MASTER),
        WARNED("memoryMb", KEY_NUMBER, NO_MASTER),
        WARNED("jvmMemoryMb", KEY_NUMBER, NO_MASTER),
        WARNED("gpuNum", KEY_NUMBER, NO_MASTER),
        WARNED("javaOpts", KEY_TEXT, NO_MASTER),
        WARNED("env", KEY_MAP, NO_MASTER " (the job's env is for all executors)"),
        WARNED("registerRetryTimes", KEY_NUMBER, "has no effect: executors do not register; remove it"),
        WARNED("heartbeatIntervalMs", KEY_NUMBER,
               "has no effect: the cluster watches its hosts; see onPartition"),
        WARNED("maxMissedHeartbeat", KEY_NUMBER,
               "has no effect: the cluster watches its hosts; see onPartition"),
        WARNED("maxAllocationNumEachRound", KEY_NUMBER, "has no effect: it is for YARN; remove it"),
        WARNED("enableUpdateResource", KEY_BOOL, "has no effect: it is for YARN; remove it"),
        WARNED("networkConfig", KEY_MESSAGE, "has no effect: executors use their hosts' addresses; remove it",
               .message = &network_config_schema),
        WARNED("attribute", KEY_MESSAGE, DEAD, .message = &attribute_schema),
        WARNED("yarnScheduler", KEY_MESSAGE, DEAD, .message = &yarn_scheduler_schema),
        WARNED("amScheduler", KEY_MESSAGE, DEAD, .message = &yarn_scheduler_schema),
};
static const struct schema scheduler_schema = SCHEMA(scheduler_keys);

/* ---- job ---- */
static const struct key progress_manager_keys[] = {
        CHECKED("type", KEY_ENUM, WORDS(progress_manager_names)),
        CHECKED("rewindAllowed", KEY_BOOL),
};
static const struct schema progress_manager_schema = SCHEMA(progress_manager_keys);

static const struct key backoff_keys[] = {
        { "initial", KEY_DURATION, AT(backoff_spec, initial_usec), RANGE(0, DURATION_MAX),
          .preset = 1000000 },
        { "max", KEY_DURATION, AT(backoff_spec, max_usec), RANGE(0, DURATION_MAX), .preset = 60000000 },
};
static const struct schema backoff_schema = SCHEMA(backoff_keys);

static const struct key checkpoints_keys[] = {
        { "best", KEY_U32, AT(checkpoints_spec, best), RANGE(0, 1000000) },
        { "trialBest", KEY_U32, AT(checkpoints_spec, trial_best), RANGE(0, 1000000) },
        { "trialLatest", KEY_U32, AT(checkpoints_spec, trial_latest), RANGE(0, 1000000) },
};
static const struct schema checkpoints_schema = SCHEMA(checkpoints_keys);

static bool has_checkpoints(const void *target) {
        return checkpoints_spec_given(&((const struct job_spec *)target)->checkpoints);
}

static bool has_priority(const void *target) {
        const struct job_spec *s = target;
        return s->waits.priority != SPEC_PRIORITY_NONE;
}

static bool has_visible(const void *target) {
        const struct job_spec *s = target;
        return s->visible < _VISIBLE_MAX;
}

static const struct key job_keys[] = {
        { "name", KEY_TEXT, AT(job_spec, name), RANGE(1, SPEC_NAME_MAX), .preset_text = "job",
          .valid = valid_label },
        { "queue", KEY_TEXT, AT(job_spec, queue), RANGE(1, SPEC_NAME_MAX), .preset_text = "default",
          .valid = valid_queue },
        { "priority", KEY_I32, AT(job_spec, waits.priority),
          RANGE((uint64_t)-SPEC_PRIORITY_MAX, SPEC_PRIORITY_MAX), .preset = (uint32_t)SPEC_PRIORITY_NONE,
          .written = has_priority },
        { "preemptible", KEY_BOOL, AT(job_spec, waits.preemptible) },
        { "requeue", KEY_BOOL, AT(job_spec, waits.requeue) },
        { "waitForHosts", KEY_BOOL, AT(job_spec, waits.for_hosts) },
        { "startWithin", KEY_DURATION, AT(job_spec, waits.start_within_usec), RANGE(1, DURATION_MAX),
          .preset = UINT64_MAX },
        { "visible", KEY_ENUM, AT(job_spec, visible), WORDS(visible_names), .preset = _VISIBLE_MAX,
          .written = has_visible },
        { "signal", KEY_TEXT, AT(job_spec, waits.signal), RANGE(1, 64), .valid = valid_signal },
        { "files", KEY_TEXTS, LIST_AT(job_spec, files, n_files), RANGE(0, SPEC_FILES_MAX),
          .valid = valid_file },
        { "env", KEY_MAP, LIST_AT(job_spec, env, n_env), RANGE(0, SPEC_ENV_MAX), .valid = valid_env_name },
        { "maxAppAttempts", KEY_U32, AT(job_spec, max_app_attempts), RANGE(1, 1000), .preset = 1,
          .zero_is_preset = true },
        { "gracefulShutdownTimeoutMin", KEY_SCALED, AT(job_spec, stop_grace_usec), RANGE(1, 7 * 1440),
          .scale = 60000000, .preset = UINT64_C(10000000), .zero_is_preset = true, .unwritten = true,
          .group = 1 },
        { "stopGrace", KEY_DURATION, AT(job_spec, stop_grace_usec), RANGE(0, UINT64_C(7) * 86400 * 1000000),
          .preset = UINT64_C(10000000), .group = 1 },
        { "scheduler", KEY_MESSAGE, .offset = 0, .message = &scheduler_schema },
        { "role", KEY_LIST, LIST_AT(job_spec, roles, n_roles), RANGE(1, SPEC_ROLES_MAX), .required = true,
          .hint = "say what to run with \"command\", or give at least one role, such as "
                  "{\"roleName\": \"worker\", \"command\": \"...\"}",
          .message = &role_schema, .item_size = sizeof(struct role_spec) },
        { "inputManager", KEY_MESSAGE, .offset = 0, .message = &input_manager_schema,
          .written = job_has_data },
        { "input", KEY_MESSAGE, .offset = 0, .message = &input_extension_schema, .written = job_has_data },
        { "rendezvous", KEY_MESSAGE, AT(job_spec, rendezvous), .message = &rendezvous_schema },
        { "checkpoints", KEY_MESSAGE, AT(job_spec, checkpoints), .message = &checkpoints_schema,
          .written = has_checkpoints },
        { "stackSignal", KEY_TEXT, AT(job_spec, stack_signal), RANGE(1, 16), .valid = valid_stack_signal },
        { "cwd", KEY_TEXT, AT(job_spec, cwd), RANGE(1, SPEC_PATH_MAX), .valid = valid_directory },
        { "output", KEY_TEXT, AT(job_spec, output), RANGE(1, SPEC_PATH_MAX), .valid = valid_output },
        { "nodes", KEY_NODES, LIST_AT(job_spec, nodes, n_nodes), RANGE(0, SPEC_NODES_MAX) },
        { "onPartition", KEY_ENUM, AT(job_spec, on_partition), WORDS(on_partition_names) },
        { "gpuVisibility", KEY_ENUM, AT(job_spec, gpu_visibility), WORDS(gpu_visibility_names) },
        { "newPrivileges", KEY_BOOL, AT(job_spec, new_privileges) },
        { "timeLimit", KEY_DURATION, AT(job_spec, time_limit_usec), RANGE(1, DURATION_MAX),
          .preset = UINT64_MAX, .group = 2 },
        SHORT("time", KEY_DURATION, 2, AT(job_spec, time_limit_usec), RANGE(1, DURATION_MAX),
              .preset = UINT64_MAX),
        { "failureWindow", KEY_DURATION, AT(job_spec, failure_window_usec), RANGE(1, DURATION_MAX),
          .preset = UINT64_MAX },
        { "backoff", KEY_MESSAGE, AT(job_spec, backoff), .message = &backoff_schema },
        JOB_PLACEMENT_ROWS,
        JOB_HEALTH_ROW,
        { "restartScope", KEY_ENUM, AT(job_spec, failure.restart_scope), WORDS(restart_scope_words) },
        { "exitCodes", KEY_LIST, LIST_AT(job_spec, failure.exit_rules, failure.n_exit_rules),
          RANGE(0, SPEC_EXIT_RULES_MAX), .message = &exit_rule_schema,
          .item_size = sizeof(struct exit_rule_spec) },
        { "maxGlobalRoleFailureTimes", KEY_U32, AT(job_spec, failure.max_role_failures),
          RANGE(0, SPEC_FAILURES_MAX) },
        { "blacklistConfig", KEY_MESSAGE, AT(job_spec, failure.blacklist), .message = &blacklist_schema },
        { "after", KEY_TEXTS, LIST_AT(job_spec, array.after, array.n_after), RANGE(0, AFTER_MAX),
          .valid = valid_after },
        { "begin", KEY_TEXT, AT(job_spec, array.begin), RANGE(1, 64), .valid = valid_begin },
        JOB_SEARCH_ROW,
        { "array", KEY_TEXT, AT(job_spec, array.array), RANGE(1, ARRAY_TEXT_MAX), .valid = valid_array },
        WARNED("progressManagerConf", KEY_MESSAGE,
               "has no effect: a job's progress is that of its data, and shown as it is; remove it",
               .message = &progress_manager_schema),
        SLIP("progressManagerType", KEY_ENUM,
             "has no effect: upstream's key is progressManagerConf.type; write that, or nothing (progress "
             "follows the data)",
             WORDS(progress_manager_names)),
        SLIP("portRange", KEY_MESSAGE,
             "has no effect: upstream's key is runtimeConf.yarnCommunityConf.portRange; ports come from the "
             "hosts' range",
             .message = &port_range_schema),
        SLIP("yarnConf", KEY_MAP,
             "has no effect: upstream's key is runtimeConf.yarnCommunityConf.hadoopConf; remove it"),
        WARNED("stagingDir", KEY_TEXT, "has no effect: the cluster keeps its own state; remove it"),
        WARNED("historyHdfsBase", KEY_TEXT, "has no effect: the cluster keeps its own history; remove it"),
        WARNED("runtimeConf", KEY_MESSAGE,
               "has no effect: it is for Kubernetes, YARN, Hadoop and the JVM; remove it",
               .message = &runtime_schema),
        WARNED("snapshotCopyThreadsCnt", KEY_NUMBER, "has no effect; remove it"),
        WARNED("sleepBeforeExitMs", KEY_NUMBER,
               "has no effect: what a job left stays readable after its end; remove it"),
        WARNED("setupPortRetryMaxTimes", KEY_NUMBER,
               "has no effect: ports are granted, not tried; see role.portNum"),
        WARNED("amAllocationTimeoutMin", KEY_NUMBER, DEAD),
        WARNED("apiServerConf", KEY_MESSAGE, "has no effect: the cluster keeps its own state; remove it",
               .message = &api_server_schema),
        WARNED("eventLogConfig", KEY_MESSAGE, "has no effect: see \"primusctl events\"; remove it",
               .message = &event_log_schema),
        WARNED("statusEventLogConf", KEY_MESSAGE, DEAD, .message = &status_event_log_schema),
        WARNED("timelineConfig", KEY_MESSAGE, DEAD, .message = &timeline_schema),
};
const struct schema job_schema = SCHEMA(job_keys);
