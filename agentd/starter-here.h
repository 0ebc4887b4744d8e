/* SPDX-License-Identifier: Apache-2.0 */
/* The starter, in this process, until it is one of its own. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct starter_here;
/* *ret_bus: the agent's end, the caller's. */
int starter_here_new(sd_event *event, struct starter_here **ret, sd_bus **ret_bus);
void starter_here_free(struct starter_here *s);
DEFINE_CLEANUP(struct starter_here *, starter_here_free)
