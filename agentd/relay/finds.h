/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd wants to know of the last lines of executors that have ended: which regular expressions they
 * match. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"

struct finds;

int finds_new(sd_event *event, struct finds **ret);
void finds_free(struct finds *f);
DEFINE_CLEANUP(struct finds *, finds_free)

/* The body of FindInLog behind the id; answers the call later. -EBADMSG, -ENOMEM: it will not. */
int finds_order(struct finds *f, const struct executor_id *id, sd_bus_message *call);
