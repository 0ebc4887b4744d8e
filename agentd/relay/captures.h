/* SPDX-License-Identifier: Apache-2.0 */
/* Link1.Capture: from the order over the starter's look at its processes to the answer. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/executors/units.h"
#include "agentd/observe/observer.h"
#include "lib/base/cleanup.h"

struct captures;

int captures_new(sd_event *event, struct units *units, struct observer *observer, struct captures **ret);
/* After units_free(). */
void captures_free(struct captures *c);
DEFINE_CLEANUP(struct captures *, captures_free)

/* The order behind its head. Answered later, but for what is returned: negative with error set. */
int captures_order(struct captures *c, const struct executor_id *id, sd_bus_message *call,
                   sd_bus_error *error);
