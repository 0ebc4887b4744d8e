/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of upstream's schema that only its platforms use (YARN, Kubernetes, Hadoop, the JVM), or that are
 * not built here yet. They are checked, so that a slip of the pen is found, and then have no target. */
#include "masterd/spec/schema.h"

#include "lib/base/cleanup.h"

#define SCHEMA(table)                                                                                        \
        { .keys = table, .n = ELEMENTSOF(table) }
#define TAKES(n, t, ...)                                                                                     \
        { .name = (n), .type = (t), .status = STATUS_QUIET, .offset = NO_TARGET, __VA_ARGS__ }
#define TEXT(n) TAKES(n, KEY_TEXT, )
#define TEXTS(n) TAKES(n, KEY_TEXTS, )
#define NUMBER(n) TAKES(n, KEY_NUMBER, )
#define BOOL(n) TAKES(n, KEY_BOOL, )
#define MAP(n) TAKES(n, KEY_MAP, )
#define MESSAGE(n, m) TAKES(n, KEY_MESSAGE, .message = &(m))
#define LIST(n, m) TAKES(n, KEY_LIST, .message = &(m))
#define WORD(n, table) TAKES(n, KEY_ENUM, .names = (table), .max = ELEMENTSOF(table) - 1)

const struct schema empty_schema = { .keys = NULL, .n = 0 };

/* ---- runtimeConf ---- */
static const struct key ui_keys[] = {
        NUMBER("webUiPort"),
        TEXT("trackingUrlFormat"),
        TEXT("containerLogUrlFormat"),
        TEXT("historyTrackingUrlFormat"),
        TEXT("historyContainerLogUrlFormat"),
};
static const struct schema ui_schema = SCHEMA(ui_keys);

static const struct key container_keys[] = {
        TEXT("imageName"), TEXT("imagePullPolicy"), TEXTS("command"), TEXTS("args"), MAP("mounts"),
};
static const struct schema container_schema = SCHEMA(container_keys);

static const struct key pod_keys[] = {
        MAP("labels"),
        MAP("annotations"),
        MESSAGE("initContainerConf", container_schema),
        MESSAGE("mainContainerConf", container_schema),
};
static const struct schema pod_schema = SCHEMA(pod_keys);

static const struct key kubernetes_keys[] = {
        TEXT("applicationIdOverride"),
        TEXT("namespace"),
        TEXT("serviceAccount"),
        TEXT("schedulerName"),
        TEXT("user"),
        TEXTS("kubernetesApiProtocols"),
        NUMBER("sleepSecondsBeforePodExit"),
        MESSAGE("driverPodConf", pod_schema),
        MESSAGE("executorPodConf", pod_schema),
        MESSAGE("primusUiConf", ui_schema),
};
static const struct schema kubernetes_schema = SCHEMA(kubernetes_keys);

static const struct key port_range_keys[] = { NUMBER("base"), NUMBER("size") };
const struct schema port_range_schema = SCHEMA(port_range_keys);

static const struct key yarn_keys[] = {
        MAP("hadoopConf"),
        NUMBER("priority"),
        TEXTS("applicationTags"),
        MESSAGE("portRange", port_range_schema),
        MESSAGE("primusUiConf", ui_schema),
};
static const struct schema yarn_schema = SCHEMA(yarn_keys);

static const struct key hdfs_keys[] = { MAP("hadoopConf") };
static const struct schema hdfs_schema = SCHEMA(hdfs_keys);
static const struct key logger_keys[] = { BOOL("redirectChildProcessLogs") };
static const struct schema logger_schema = SCHEMA(logger_keys);
static const struct key push_gateway_keys[] = { TEXT("host"), NUMBER("port") };
static const struct schema push_gateway_schema = SCHEMA(push_gateway_keys);

static const struct key runtime_keys[] = {
        MESSAGE("kubernetesNativeConf", kubernetes_schema),
        MESSAGE("yarnCommunityConf", yarn_schema),
        MESSAGE("hdfsConf", hdfs_schema),
        MESSAGE("loggerConf", logger_schema),
        MESSAGE("prometheusPushGatewayConf", push_gateway_schema),
};
const struct schema runtime_schema = SCHEMA(runtime_keys);

/* ---- YARN's scheduler ---- */
static const char *const yarn_resource_type[] = { "NR_NORMAL", "NR_GUARANTEED", "NR_BEST_EFFORT" };
static const char *const yarn_scheduling_type[] = { "ASYNC", "SYNC" };
static const char *const yarn_constraint_type[] = { "SOFT_CONSTRAINT", "HARD_CONSTRAINT" };
static const char *const yarn_global_view[] = { "FALSE", "TRUE" };
static const struct key yarn_gang_keys[] = { NUMBER("maxRetryNum"), NUMBER("maxWaitSeconds") };
static const struct schema yarn_gang_schema = SCHEMA(yarn_gang_keys);
static const struct key yarn_batch_keys[] = { BOOL("setResourceTypeByHardConstraint") };
static const struct schema yarn_batch_schema = SCHEMA(yarn_batch_keys);

static const struct key yarn_scheduler_keys[] = {
        MESSAGE("fairScheduler", empty_schema),        MESSAGE("gangScheduler", yarn_gang_schema),
        MESSAGE("batchScheduler", yarn_batch_schema),  WORD("resourceType", yarn_resource_type),
        WORD("schedulingType", yarn_scheduling_type),  WORD("globalConstraintType", yarn_constraint_type),
        WORD("needGlobalNodesView", yarn_global_view),
};
const struct schema yarn_scheduler_schema = SCHEMA(yarn_scheduler_keys);

/* ---- the rest ---- */
static const struct key attribute_keys[] = { BOOL("hasGpu"), TEXT("gpuName"), TEXT("pod"), MAP("pairs") };
const struct schema attribute_schema = SCHEMA(attribute_keys);

static const struct key plugin_keys[] = { TEXT("name"), TEXT("version"), MAP("parameter") };
static const struct schema plugin_schema = SCHEMA(plugin_keys);
static const struct key plugin_config_keys[] = {
        LIST("basicPlugins", plugin_schema),
        LIST("extendPlugins", plugin_schema),
        LIST("disabledPlugins", plugin_schema),
};
const struct schema plugin_config_schema = SCHEMA(plugin_config_keys);

static const char *const network_type[] = { "DEFAULT", "OVERLAY" };
static const struct key network_keys[] = { WORD("networkType", network_type),
                                           BOOL("keepIpPortUnderOverlay") };
const struct schema network_config_schema = SCHEMA(network_keys);

static const struct key hdfs_sink_keys[] = { TEXT("dir") };
static const struct schema hdfs_sink_schema = SCHEMA(hdfs_sink_keys);
static const struct key event_log_keys[] = { MESSAGE("hdfsSink", hdfs_sink_schema) };
const struct schema event_log_schema = SCHEMA(event_log_keys);
static const struct key status_event_log_keys[] = { TEXT("topic"), TEXT("cluster") };
const struct schema status_event_log_schema = SCHEMA(status_event_log_keys);

static const struct key timeline_bridge_keys[] = {
        NUMBER("taskRunnerFeedMetricCollectBatchSize"),
        NUMBER("workerFeederWriteMetricCollectBatchSize"),
};
static const struct schema timeline_bridge_schema = SCHEMA(timeline_bridge_keys);
static const struct key timeline_keys[] = {
        TEXT("channel"),
        NUMBER("flushSize"),
        MESSAGE("metricToTimelineEventBridgeConfig", timeline_bridge_schema),
};
const struct schema timeline_schema = SCHEMA(timeline_keys);

static const struct key nas_keys[] = { TEXT("volume") };
static const struct schema nas_schema = SCHEMA(nas_keys);
static const struct key state_store_keys[] = {
        MESSAGE("localStateStore", empty_schema),
        MESSAGE("nasStateStore", nas_schema),
};
static const struct schema state_store_schema = SCHEMA(state_store_keys);
static const struct key api_server_keys[] = { MESSAGE("stateStore", state_store_schema) };
const struct schema api_server_schema = SCHEMA(api_server_keys);
