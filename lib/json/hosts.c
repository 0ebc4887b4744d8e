/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, and the tokens with which they join. */
#include "lib/json/replies.h"

#include <stdint.h>

static const struct json_member row[] = {
        { "name", "s", .at = 1 },
        { "state", "s", .at = 2 },
        { "address", "s", .at = 3 },
        { "cpus", "d", .at = 4 },
        { "cpusFree", "d", .at = 5 },
        { "memory", "t", .at = 6 },
        { "memoryFree", "t", .at = 7 },
        { "gpus", "u", .at = 8 },
        { "gpusFree", "u", .at = 9 },
        { "executors", "u", .at = 10 },
        { "heartbeat", "t", .at = 11 },
        { "kernel", "s" },
        { "os", "s" },
        { "version", "s" },
        { "limits", "b" },
        { "reason", "s" },
        { "conditions", "s" },
        { "takenOver", "t" },
        { "labels", "as" },
};
const struct json_shape json_node_row = { "nodes", "(sssddttuuuta{sv})", row, ELEMENTSOF(row) };

/* ---- one of them ---- */

static json_t *deadline(const json_t *o) {
        json_int_t usec = json_integer_value(json_object_get(o, "drainsUntil"));

        if (!json_is_true(json_object_get(o, "drain")))
                return NULL;
        /* The largest number is "when they end", which no JSON integer is. */
        return (uint64_t)usec == UINT64_MAX ? json_string("infinity") : json_integer(usec);
}

static const struct json_member hold[] = {
        { "cause", "s", .at = 1 },
        { "drain", "b", .at = 2 },
        { "reason", "s", .at = 3 },
        { "uid", "u", .at = 4 },
        { "since", "t", .at = 5 },
        { "then", "s", .at = 8 },
        { "drainsUntil", "t", .at = 6, .hidden = true },
        { "deadline", "t", .absent = JSON_OR_NONE, .make = deadline },
        { "grace", "t", .at = 7, .absent = JSON_MOST_NONE },
};
static const struct json_shape holds = { "node show: hold", "(sbsuttts)", hold, ELEMENTSOF(hold) };

static const struct json_member window[] = {
        { "from", "t", .at = 1 },
        { "to", "t", .at = 2 },
        { "reason", "s", .at = 3 },
        { "uid", "u", .at = 4 },
};
static const struct json_shape windows = { "node show: window", "(ttsu)", window, ELEMENTSOF(window) };

static const struct json_member condition[] = {
        { "kind", "s", .at = 1 }, { "subject", "s", .at = 2 }, { "severity", "s", .at = 3 },
        { "text", "s", .at = 4 }, { "since", "t", .at = 5 },
};
static const struct json_shape conditions = { "node show: condition", "(sssst)", condition,
                                              ELEMENTSOF(condition) };

static const struct json_member executor[] = {
        { "job", "u", .at = 1 },       { "role", "s", .at = 2 },  { "index", "u", .at = 3 },
        { "attempt", "u", .at = 4 },   { "state", "s", .at = 5 }, { "owner", "u", .at = 6 },
        { "startedAt", "t", .at = 7 },
};
static const struct json_shape executors = { "node show: executor", "(usuusut)", executor,
                                             ELEMENTSOF(executor) };

static const struct json_member gpu[] = {
        { "uuid", "s", .at = 1 }, { "model", "s", .at = 2 }, { "memory", "t", .at = 3 },
        { "mig", "s", .at = 4 },  { "taken", "b", .at = 5 },
};
static const struct json_shape gpus = { "node show: gpu", "(sstsb)", gpu, ELEMENTSOF(gpu) };

static const struct json_member gpu_off[] = {
        { "uuid", "s", .at = 1 },
        { "uid", "u", .at = 2 },
        { "since", "t", .at = 3 },
        { "reason", "s", .at = 4 },
};
static const struct json_shape gpus_off = { "node show: GPU out of use", "(suts)", gpu_off,
                                            ELEMENTSOF(gpu_off) };

static const struct json_member avoided[] = {
        { "uid", "u", .at = 1 },
        { "until", "t", .at = 2 },
};
static const struct json_shape avoids = { "node show: avoided", "(ut)", avoided, ELEMENTSOF(avoided) };

#define MEMBER(name, type, ...)                                                                              \
        { name, type, .absent = JSON_OR_NONE, ##__VA_ARGS__ }
static const struct json_member node[] = {
        MEMBER("name", "s"),
        MEMBER("state", "s"),
        MEMBER("liveness", "s"),
        MEMBER("reason", "s"),
        MEMBER("address", "s"),
        MEMBER("cpus", "u"),
        MEMBER("cpusFree", "d"),
        MEMBER("memory", "t"),
        MEMBER("memoryFree", "t"),
        MEMBER("gpus", "u"),
        MEMBER("gpusFree", "u"),
        MEMBER("heartbeat", "t"),
        MEMBER("boot", "s"),
        MEMBER("version", "s"),
        MEMBER("limits", "b"),
        MEMBER("kernel", "s"),
        MEMBER("os", "s"),
        MEMBER("epoch", "t"),
        MEMBER("link", "s"),
        MEMBER("refused", "s"),
        MEMBER("joined", "t"),
        MEMBER("joinedFrom", "s"),
        MEMBER("joinedBy", "u"),
        MEMBER("takenOver", "b"),
        MEMBER("labels", "as"),
        MEMBER("holds", "a(sbsuttts)", .parts = &holds),
        MEMBER("conditions", "a(sssst)", .parts = &conditions),
        MEMBER("avoidedFor", "a(ut)", .parts = &avoids),
        MEMBER("gpuList", "a(sstsb)", .parts = &gpus),
        MEMBER("gpusOff", "a(suts)", .parts = &gpus_off),
        MEMBER("windows", "a(ttsu)", .parts = &windows),
        MEMBER("executors", "a(usuusut)", .parts = &executors),
        MEMBER("provider", "s"),
        MEMBER("shape", "s"),
        MEMBER("kept", "s"),
};
#undef MEMBER
static const struct json_member event[] = {
        { "sequence", "t", .at = 1 },
        { "time", "t", .at = 2 },
        { "kind", "s", .at = 3 },
        { "text", "s", .at = 4 },
};
const struct json_shape json_node_event = { "node events", "(ttss)", event, ELEMENTSOF(event) };

const struct json_shape json_node = { "node show", "a{sv}", node, ELEMENTSOF(node), .open = true };

/* ---- tokens ---- */

static const struct json_member token[] = {
        { "token", "s", .at = 1 }, { "uses", "u", .at = 2 },    { "expires", "t", .at = 3 },
        { "from", "s", .at = 4 },  { "creator", "u", .at = 5 }, { "name", "s" },
        { "replace", "b" },
};
const struct json_shape json_token = { "token list", "(sutsua{sv})", token, ELEMENTSOF(token) };
