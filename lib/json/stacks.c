/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of an executor wait in: two replies in one message, a list and what stands behind it. */
#include "lib/json/replies.h"

static const struct json_member thread[] = {
        { "pid", "u", .at = 1 },
        { "tid", "u", .at = 2 },
        { "state", "s", .at = 3 },
        { "waits", "s", .at = 4 },
        { "name", "s", .at = 5 },
        { "call", "s", .at = 6, .absent = JSON_ZERO_NONE },
        { "kernel", "s", .at = 7, .absent = JSON_ZERO_NONE },
};
const struct json_shape json_thread = { "stacks: thread", "(uusssss)", thread, ELEMENTSOF(thread) };

static const struct json_member program[] = {
        { "pid", "u", .at = 1 },
        { "text", "s", .at = 2 },
};
static const struct json_shape programs = { "stacks: program", "(us)", program, ELEMENTSOF(program) };

static const struct json_member capture[] = {
        { "role", "s", .make = json_comes_later },
        { "index", "u", .make = json_comes_later },
        { "node", "s", .make = json_comes_later },
        { "error", "s", .absent = JSON_OR_NONE },
        { "total", "u" },
        { "threads", "a(uusssss)", .parts = &json_thread, .make = json_comes_later },
        { "programs", "a(us)", .key = "python", .parts = &programs },
        { "note", "s", .absent = JSON_ZERO_NONE },
};
const struct json_shape json_capture = { "stacks", "a{sv}", capture, ELEMENTSOF(capture) };
