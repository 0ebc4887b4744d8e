/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a unit's processes from having others start something for them outside of the unit. */
#pragma once

#include <systemd/sd-bus.h>

/* Hides the managers of the host and of its users from the unit: their sockets are not there for it. */
int hide_append(sd_bus_message *m);
