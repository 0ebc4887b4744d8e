/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd may call on either connection; userdata is the manager. */
#pragma once

#include <systemd/sd-bus.h>

extern const sd_bus_vtable orders_vtable[], bulk_orders_vtable[];
