/* SPDX-License-Identifier: Apache-2.0 */
/* The system bus of another host, over ssh(1). */
#pragma once

#include <systemd/sd-bus.h>

/* Connects to the system bus of host, [USER@]HOST[:PORT]. As sd_bus_open_system_remote() does, but that
 * Ctrl-C does not reach ssh: the terminal sends it to all that run in front, and whoever waits for a job has
 * to say what becomes of it. What ssh has to say or to ask it says and asks itself.
 *
 * -EINVAL: not a host. That there is no way in is known by the first call alone: -ECONNRESET, -ENOTCONN. */
int remote_open(const char *host, sd_bus **ret);
