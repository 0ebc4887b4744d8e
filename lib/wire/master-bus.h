/* SPDX-License-Identifier: Apache-2.0 */
/* The way to org.primus.Master1: the system bus where masterd is on it, and otherwise the socket of this
 * host's agent, which hands calls on (agentd/calls). */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

#define MASTER_NAME "org.primus.Master1"
#define MASTER_SOCKET "/run/primus/agent/master.sock"
/* "systemctl enable" of masterd makes this link, by which the bus starts it. */
#define MASTER_ENABLED "/etc/systemd/system/dbus-" MASTER_NAME ".service"

/* And while it runs (RuntimeDirectory= of its unit). */
#define MASTER_RUNS "/run/primus-masterd"

/* Whether masterd is on this host's system bus, or is started by it. */
bool master_is_here(void);
/* A connection to whichever it is; where there is no socket, what sd_bus_open_system() returned. ret_agent:
 * it is the socket's. -ECONNREFUSED: so it would be, and the agent is being started again. */
int master_bus_open(sd_bus **ret, bool *ret_agent);
