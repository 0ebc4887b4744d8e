/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in executors, joined to the link: masterd's calls on one side, primus-session's packets on the
 * other. A session lives as long as the connection for bulk, this agent, and its executor. What is under way
 * is in the calls that wait; nothing is read from either side that nobody waits for. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/executors/units.h"
#include "agentd/host/serving.h"
#include "lib/base/cleanup.h"

struct sessions;

/* node: this host's name, borrowed. */
int sessions_new(sd_event *event, struct units *units, struct serving *serving, const char *node,
                 struct sessions **ret);
/* After units_free(). */
void sessions_free(struct sessions *s);
DEFINE_CLEANUP(struct sessions *, sessions_free)

/* SessionOpen behind term and epoch, SessionRead, SessionWrite, SessionResize, SessionClose. Answered here,
 * also later, but for what is returned: negative with error set or -EBADMSG. */
int sessions_open(struct sessions *s, sd_bus_message *call, sd_bus_error *error);
/* The same for what a job has left on this host. */
int sessions_open_artifacts(struct sessions *s, sd_bus_message *call, sd_bus_error *error);
int sessions_read(struct sessions *s, sd_bus_message *call, sd_bus_error *error);
int sessions_write(struct sessions *s, sd_bus_message *call, sd_bus_error *error);
int sessions_resize(struct sessions *s, sd_bus_message *call, sd_bus_error *error);
int sessions_close(struct sessions *s, sd_bus_message *call, sd_bus_error *error);

/* The connection is gone: all end. */
void sessions_bulk_down(struct sessions *s);
/* As units_ops.other_job. */
void sessions_job_over(struct sessions *s, const char *unit, const char *result);
/* As units_ops.other_removed. */
void sessions_unit_gone(struct sessions *s, const char *unit);
