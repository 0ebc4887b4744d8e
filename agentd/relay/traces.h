/* SPDX-License-Identifier: Apache-2.0 */
/* Link1.Trace: latency on demand. A trace lives from call to call: each says for how long it is wanted beyond
 * that, and when nobody says so any more it is taken out of the kernel, whatever became of who asked. Several
 * may ask for the same: all get the same counts, which only grow, and take the difference of what they want.
 */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/executors/units.h"
#include "agentd/observe/observer.h"
#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"

/* Executors of one user that are traced at a time, in one way: a host has room for TRACE_UNITS_MAX, and
 * nobody takes all of it. */
#define TRACE_USER_MAX 16u

struct traces;
int traces_new(sd_event *event, struct units *units, struct observer *observer, struct traces **ret);
void traces_free(struct traces *t);
DEFINE_CLEANUP(struct traces *, traces_free)

/* The order behind its head; answers, the first of a kind when the starter has. */
int traces_order(struct traces *t, const struct executor_id *id, sd_bus_message *call, sd_bus_error *error);
/* The executor has ended. */
void traces_ended(struct traces *t, const struct executor_id *id);
