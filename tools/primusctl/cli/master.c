/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the bus and systemd about masterd. Invariant: whatever does not answer as expected changes nothing. */
#include "tools/primusctl/cli/master.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "tools/primusctl/cli/cli.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define UNIT_PATH "/org/freedesktop/systemd1/unit/primus_2dmasterd_2eservice"

static bool has_owner(sd_bus *bus) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        int b;

        return sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                  "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s",
                                  MASTER_NAME) < 0 ||
               sd_bus_message_read(reply, "b", &b) < 0 || b;
}

char *master_failure(sd_bus *bus) {
        _cleanup_free_ char *state = NULL, *load = NULL;
        char *text = NULL;

        if (has_owner(bus))
                return NULL;
        if (sd_bus_get_property_string(bus, SYSTEMD, UNIT_PATH, SYSTEMD ".Unit", "LoadState", NULL, &load) >=
                    0 &&
            strcmp(load, "masked") == 0)
                return strdup(
                        "it is masked; \"systemctl unmask primus-masterd\" ends that, or with --runtime");
        if (sd_bus_get_property_string(bus, SYSTEMD, UNIT_PATH, SYSTEMD ".Unit", "ActiveState", NULL,
                                       &state) < 0 ||
            strcmp(state, "failed") != 0)
                return NULL;
        if (sd_bus_get_property_string(bus, SYSTEMD, UNIT_PATH, SYSTEMD ".Service", "StatusText", NULL,
                                       &text) < 0)
                text = strdup("");
        return text;
}
