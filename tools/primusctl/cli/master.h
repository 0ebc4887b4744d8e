/* SPDX-License-Identifier: Apache-2.0 */
/* Whether masterd is one that has given up starting, as systemd on its host tells it. */
#pragma once

#include <systemd/sd-bus.h>

/* What its unit says why (allocated), where nobody has masterd's name and its unit has failed or is masked;
 * "" where the unit does not say. NULL: it runs, is being started, may be started by the bus, or nothing is
 * known. Activation by the bus would only be waited for in vain, for 25 s. */
char *master_failure(sd_bus *bus);
