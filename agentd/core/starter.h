/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/wire/starter.h"

/* Connects to primus-starter; the loop ends with a failure when the connection does, so that systemd starts
 * agentd anew. */
int starter_open(sd_event *event, sd_bus **ret);
