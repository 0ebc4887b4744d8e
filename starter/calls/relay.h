/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to systemd whose answer is the answer to a call of agentd's. */
#pragma once

#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"

/* Calls of a connection whose answer systemd has not given: more than agentd has under way at a time. */
#define RELAYED_MAX 512u

struct connection;
struct relay;

/* systemd: the system bus, attached; stays the caller's. connect: makes another connection to it that is not
 * started; NULL: to the system's. */
int relay_new(sd_bus *systemd, int (*connect)(sd_bus **ret, void *userdata), void *userdata,
              struct relay **ret);
/* After all connections. */
void relay_free(struct relay *r);
DEFINE_CLEANUP(struct relay *, relay_free)

/* A call of systemd's manager. */
int relay_message(struct connection *c, const char *member, sd_bus_message **ret);
/* Sends it; systemd's answer or its error becomes that of call. 1, or an error of call in *error. */
int relay_call(struct connection *c, sd_bus_message *call, sd_bus_message *m, sd_bus_error *error);
/* The same where the answer is the path of a job. */
int relay_job(struct connection *c, sd_bus_message *call, sd_bus_message *m, sd_bus_error *error);
/* The connection goes: nobody waits for its answers. */
void relay_forget(struct connection *c);
