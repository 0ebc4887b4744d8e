/* SPDX-License-Identifier: Apache-2.0 */
/* The ways out of a unit. Invariant: directories are hidden and not the sockets in them, which are made anew
 * when their service starts again, and would then be there for units that were made before. */
#include "agentd/unit/hide.h"

#include "agentd/unit/property.h"

int hide_append(sd_bus_message *m) {
        /* "-": a host without it has nothing to hide. */
        static const char *const paths[] = {
                "-/run/user", /* each user's manager, and his bus */
                "-/run/dbus", /* the system bus: logind (linger), systemd, machined, ... */
                NULL,
        };

        return property_strings(m, "InaccessiblePaths", (char *const *)paths);
}
