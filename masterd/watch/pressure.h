/* SPDX-License-Identifier: Apache-2.0 */
/* What agents tell of executors that lack memory or I/O, the moment it happens. */
#pragma once

#include <stdint.h>

#include "lib/wire/messages.h"

struct manager;
struct node;

/* what: "memory", "io" (amount: microseconds in which all its threads stood still), "memory-high",
 * "memory-max" (how often it ran into the limit), "oom" (processes killed). Others, and executors that do not
 * run on the node, are passed over. */
void pressure_told(struct manager *m, struct node *node, const struct executor_id *id, const char *what,
                   uint64_t amount);
