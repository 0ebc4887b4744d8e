/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts by demand, as JSON. */
#include "lib/base/cleanup.h"
#include "lib/json/replies.h"

static const struct json_member shape[] = {
        { "shape", "s", .at = 1 },
        { "cpus", "u", .at = 2 },
        { "memory", "t", .at = 3 },
        { "cost", "t", .at = 4 },
        { "gpus", "u", .at = 5 },
        { "instances", "u", .at = 6 },
        { "max", "t", .at = 7 },
        { "gpuModel", "s", .at = 8 },
        { "blockedUntil", "t", .at = 9, .absent = JSON_ZERO_NULL },
        { "why", "s", .at = 10 },
};
static const struct json_shape shapes = { "provider list: shapes", "(suttuutsts)", shape, ELEMENTSOF(shape) };

static const struct json_member provider[] = {
        { "name", "s" },
        { "held", "b" },
        { "instances", "u" },
        { "foreign", "u" },
        { "listed", "t", .absent = JSON_ZERO_NULL },
        { "error", "s" },
        { "cost", "t" },
        { "min", "u", .absent = JSON_OR_NONE },
        { "max", "u", .absent = JSON_OR_NONE },
        { "spare", "u", .absent = JSON_OR_NONE },
        { "maxCost", "t", .absent = JSON_OR_NONE },
        { "idle", "t", .absent = JSON_OR_NONE },
        { "shapes", "a(suttuutsts)", .parts = &shapes },
};
const struct json_shape json_provider = { "provider list", "a{sv}", provider, ELEMENTSOF(provider) };

static const struct json_member instance[] = {
        { "node", "s" },
        { "provider", "s" },
        { "shape", "s" },
        { "token", "s" },
        { "id", "s" },
        { "state", "s" },
        { "job", "u", .absent = JSON_ZERO_NULL },
        { "made", "t" },
        { "since", "t" },
        { "held", "b" },
        { "listed", "s" },
        { "text", "s" },
};
const struct json_shape json_instance = { "provider hosts", "a{sv}", instance, ELEMENTSOF(instance) };

static const struct json_member act[] = {
        { "act", "s" },
        { "provider", "s", .absent = JSON_OR_NULL },
        { "shape", "s", .absent = JSON_OR_NULL },
        { "node", "s", .absent = JSON_ZERO_NULL },
        { "job", "u", .absent = JSON_ZERO_NULL },
        { "why", "s" },
};
const struct json_shape json_act = { "provider plan", "a{sv}", act, ELEMENTSOF(act) };
