/* SPDX-License-Identifier: Apache-2.0 */
/* What is served below /v1, in the order of docs/rest.md. Invariant: nothing that a GET asks for changes
 * anything. */
#include <errno.h>

#include "lib/json/replies.h"
#include "webd/route/route.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"

#define ANSWERS(...) .parts = { __VA_ARGS__ }
#define TAKES(...) .given = { __VA_ARGS__ }

#define QUERY(name, type, ...)                                                                               \
        { name, type, ##__VA_ARGS__ }
#define OPTION(name, type)                                                                                   \
        { name, type, .option = true }
#define QUERY_OPTION(name, type)                                                                             \
        { name, type, .from = FROM_QUERY, .option = true }
#define IF_MATCH                                                                                             \
        { "version", "t", "0", .from = FROM_IF_MATCH }
#define NOW ANSWERS({ "version" })

/* One method of a job's or a host's that takes an object and answers nothing, or little. */
#define POST_JOB(path, name, ...)                                                                            \
        {                                                                                                    \
                "POST", "/v1/jobs/{job}/" path, {                                                            \
                        { ROUTE_JOB, NULL, name, ##__VA_ARGS__ }                                             \
                }                                                                                            \
        }
#define POST_NODE(path, name, ...)                                                                           \
        {                                                                                                    \
                "POST", "/v1/nodes/{node}/" path, {                                                          \
                        { ROUTE_NODE, NULL, name, ##__VA_ARGS__ }                                            \
                }                                                                                            \
        }

/* ---- answers of several calls ---- */

static int join_status(json_t *const results[static ROUTE_CALLS_MAX], unsigned long job, json_t **ret) {
        int r = json_status_join(results[0], results[1], results[2]);

        if (r < 0)
                return r;
        *ret = json_incref(results[0]);
        return 0;
}

/* As primusctl why has it. */
static int join_why(json_t *const results[static ROUTE_CALLS_MAX], unsigned long job, json_t **ret) {
        json_t *why = results[0];

        if (json_object_set_new(why, "job", json_integer((json_int_t)job)) < 0 ||
            json_object_set(why, "verdicts", json_object_get(results[1], "verdicts")) < 0)
                return -ENOMEM;
        *ret = json_incref(why);
        return 0;
}

static int join_trial(json_t *const results[static ROUTE_CALLS_MAX], unsigned long job, json_t **ret) {
        json_t *trial = json_object_get(results[0], "trial");

        if (json_object_set(trial, "warnings", json_object_get(results[0], "warnings")) < 0)
                return -ENOMEM;
        *ret = json_incref(trial);
        return 0;
}

/* What describes a job, and what may stand over it. */
#define SUBMISSION                                                                                           \
        { "config", "ay", .from = FROM_BODY }, QUERY_OPTION("name", "s"), QUERY_OPTION("queue", "s"),        \
                QUERY_OPTION("priority", "i"), QUERY_OPTION("visible", "s"), QUERY_OPTION("timeLimit", "s"), \
                QUERY_OPTION("startWithin", "s"), QUERY_OPTION("begin", "s"), QUERY_OPTION("after", "as"),   \
                QUERY_OPTION("array", "s"), QUERY_OPTION("requeue", "b"), QUERY_OPTION("preemptible", "b"),  \
                QUERY_OPTION("waitForHosts", "b"), QUERY_OPTION("signal", "s"),                              \
                QUERY_OPTION("savepoint", "s"), QUERY_OPTION("cwd", "path"), QUERY_OPTION("withParent", "b")

const struct route routes[] = {
        /* ---- the cluster ---- */
        { "GET",
          "/v1/cluster",
          { { ROUTE_MANAGER, PROPERTIES, "GetAll",
              TAKES({ "interface", "s", "org.primus.Master1.Manager", FROM_TABLE }),
              ANSWERS({ NULL, PART_OBJECT, &json_cluster }) } } },
        { "POST", "/v1/banner", { { ROUTE_MANAGER, NULL, "SetBanner", TAKES(QUERY("text", "s")) } } },
        { "GET",
          "/v1/queue",
          { { ROUTE_MANAGER, NULL, "ListQueue", ANSWERS({ "jobs", PART_LIST, &json_waiting }) } } },
        { "GET",
          "/v1/pools",
          { { ROUTE_MANAGER, NULL, "ListPools", ANSWERS({ "pools", PART_LIST, &json_pool }) } } },
        { "GET",
          "/v1/usage",
          { { ROUTE_MANAGER, NULL, "Usage", true,
              TAKES(QUERY("by", "as", ""), OPTION("since", "t"), OPTION("until", "t"), OPTION("uid", "u")),
              ANSWERS({ "rows", PART_LIST, &json_usage }) } } },
        { "GET",
          "/v1/telemetry",
          { { ROUTE_MANAGER, NULL, "ListTelemetry", true, TAKES(OPTION("uid", "u")),
              ANSWERS({ "jobs" }) } } },
        { "GET", "/v1/defaults", { { ROUTE_MANAGER, NULL, "GetJobDefaults", ANSWERS({ "files" }) } } },

        { "GET",
          "/v1/changes",
          { { ROUTE_MANAGER, NULL, "Changes", true, TAKES(QUERY("since", "s", ""), QUERY("wait", "t", "0")),
              ANSWERS({ "now" }, { "reset" }, { "jobs" }, { "nodes" }), .wait_sec = 20 } } },

        /* ---- jobs ---- */
        { "GET",
          "/v1/jobs",
          { { ROUTE_MANAGER, NULL, "ListJobs", true,
              TAKES(OPTION("all", "b"), OPTION("uid", "u"), OPTION("state", "s"), OPTION("name", "s"),
                    OPTION("since", "t"), OPTION("before", "u"), OPTION("limit", "u"),
                    OPTION("elements", "b"), OPTION("array", "u")),
              ANSWERS({ "jobs", PART_LIST, &json_job_row }) } } },
        { "POST",
          "/v1/jobs",
          { { ROUTE_MANAGER, NULL, "Submit", true,
              TAKES(SUBMISSION, { "key", "s", .from = FROM_KEY, .option = true }),
              ANSWERS({ "job" }, { NULL, PART_SKIP }, { "warnings" }) } },
          .status = 201,
          .dry = "/v1/jobs/trial" },
        { "POST",
          "/v1/jobs/trial",
          { { ROUTE_MANAGER, NULL, "TrySubmit", true, TAKES(SUBMISSION),
              ANSWERS({ "warnings" }, { "trial", PART_OBJECT, &json_trial }) } },
          join_trial },
        { "GET",
          "/v1/jobs/{job}",
          { { ROUTE_JOB, PROPERTIES, "GetAll",
              TAKES({ "interface", "s", "org.primus.Master1.Job", FROM_TABLE }),
              ANSWERS({ NULL, PART_OBJECT, &json_job }) },
            { ROUTE_JOB, NULL, "GetStatus", ANSWERS({ NULL, PART_OBJECT, &json_status }) },
            { ROUTE_JOB, NULL, "ListExecutors", TAKES(QUERY("attempts", "b", "false")),
              ANSWERS({ NULL, PART_LIST, &json_executor }) } },
          join_status },
        { "GET",
          "/v1/jobs/{job}/why",
          { { ROUTE_JOB, NULL, "Why", ANSWERS({ NULL, PART_OBJECT, &json_why }) },
            { ROUTE_JOB, NULL, "GetStatus", ANSWERS({ NULL, PART_OBJECT, &json_status }) } },
          join_why },
        { "GET",
          "/v1/jobs/{job}/events",
          { { ROUTE_JOB, NULL, "ListEvents", TAKES(QUERY("after", "t", "0")),
              ANSWERS({ "events", PART_LIST, &json_event }) } } },
        { "GET", "/v1/jobs/{job}/config", { { ROUTE_JOB, NULL, "GetConfig", ANSWERS({ NULL, PART_RAW }) } } },
        { "GET",
          "/v1/jobs/{job}/telemetry",
          { { ROUTE_JOB, NULL, "Telemetry", true,
              TAKES(OPTION("history", "s"), OPTION("role", "s"), OPTION("noExecutors", "b"),
                    OPTION("noValues", "b")),
              ANSWERS({ NULL, PART_ALL }) } } },
        { "GET",
          "/v1/jobs/{job}/tasks",
          { { ROUTE_JOB, NULL, "ListTasks", true,
              TAKES(QUERY("after", "t", "0"), OPTION("state", "s"), OPTION("limit", "u")),
              ANSWERS({ "tasks", PART_LIST, &json_task }) } } },
        { "GET",
          "/v1/jobs/{job}/trials",
          { { ROUTE_JOB, NULL, "ListTrials", TAKES(QUERY("from", "u", "0")),
              ANSWERS({ "trials", PART_LIST, &json_trial_row }) } } },
        { "GET",
          "/v1/jobs/{job}/metrics",
          { { ROUTE_JOB, NULL, "ListMetrics", ANSWERS({ "metrics", PART_LIST, &json_metric }) } } },
        { "GET",
          "/v1/jobs/{job}/metrics/points",
          { { ROUTE_JOB, NULL, "ReadMetrics", true,
              TAKES(QUERY("name", "s"), OPTION("role", "s"), OPTION("index", "u"), OPTION("points", "u"),
                    OPTION("from", "u")),
              ANSWERS({ "series", PART_LIST, &json_metric_series }, { "total" }) } } },
        { "GET",
          "/v1/jobs/{job}/log",
          { { ROUTE_JOB, NULL, "ReadLog", true,
              TAKES(QUERY("role", "s"), QUERY("index", "u", "0"), QUERY("attempt", "u", "0"),
                    QUERY("cursor", "ay", ""), QUERY("wait", "t", "0"), OPTION("tail", "t"),
                    OPTION("identifier", "s")),
              ANSWERS({ "text", PART_TEXT }, { "next", PART_HEX }, { "end" }), .wait_sec = 20 } } },
        { "PATCH",
          "/v1/jobs/{job}",
          { { ROUTE_JOB, NULL, "Update", true, TAKES(IF_MATCH, { "", .from = FROM_REST }), NOW } } },
        POST_JOB("kill", "KillWith", true,
                 TAKES(OPTION("reason", "s"), OPTION("grace", "t"), OPTION("exitStatus", "u"))),
        POST_JOB("succeed", "Succeed", TAKES(QUERY("reason", "s", ""))),
        POST_JOB("requeue", "Requeue", TAKES(QUERY("reason", "s", ""))),
        POST_JOB("suspend", "SuspendAs", TAKES(QUERY("mode", "s", "data"))),
        POST_JOB("resume", "Resume"),
        { "POST",
          "/v1/jobs/{job}/rerun",
          { { ROUTE_JOB, NULL, "Rerun", true, TAKES(OPTION("failed", "b"), OPTION("continue", "u")),
              ANSWERS({ "job" }, { NULL, PART_SKIP }, { "warnings" }) } },
          .status = 201 },
        { "DELETE", "/v1/jobs/{job}", { { ROUTE_JOB, NULL, "Delete" } } },
        POST_JOB("scale", "Scale", TAKES(IF_MATCH, QUERY("roles", "a{sx}")), NOW),
        POST_JOB("roles", "AddRole", TAKES(IF_MATCH, QUERY("role", "json")), NOW),
        POST_JOB("roles/remove", "RemoveRole", TAKES(IF_MATCH, QUERY("name", "s")), NOW),
        POST_JOB("restart", "RestartRole",
                 TAKES(QUERY("role", "s", ""), QUERY("index", "i", "-1"), QUERY("batch", "u", "0")),
                 ANSWERS({ "executors" })),
        POST_JOB("replace", "Replace", TAKES(QUERY("node", "s")), ANSWERS({ "moved" })),
        POST_JOB("allow", "AllowNode", TAKES(QUERY("node", "s"))),
        POST_JOB("savepoints", "CreateSavepoint", true, TAKES(QUERY("name", "s", ""), OPTION("kill", "b")),
                 ANSWERS({ "name" }), .wait_sec = 10),
        POST_JOB("stacks", "Capture", true,
                 TAKES(QUERY("role", "s"), QUERY("index", "u"), OPTION("quiet", "b")),
                 ANSWERS({ "threads", PART_LIST, &json_thread }, { "info", PART_OBJECT, &json_capture }),
                 .wait_sec = 10),
        POST_JOB("trace", "Trace", true,
                 TAKES(QUERY("role", "s"), QUERY("index", "u"), QUERY("kind", "s", "io"),
                       OPTION("lease", "t")),
                 ANSWERS({ "since" }, { "histograms" }, { "info" })),
        POST_JOB("tasks/retry", "RetryTask", TAKES(QUERY("task", "t")), ANSWERS({ "changed" })),
        POST_JOB("tasks/skip", "SkipTask", TAKES(QUERY("task", "t")), ANSWERS({ "changed" })),
        POST_JOB("sources", "AddSource", TAKES(IF_MATCH, QUERY("source", "json")), NOW),
        POST_JOB("sources/replace", "ReplaceSources", TAKES(IF_MATCH, QUERY("sources", "json")),
                 ANSWERS({ "version" }, { "added" }, { "removed" })),
        POST_JOB("sources/steer", "SteerSource", true,
                 TAKES(QUERY("source", "s"), OPTION("state", "s"), OPTION("weight", "u"))),

        /* ---- checkpoints ---- */
        { "GET",
          "/v1/checkpoints",
          { { ROUTE_MANAGER, NULL, "ListCheckpoints", TAKES(QUERY("job", "u", "0"), QUERY("after", "t", "0")),
              ANSWERS({ "checkpoints", PART_LIST, &json_checkpoint }) } } },
        { "POST",
          "/v1/checkpoints/collect",
          { { ROUTE_MANAGER, NULL, "CollectCheckpoints", true,
              TAKES(QUERY("job", "u"), OPTION("best", "u"), OPTION("trialBest", "u"),
                    OPTION("trialLatest", "u"), OPTION("dryRun", "b")),
              ANSWERS({ "marked" }, { "jobs" }) } } },
        { "POST",
          "/v1/checkpoints/pin",
          { { ROUTE_MANAGER, NULL, "PinCheckpoint",
              TAKES(QUERY("checkpoint", "t"), QUERY("pinned", "b", "true")) } } },
        { "DELETE",
          "/v1/checkpoint",
          { { ROUTE_MANAGER, NULL, "ForgetCheckpoint", TAKES({ "checkpoint", "t", .from = FROM_QUERY }) } } },

        { "GET",
          "/v1/models",
          { { ROUTE_MANAGER, NULL, "ListModels", TAKES(QUERY("name", "s", "")),
              ANSWERS({ "models", PART_LIST, &json_model }) } } },
        { "POST",
          "/v1/models",
          { { ROUTE_MANAGER, NULL, "RegisterModel", true,
              TAKES(QUERY("name", "s"), QUERY("checkpoint", "t"), OPTION("note", "s"), OPTION("labels", "s")),
              ANSWERS({ "version" }) } },
          .status = 201 },
        { "POST",
          "/v1/models/edit",
          { { ROUTE_MANAGER, NULL, "EditModel", true,
              TAKES(QUERY("name", "s"), QUERY("version", "u", "0"), OPTION("note", "s"),
                    OPTION("labels", "s"), OPTION("archived", "b")) } } },

        /* ---- hosts by demand ---- */
        { "GET",
          "/v1/providers",
          { { ROUTE_MANAGER, NULL, "ListProviders", ANSWERS({ "providers", PART_LIST, &json_provider }) } } },
        { "GET",
          "/v1/instances",
          { { ROUTE_MANAGER, NULL, "ListInstances", ANSWERS({ "instances", PART_LIST, &json_instance }) } } },
        { "GET",
          "/v1/instances/plan",
          { { ROUTE_MANAGER, NULL, "PlanInstances", ANSWERS({ "acts", PART_LIST, &json_act }) } } },
        { "POST",
          "/v1/providers/hold",
          { { ROUTE_MANAGER, NULL, "HoldProvider",
              TAKES(QUERY("provider", "s"), QUERY("held", "b", "true")) } } },
        { "POST",
          "/v1/instances/hold",
          { { ROUTE_MANAGER, NULL, "HoldInstance",
              TAKES(QUERY("instance", "s"), QUERY("held", "b", "true")) } } },
        { "POST",
          "/v1/instances",
          { { ROUTE_MANAGER, NULL, "StartInstance", TAKES(QUERY("provider", "s"), QUERY("shape", "s")) } } },
        { "DELETE",
          "/v1/instance",
          { { ROUTE_MANAGER, NULL, "StopInstance", TAKES({ "instance", "s", .from = FROM_QUERY }) } } },

        /* ---- savepoints ---- */
        { "GET",
          "/v1/savepoints",
          { { ROUTE_MANAGER, NULL, "ListSavepoints",
              ANSWERS({ "savepoints", PART_LIST, &json_savepoint }) } } },
        { "GET",
          "/v1/savepoint",
          { { ROUTE_MANAGER, NULL, "GetSavepoint", TAKES(QUERY("name", "s")),
              ANSWERS({ NULL, PART_RAW }) } } },
        { "DELETE",
          "/v1/savepoint",
          { { ROUTE_MANAGER, NULL, "DeleteSavepoint", TAKES({ "name", "s", .from = FROM_QUERY }) } } },

        /* ---- hosts ---- */
        { "GET",
          "/v1/nodes",
          { { ROUTE_MANAGER, NULL, "ListNodes", ANSWERS({ "nodes", PART_LIST, &json_node_row }) } } },
        { "GET",
          "/v1/nodes/{node}",
          { { ROUTE_NODE, NULL, "Describe", ANSWERS({ NULL, PART_OBJECT, &json_node }) } } },
        { "GET",
          "/v1/nodes/{node}/events",
          { { ROUTE_NODE, NULL, "ListEvents", TAKES(QUERY("after", "t", "0")),
              ANSWERS({ "events", PART_LIST, &json_node_event }) } } },
        POST_NODE("cordon", "Cordon", TAKES(QUERY("reason", "s", ""))),
        POST_NODE("uncordon", "Uncordon", ANSWERS({ "left" })),
        POST_NODE("drain", "Drain", true,
                  TAKES(OPTION("reason", "s"), OPTION("grace", "t"), OPTION("deadline", "t"),
                        OPTION("then", "s"))),
        POST_NODE("labels", "SetLabels", TAKES(QUERY("changes", "as"))),
        POST_NODE("gpus/disable", "DisableGPU", TAKES(QUERY("gpu", "s"), QUERY("reason", "s", ""))),
        POST_NODE("gpus/enable", "EnableGPU", TAKES(QUERY("gpu", "s"))),
        POST_NODE("maintenance", "SetMaintenance",
                  TAKES(QUERY("from", "t"), QUERY("to", "t"), QUERY("reason", "s", ""))),
        POST_NODE("maintenance/cancel", "CancelMaintenance", TAKES(QUERY("from", "t"))),
        POST_NODE("dead", "DeclareDead"),
        { "POST", "/v1/nodes/remove", { { ROUTE_MANAGER, NULL, "RemoveNode", TAKES(QUERY("name", "s")) } } },
        { "GET",
          "/v1/tokens",
          { { ROUTE_MANAGER, NULL, "ListTokens", ANSWERS({ "tokens", PART_LIST, &json_token }) } } },
        { "POST",
          "/v1/tokens",
          { { ROUTE_MANAGER, NULL, "CreateToken", true,
              TAKES(OPTION("uses", "u"), OPTION("expires", "t"), OPTION("from", "s"), OPTION("name", "s"),
                    OPTION("replace", "b")),
              ANSWERS({ "token" }) } },
          .status = 201 },
        { "POST", "/v1/tokens/revoke", { { ROUTE_MANAGER, NULL, "RevokeToken", TAKES(QUERY("id", "s")) } } },
};
const size_t n_routes = ELEMENTSOF(routes);
