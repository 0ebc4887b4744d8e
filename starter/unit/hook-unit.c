/* SPDX-License-Identifier: Apache-2.0 */
#include "starter/unit/hook-unit.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "starter/unit/property.h"

#define STOP_USEC (5 * USEC_PER_SEC)

int hook_unit_build(sd_bus_message *m, const char *unit, const char *name, char *const *env,
                    uint64_t timeout_usec, int output) {
        const char *const command[] = { PRIMUS_LIBEXECDIR "/primus-hook", name, NULL };
        char text[64];

        snprintf(text, sizeof(text), "Primus: the site's %s", name);
        TRY(property_unit_begin(m, unit));
        TRY(property_string(m, "Description", text));
        TRY(property_string(m, "Type", "oneshot"));
        TRY(property_string(m, "CollectMode", "inactive-or-failed"));
        TRY(property_string(m, "KillMode", "control-group"));
        TRY(property_exec(m, "ExecStart", command, NULL));
        TRY(property_u64(m, "TimeoutStartUSec", timeout_usec));
        TRY(property_u64(m, "TimeoutStopUSec", STOP_USEC));
        TRY(property_descriptor(m, "StandardOutputFileDescriptor", output));
        TRY(property_descriptor(m, "StandardErrorFileDescriptor", output));
        TRY(property_strings(m, "Environment", env));
        return property_unit_end(m);
}
