/* SPDX-License-Identifier: Apache-2.0 */
/* How rows of the schema's tables are written. For the files of tables alone. */
#pragma once

#include "lib/base/cleanup.h"
#include "masterd/spec/schema.h"

#define SCHEMA(table)                                                                                        \
        { .keys = table, .n = ELEMENTSOF(table) }
#define AT(type, member) .offset = offsetof(struct type, member)
#define LIST_AT(type, member, counter)                                                                       \
        .offset = offsetof(struct type, member), .count = offsetof(struct type, counter)
#define RANGE(a, b) .min = (a), .max = (b)
#define WORDS(table) .names = (table), .max = ELEMENTSOF(table) - 1
#define CHOOSES(number, type, member, value)                                                                 \
        .group = (number), .choosing = true, .choice_at = offsetof(struct type, member), .choice = (value)
#define CHECKED(n, t, ...)                                                                                   \
        { .name = (n), .type = (t), .status = STATUS_QUIET, .offset = NO_TARGET, __VA_ARGS__ }
#define WARNED(n, t, why, ...)                                                                               \
        { .name = (n), .type = (t), .status = STATUS_WARN, .hint = (why), .offset = NO_TARGET, __VA_ARGS__ }
#define SLIP(n, t, why, ...)                                                                                 \
        { .name = (n), .type = (t), .status = STATUS_SLIP, .hint = (why), .offset = NO_TARGET, __VA_ARGS__ }
#define UNBUILT(n, t, why, ...)                                                                              \
        {                                                                                                    \
                .name = (n), .type = (t), .status = STATUS_UNBUILT, .hint = (why), .offset = NO_TARGET,      \
                __VA_ARGS__                                                                                  \
        }

/* Another word for what a key before it says; number is the group of the two. */
#define SHORT(n, t, number, ...)                                                                             \
        { .name = (n), .type = (t), .unwritten = true, .group = (number), __VA_ARGS__ }

#define DEAD "has no effect, here or upstream; remove it"
#define TEXT_RANGE RANGE(0, SPEC_STRING_MAX)
#define DURATION_MAX (UINT64_C(3650) * 86400 * 1000000)
