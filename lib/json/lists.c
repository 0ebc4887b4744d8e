/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a job's data, savepoints, and what was used. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "lib/json/replies.h"
#include "lib/wire/tasks.h"

/* ---- tasks: 17, or s17 for one that was split off from a slow one ---- */

static json_t *task_name(const json_t *o) {
        uint64_t task = json_get_number(o, "number");
        char text[24];

        snprintf(text, sizeof(text), "%s%" PRIu64, task & TASK_SPLIT_OFF ? "s" : "", task & ~TASK_SPLIT_OFF);
        return json_string(text);
}

static const struct json_member task[] = {
        { "number", "t", .at = 1, .hidden = true },
        { "task", "s", .make = task_name },
        { "state", "s", .at = 2 },
        { "source", "s", .at = 3 },
        { "path", "ay", .at = 4 },
        { "start", "t", .at = 5 },
        { "acked", "t", .at = 7 },
        { "records", "t", .at = 8 },
        { "failures", "u", .at = 9 },
        { "holder", "s", .at = 10 },
        { "error", "s", .at = 11 },
        { "splitOff", "b" },
        { "epoch", "u" },
        { "rate", "d" },
        { "end", "t", .at = 6, .absent = JSON_MOST_NULL },
};
const struct json_shape json_task = { "data", "(tssayttttussa{sv})", task, ELEMENTSOF(task) };

/* ---- trials ---- */

/* As an object. */
static json_t *params_of(const json_t *o) {
        return json_loads(json_get_text(o, "given"), 0, NULL) ?: json_object();
}

static const struct json_member trial[] = {
        { "trial", "u", .at = 1 },
        { "job", "u", .at = 2 },
        { "state", "s", .at = 3 },
        { "bracket", "u", .at = 4 },
        { "rungs", "u", .at = 5 },
        { "step", "t", .at = 6 },
        { "metric", "d", .at = 7 },
        { "best", "d", .at = 8 },
        { "bestStep", "t", .at = 9 },
        { "given", "s", .at = 10, .hidden = true },
        { "params", "a{sv}", .make = params_of },
};
const struct json_shape json_trial_row = { "search show: trial", "(uusuutddtsa{sv})", trial,
                                           ELEMENTSOF(trial) };

/* ---- metrics ---- */

static const struct json_member metric[] = {
        { "role", "s" }, { "name", "s" }, { "series", "u" }, { "reports", "t" }, { "step", "t" },
        { "at", "t" },   { "last", "d" }, { "min", "d" },    { "max", "d" },
};
const struct json_shape json_metric = { "metrics", "a{sv}", metric, ELEMENTSOF(metric) };

static const struct json_member metric_series[] = {
        { "role", "s" },     { "index", "u" }, { "local", "u" }, { "step", "at" }, { "at", "at" },
        { "reports", "au" }, { "last", "ad" }, { "min", "ad" },  { "max", "ad" },  { "mean", "ad" },
};
const struct json_shape json_metric_series = { "metrics: series", "a{sv}", metric_series,
                                               ELEMENTSOF(metric_series) };

/* ---- checkpoints ---- */

static json_t *metrics_of(const json_t *o) {
        return json_loads(json_get_text(o, "metricsText"), 0, NULL) ?: json_object();
}

static const struct json_member checkpoint[] = {
        { "checkpoint", "t" },
        { "owner", "u" },
        { "job", "u" },
        { "trial", "u", .absent = JSON_OR_NONE },
        { "run", "u" },
        { "host", "s" },
        { "path", "s" },
        { "step", "t" },
        { "saved", "t" },
        { "bytes", "t" },
        { "files", "u" },
        { "metric", "s", .absent = JSON_OR_NONE },
        { "value", "d", .absent = JSON_OR_NONE },
        { "smaller", "b" },
        { "metricsText", "s", .key = "metrics", .hidden = true },
        { "metrics", "a{sv}", .make = metrics_of },
        { "pinned", "b" },
        { "marked", "b" },
};
const struct json_shape json_checkpoint = { "checkpoints list", "a{sv}", checkpoint, ELEMENTSOF(checkpoint) };

static const struct json_member model[] = {
        { "name", "s" },
        { "version", "u" },
        { "owner", "u" },
        { "checkpoint", "t" },
        { "path", "s" },
        { "host", "s" },
        { "step", "t" },
        { "metric", "s", .absent = JSON_OR_NONE },
        { "value", "d", .absent = JSON_OR_NONE },
        { "registered", "t" },
        { "note", "s" },
        { "labels", "s" },
        { "archived", "b" },
        { "gone", "b" },
};
const struct json_shape json_model = { "model list", "a{sv}", model, ELEMENTSOF(model) };

/* ---- savepoints ---- */

static const struct json_member savepoint[] = {
        { "name", "s", .at = 1 },  { "job", "u", .at = 2 },     { "jobName", "s" },
        { "owner", "u", .at = 3 }, { "created", "t", .at = 4 }, { "done", "t", .at = 5 },
        { "acked", "t", .at = 6 }, { "records", "t" },          { "partial", "t" },
        { "failed", "t" },
};
const struct json_shape json_savepoint = { "savepoint list", "(suuttta{sv})", savepoint,
                                           ELEMENTSOF(savepoint) };

/* ---- usage ---- */

#define DAY_USEC (UINT64_C(86400) * USEC_PER_SEC)

static json_t *day_text(const json_t *o) {
        char text[64];

        (void)format_time(json_get_number(o, "dayNumber") * DAY_USEC, text, sizeof(text));
        text[strcspn(text, "T")] = 0;
        return json_string(text);
}

static json_t *user_of_uid(const json_t *o) {
        char text[JSON_USER_MAX];

        return json_string(json_user_name((uint32_t)json_get_number(o, "uid"), text));
}

/* Roles of jobs whose rows have been added up have no names any more. */
static json_t *role_or_deleted(const json_t *o) {
        const char *role = json_get_text(o, "roleName");

        return json_string(*role ? role : "deleted");
}

static json_t *gpu_used(const json_t *o) {
        return json_get_number(o, "gpuMeasured") > 0 ? json_incref(json_object_get(o, "gpuBusyUsec"))
                                                     : json_null();
}

static const struct json_member usage[] = {
        { "dayNumber", "u", .at = 1, .hidden = true },
        { "roleName", "s", .at = 5, .hidden = true },
        { "day", "s", .make = day_text },
        { "pool", "s", .at = 3 },
        { "user", "s", .make = user_of_uid },
        { "job", "u", .at = 4 },
        { "role", "s", .make = role_or_deleted },
        { "uid", "u", .at = 2 },
        { "cpuHeldUsec", "t", .at = 6 },
        { "cpuUsedUsec", "t", .at = 7 },
        { "memoryHeldMibMsec", "t", .at = 8 },
        { "gpuHeldUsec", "t", .at = 9 },
        { "gpuUsedUsec", "t", .absent = JSON_OR_NULL, .make = gpu_used },
        { "gpuBusyUsec", "t", .at = 12, .hidden = true },
        { "attempts", "t", .at = 10 },
        { "unmeasured", "t", .at = 11 },
        { "gpuMeasured", "t", .at = 13 },
        { "running", "t", .at = 14 },
};
const struct json_shape json_usage = { "usage", "(uususttttttttt)", usage, ELEMENTSOF(usage) };
