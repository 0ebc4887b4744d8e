/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: the list of them, what happened to one, why one waits. */
#include "lib/json/get.h"
#include "lib/json/replies.h"

static json_t *user_of_owner(const json_t *o) {
        char text[JSON_USER_MAX];

        return json_string(json_user_name((uint32_t)json_get_number(o, "owner"), text));
}

/* An element says which one of its array it is; one that does not is the searcher of a search. */
static json_t *index_of_element(const json_t *o) {
        return json_object_get(o, "array") ? json_incref(json_object_get(o, "indexInArray")) : NULL;
}

static const struct json_member row[] = {
        { "job", "u", .at = 1 },
        { "name", "s", .at = 2 },
        { "state", "s", .at = 3 },
        { "owner", "u", .at = 4 },
        { "submitted", "t", .at = 5, .absent = JSON_ZERO_NULL },
        { "started", "t", .at = 6, .absent = JSON_ZERO_NULL },
        { "ended", "t", .at = 7, .absent = JSON_ZERO_NULL },
        { "running", "u", .at = 8 },
        { "wanted", "u", .at = 9 },
        { "reason", "s", .at = 10 },
        { "user", "s", .make = user_of_owner },
        { "pool", "s", .absent = JSON_OR_NULL },
        { "priority", "i", .absent = JSON_OR_NULL },
        { "visible", "s", .absent = JSON_OR_NULL },
        { "array", "u", .absent = JSON_ZERO_NONE },
        { "index", "u", .absent = JSON_OR_NONE, .make = index_of_element },
        { "indexInArray", "u", .key = "index", .hidden = true },
        { "elements", "u", .absent = JSON_ZERO_NONE },
        { "parent", "u", .absent = JSON_ZERO_NONE },
};
const struct json_shape json_job_row = { "list", "(ussutttuusa{sv})", row, ELEMENTSOF(row) };

/* ---- events ---- */

static const struct json_member event[] = {
        { "sequence", "t", .at = 1 }, { "time", "t", .at = 2 },  { "kind", "s", .at = 3 },
        { "role", "s", .at = 4 },     { "index", "u", .at = 5 }, { "text", "s", .at = 6 },
};
const struct json_shape json_event = { "events", "(ttssus)", event, ELEMENTSOF(event) };

/* ---- verdicts ---- */

/* Of all of a job, where nobody stands out, there is no role, and so neither index nor host. */
static json_t *odd_index(const json_t *o) {
        return json_object_get(o, "role") ? json_incref(json_object_get(o, "oddIndex")) : NULL;
}

static json_t *odd_node(const json_t *o) {
        return json_object_get(o, "role") ? json_incref(json_object_get(o, "oddNode")) : NULL;
}

static const struct json_member verdict[] = {
        { "kind", "s" },
        { "all", "b" },
        { "since", "t" },
        { "found", "t" },
        { "text", "s" },
        { "action", "s" },
        { "numbers", "a{st}" },
        { "role", "s", .absent = JSON_OR_NONE },
        { "index", "u", .absent = JSON_OR_NONE, .make = odd_index },
        { "node", "s", .absent = JSON_OR_NONE, .make = odd_node },
        { "oddIndex", "u", .key = "index", .hidden = true },
        { "oddNode", "s", .key = "node", .hidden = true },
        { "acted", "t", .absent = JSON_ZERO_NONE },
};
const struct json_shape json_verdict = { "verdict", "a{sv}", verdict, ELEMENTSOF(verdict) };

/* ---- why ---- */

static const struct json_member group[] = {
        { "hosts", "u", .at = 1 },
        { "text", "s", .at = 2 },
};
static const struct json_shape groups = { "why: hosts", "(us)", group, ELEMENTSOF(group) };

/* What is said of a place that is waited for, by a job or by one that is tried. */
#define PLACE                                                                                                \
        { "summary", "s" }, { "position", "t" }, { "startsBy", "t" }, { "ahead", "t" }, { "victims", "u" },  \
                { "hosts", "a(us)", .parts = &groups }, {                                                    \
                "suggestions", "as"                                                                          \
        }

static const struct json_member why[] = {
        { "job", "u", .make = json_comes_later },
        { "state", "s" },
        { "pool", "s" },
        { "priority", "i" },
        { "requeues", "u" },
        { "reason", "s" },
        PLACE,
        { "comes", "s" },
        { "verdicts", "aa{sv}", .parts = &json_verdict, .make = json_comes_later },
};
const struct json_shape json_why = { "why", "a{sv}", why, ELEMENTSOF(why) };

static const struct json_member trial[] = {
        { "starts", "b" },
        { "executors", "u" },
        { "pool", "s" },
        { "priority", "i" },
        { "reason", "s" },
        { "ends", "b" },
        { "elements", "u", .absent = JSON_ZERO_NONE },
        { "search", "a{sv}", .absent = JSON_OR_NONE, .parts = &json_search },
        { "savepoint", "s", .absent = JSON_OR_NONE },
        PLACE,
        { "warnings", "as", .make = json_comes_later },
};
const struct json_shape json_trial = { "submit --dry-run", "a{sv}", trial, ELEMENTSOF(trial) };
