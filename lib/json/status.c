/* SPDX-License-Identifier: Apache-2.0 */
/* One job: its properties, its status and its executors, which are three replies, and one object. */
#include <stdint.h>
#include <string.h>

#include "lib/json/ends.h"
#include "lib/json/get.h"
#include "lib/json/replies.h"

/* ---- GetAll ---- */

static const struct json_member properties[] = {
        { "job", "u", .key = "Number" },
        { "name", "s", .key = "Name" },
        { "uid", "s", .key = "Uid" },
        { "state", "s", .key = "State" },
        { "owner", "u", .key = "Owner" },
        { "attempt", "u", .key = "Attempt" },
        { "version", "t", .key = "Version" },
        { "submitted", "t", .key = "SubmittedAt", .absent = JSON_ZERO_NULL },
        { "started", "t", .key = "StartedAt", .absent = JSON_ZERO_NULL },
        { "ended", "t", .key = "EndedAt", .absent = JSON_ZERO_NULL },
        { "exitStatus", "u", .key = "ExitStatus" },
};
const struct json_shape json_job = { "status", "a{sv}", properties, ELEMENTSOF(properties) };

/* ---- ListExecutors ---- */

static json_t *result_text(const json_t *o) {
        const json_t *status = json_object_get(o, "exitStatus");
        const struct attempt_end end = {
                .state = json_get_text(o, "state"),
                .result = json_get_text(o, "unitResult"),
                .reason = json_get_text(o, "reason"),
                .has_status = status,
                .status = (int32_t)json_integer_value(status),
        };
        char text[200];

        return json_string(attempt_end_text(&end, text, sizeof(text)));
}

static const struct json_member executor[] = {
        { "role", "s", .at = 1 },
        { "index", "u", .at = 2 },
        { "attempt", "u", .at = 3, .unseen = true },
        { "state", "s", .at = 4 },
        { "node", "s", .at = 5 },
        { "unit", "s", .at = 6 },
        { "rank", "u", .at = 7, .unseen = true },
        { "started", "t", .at = 8, .absent = JSON_ZERO_NULL },
        { "ended", "t", .at = 9, .absent = JSON_ZERO_NULL },
        { "result", "s", .make = result_text },
        { "restarts", "u" },
        { "memoryPeak", "t", .absent = JSON_ZERO_NULL },
        { "memory", "t", .absent = JSON_ZERO_NULL },
        { "cpuUsec", "t", .key = "cpu", .absent = JSON_ZERO_NULL, .unseen = true },
        { "readBytes", "t", .absent = JSON_ZERO_NULL, .unseen = true },
        { "writeBytes", "t", .absent = JSON_ZERO_NULL, .unseen = true },
        { "ports", "au" },
        { "gpus", "as" },
        { "exitStatus", "i", .key = "status", .absent = JSON_OR_NONE },
        { "dataTasks", "u", .absent = JSON_OR_NONE },
        { "dataWaitUsec", "t", .key = "dataWait", .absent = JSON_OR_NONE },
        { "trainerWaitUsec", "t", .key = "trainerWait", .absent = JSON_OR_NONE },
        { "dataIdle", "b", .absent = JSON_OR_NONE },
        { "unitResult", "s", .key = "result", .hidden = true },
        { "reason", "s", .hidden = true },
};
const struct json_shape json_executor = { "status: executor", "(suusssutta{sv})", executor,
                                          ELEMENTSOF(executor) };

/* ---- GetStatus ---- */

static const struct json_member role[] = {
        { "name", "s", .at = 1 },
        { "wanted", "u", .at = 2 },
        { "running", "u", .at = 3 },
        { "pending", "u", .at = 4 },
        { "succeeded", "u", .at = 5 },
        { "failed", "u", .at = 6 },
        { "killed", "u", .at = 7 },
        { "lost", "u", .at = 8 },
        { "restarts", "u", .make = json_comes_later },
};
static const struct json_shape roles = { "status: role", "(suuuuuuu)", role, ELEMENTSOF(role) };

/* Not known where it is missing or the largest number. */
static json_t *eta(const json_t *o) {
        json_t *usec = json_object_get(o, "eta");

        return usec && (uint64_t)json_integer_value(usec) != UINT64_MAX ? json_incref(usec) : json_null();
}

static const struct json_member source[] = {
        { "name", "s" },
        { "kind", "s" },
        { "files", "t" },
        { "tasks", "t" },
        { "done", "t" },
        { "failed", "t" },
        { "leased", "t" },
        { "bytes", "t" },
        { "acked", "t" },
        { "records", "t" },
        { "rate", "d" },
        { "recordRate", "d" },
        { "scanned", "b" },
        { "waitingFor", "s" },
        { "timePoint", "s", .absent = JSON_OR_NULL },
        { "weight", "u", .absent = JSON_OR_NULL },
        { "paused", "b" },
        { "ended", "b" },
        { "removed", "b" },
        { "etaUsec", "t", .absent = JSON_OR_NULL, .make = eta },
        { "eta", "t", .absent = JSON_OR_NONE, .hidden = true },
};
static const struct json_shape sources = { "status: source", "a{sv}", source, ELEMENTSOF(source) };

static const struct json_member data[] = {
        { "tasks", "t" },
        { "done", "t" },
        { "failed", "t" },
        { "leased", "t" },
        { "bytes", "t" },
        { "read", "t" },
        { "acked", "t" },
        { "records", "t" },
        { "scanned", "b" },
        { "waiting", "u" },
        { "sources", "aa{sv}", .parts = &sources },
};
static const struct json_shape datas = { "status: data", "a{sv}", data, ELEMENTSOF(data) };

/* An array counts its elements; an element says of which array it is. */
static const struct json_member array[] = {
        { "of", "u", .absent = JSON_OR_NONE },
        { "index", "u", .absent = JSON_OR_NONE },
        { "searcher", "u", .absent = JSON_OR_NONE },
        { "size", "u", .absent = JSON_OR_NONE },
        { "waiting", "u", .absent = JSON_OR_NONE },
        { "running", "u", .absent = JSON_OR_NONE },
        { "succeeded", "u", .absent = JSON_OR_NONE },
        { "failed", "u", .absent = JSON_OR_NONE },
        { "killed", "u", .absent = JSON_OR_NONE },
        { "firstFailed", "u", .absent = JSON_OR_NONE, .hidden = true },
};
static const struct json_shape arrays = { "status: array", "a{sv}", array, ELEMENTSOF(array) };

static const struct json_member rung[] = {
        { "bracket", "u", .at = 1 },  { "rung", "u", .at = 2 },   { "units", "t", .at = 3 },
        { "expected", "u", .at = 4 }, { "trials", "u", .at = 5 },
};
static const struct json_shape rungs = { "status: search rung", "(uutuu)", rung, ELEMENTSOF(rung) };

static const struct json_member search[] = {
        { "method", "s" },
        { "metric", "s", .absent = JSON_ZERO_NULL },
        { "smaller", "b" },
        { "trials", "u" },
        { "made", "u" },
        { "invalid", "u" },
        { "best", "u", .absent = JSON_OR_NULL },
        { "bestMetric", "d", .absent = JSON_OR_NULL },
        { "bestStep", "t", .absent = JSON_OR_NULL },
        { "rungs", "a(uutuu)", .parts = &rungs },
};
const struct json_shape json_search = { "status: search", "a{sv}", search, ELEMENTSOF(search) };

static const struct json_member avoids[] = {
        { "node", "s", .at = 1 },
        { "until", "t", .at = 2, .absent = JSON_MOST_NULL },
};
static const struct json_shape kept_off = { "status: kept off", "(st)", avoids, ELEMENTSOF(avoids) };

static const struct json_member status[] = {
        { "reason", "s" },
        { "failsAt", "t", .absent = JSON_OR_NONE },
        { "avoids", "a(st)", .absent = JSON_OR_NONE, .parts = &kept_off },
        { "firstError", "s" },
        { "roles", "a(suuuuuuu)", .parts = &roles },
        { "executors", "a(suusssutta{sv})", .parts = &json_executor, .make = json_comes_later },
        { "warnings", "as" },
        { "data", "a{sv}", .absent = JSON_OR_NONE, .parts = &datas },
        { "visible", "s", .absent = JSON_OR_NONE },
        { "parent", "u", .absent = JSON_ZERO_NONE },
        { "withParent", "b", .absent = JSON_OR_NONE },
        { "lockstep", "s", .absent = JSON_OR_NONE },
        { "verdicts", "aa{sv}", .parts = &json_verdict },
        { "array", "a{sv}", .absent = JSON_OR_NONE, .parts = &arrays },
        { "search", "a{sv}", .absent = JSON_OR_NONE, .parts = &json_search },
        { "visibleTo", "s", .hidden = true },
        { "cwd", "ay", .hidden = true },
        { "errorComing", "b", .hidden = true },
};
const struct json_shape json_status = { "status", "a{sv}", status, ELEMENTSOF(status) };

/* ---- all three ---- */

static uint64_t restarts_of(const char *name, const json_t *executors) {
        uint64_t sum = 0;
        const json_t *e;
        size_t i;

        json_array_foreach (executors, i, e)
                if (strcmp(json_get_text(e, "role"), name) == 0)
                        sum += json_get_number(e, "restarts");
        return sum;
}

int json_status_join(json_t *job, json_t *rest, json_t *executors) {
        json_t *r;
        size_t i;

        json_array_foreach (json_object_get(rest, "roles"), i, r)
                if (json_object_set_new(
                            r, "restarts",
                            json_integer((json_int_t)restarts_of(json_get_text(r, "name"), executors))) < 0)
                        return -ENOMEM;
        if (json_object_update(job, rest) < 0 || json_object_set(job, "executors", executors) < 0)
                return -ENOMEM;
        return 0;
}
