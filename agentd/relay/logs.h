/* SPDX-License-Identifier: Apache-2.0 */
/* Executors' lines on their way to masterd: the tail of each, and pages for those who ask. Both go over the
 * second connection. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/executors/units.h"
#include "agentd/link/link.h"
#include "lib/base/cleanup.h"

struct logs;

int logs_new(sd_event *event, struct units *units, struct logs **ret);
void logs_free(struct logs *l);
DEFINE_CLEANUP(struct logs *, logs_free)

/* Once, when the host's units are known: follows them. */
int logs_start(struct logs *l);
void logs_set_link(struct logs *l, struct link *link);

void logs_starting(struct logs *l, const struct executor_id *id);
void logs_ended(struct logs *l, const struct executor_id *id);

/* The body of ReadLog; answers the call later. -EBADMSG, -EINVAL, -EBUSY, -ENOMEM: it will not. */
int logs_read(struct logs *l, sd_bus_message *call);

/* There is a connection, to a masterd that may lack what the one before had not written: that goes first. */
void logs_bulk_up(struct logs *l);
/* What waited for the connection goes on; nobody waits for answers on one that is gone. */
void logs_resume(struct logs *l);
void logs_bulk_down(struct logs *l);
