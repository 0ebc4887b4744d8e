/* SPDX-License-Identifier: Apache-2.0 */
/* The agent of a host that has joined. */
#pragma once

/* Stops primus-agentd, if it runs, so that it does not go on with an identity that is about to be replaced.
 * Executors do not notice. */
void agent_stop(void);

/* Enables primus-agentd and starts it, and waits until it is registered with masterd. Says how it
 * went; an exit status as in place.h. Where systemd does not run, says what to do once it does. */
int agent_start(const char *node, const char *master);
