/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a unit may open. Pure, as builder.h. */
#pragma once

#include <systemd/sd-bus.h>

#include "lib/wire/messages.h"
#include "starter/unit/environment.h"

/* Appends DevicePolicy=closed, and DeviceAllow= for the GPUs of the order, what they share, and RDMA where
 * the order asks for it. -EINVAL with *ret_why (allocated): a GPU that is not there. */
int devices_append(sd_bus_message *m, const struct start_order *o, const struct unit_context *c,
                   char **ret_why);

/* The body of SetUnitProperties for a unit that runs: these GPUs (uuids, NULL-ended) instead of those that it
 * had, for as long as it lives. GPUs that the host has no more are left out. */
int devices_build(sd_bus_message *m, const char *unit, char *const *gpus, const struct inventory *inventory,
                  bool rdma);

/* The same for a unit that needs none (a session until it is in its executor's cgroup). */
int devices_append_none(sd_bus_message *m);
