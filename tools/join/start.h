/* SPDX-License-Identifier: Apache-2.0 */
/* The agent of a host that has joined. */
#pragma once

/* Enables primus-agentd and starts it (again), and waits until it is registered with masterd. Says how it
 * went; an exit status as in place.h. Where systemd does not run, says what to do once it does. */
int agent_start(const char *node, const char *master);
