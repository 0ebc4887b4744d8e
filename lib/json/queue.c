/* SPDX-License-Identifier: Apache-2.0 */
/* The queue and the pools. */
#include "lib/json/replies.h"

static const struct json_member waiting[] = {
        { "job", "u" },      { "name", "s" },     { "owner", "u", .key = "user" },
        { "pool", "s" },     { "priority", "i" }, { "state", "s" },
        { "position", "t" }, { "since", "t" },    { "executors", "u" },
        { "cpus", "d" },     { "memory", "t" },   { "gpus", "u" },
        { "startsBy", "t" }, { "reason", "s" },
};
const struct json_shape json_waiting = { "queue", "a{sv}", waiting, ELEMENTSOF(waiting) };

/* ---- pools ---- */

static json_t *cpus_of_milli(const json_t *o) {
        const json_t *milli = json_object_get(o, "cpuMilli");

        return milli ? json_real((double)json_integer_value(milli) / 1000) : NULL;
}

/* What is without a limit is left out. */
static const struct json_member amount[] = {
        { "cpuMilli", "t", .at = 1, .absent = JSON_MOST_NONE, .hidden = true },
        { "cpus", "d", .absent = JSON_OR_NONE, .make = cpus_of_milli },
        { "memory", "t", .at = 2, .absent = JSON_MOST_NONE },
        { "gpus", "u", .at = 3, .absent = JSON_MOST_NONE },
};
static const struct json_shape amounts = { "pools: amount", "(ttu)", amount, ELEMENTSOF(amount) };

static const struct json_member share[] = {
        { "usage", "d" }, { "running", "u" }, { "waiting", "u" }, { "held", "(ttu)", .parts = &amounts },
        { "user", "u" },
};
static const struct json_shape shares = { "pools: user", "a{sv}", share, ELEMENTSOF(share) };

static const struct json_member pool[] = {
        { "usage", "d" },
        { "running", "u" },
        { "waiting", "u" },
        { "held", "(ttu)", .parts = &amounts },
        { "users", "aa{sv}", .parts = &shares },
        { "name", "s" },
        { "open", "b" },
        { "weight", "u" },
        { "priority", "i" },
        { "maxPriority", "i" },
        { "preempts", "b" },
        { "preemptible", "b" },
        { "defaultTime", "t", .absent = JSON_MOST_NULL },
        { "maxTime", "t", .absent = JSON_MOST_NULL },
        { "guarantee", "(ttu)", .parts = &amounts },
        { "limit", "(ttu)", .parts = &amounts },
        { "userLimit", "(ttu)", .parts = &amounts },
};
const struct json_shape json_pool = { "pools", "a{sv}", pool, ELEMENTSOF(pool) };
