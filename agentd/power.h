/* SPDX-License-Identifier: Apache-2.0 */
/* Rebooting the host and switching it off. */
#pragma once

#include <systemd/sd-bus.h>

/* action: reboot or poweroff, else -EINVAL. bus: the system bus. Whether systemd does it is logged. */
int power_start(sd_bus *bus, const char *action);
