/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Link1, the master's side. The contract is dbus/org.primus.Link1.xml. */
#pragma once

#include <systemd/sd-bus.h>

/* userdata: struct link. */
extern const sd_bus_vtable api_link_vtable[];
