/* SPDX-License-Identifier: Apache-2.0 */
#include "starter/unit/hook-unit.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "starter/unit/property.h"

#define HOOK_PATH PRIMUS_LIBEXECDIR "/primus-hook"
#define STOP_USEC (5 * USEC_PER_SEC)

int hook_unit_build(sd_bus_message *m, const char *unit, const char *name, char *const *env,
                    uint64_t timeout_usec, int output) {
        char text[64];

        snprintf(text, sizeof(text), "Primus: the site's %s", name);
        TRY(sd_bus_message_append(m, "ss", unit, "fail"));
        TRY(sd_bus_message_open_container(m, 'a', "(sv)"));
        TRY(property_string(m, "Description", text));
        TRY(property_string(m, "Type", "oneshot"));
        TRY(property_string(m, "CollectMode", "inactive-or-failed"));
        TRY(property_string(m, "KillMode", "control-group"));
        TRY(sd_bus_message_append(m, "(sv)", "ExecStart", "a(sasb)", 1, HOOK_PATH, 2, HOOK_PATH, name, 0));
        TRY(property_u64(m, "TimeoutStartUSec", timeout_usec));
        TRY(property_u64(m, "TimeoutStopUSec", STOP_USEC));
        TRY(sd_bus_message_append(m, "(sv)(sv)", "StandardOutputFileDescriptor", "h", output,
                                  "StandardErrorFileDescriptor", "h", output));
        TRY(property_open(m, "Environment", "as"));
        TRY(sd_bus_message_append_strv(m, (char **)env));
        TRY(property_close(m));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_append(m, "a(sa(sv))", 0);
}
