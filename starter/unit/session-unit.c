/* SPDX-License-Identifier: Apache-2.0 */
/* Session -> transient unit. Invariant: nothing that the user says in a session is in the unit's properties,
 * which everybody may read. */
#include "starter/unit/session-unit.h"

#include <stdio.h>

#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "starter/unit/devices.h"
#include "starter/unit/hide.h"
#include "starter/unit/property.h"

/* How long a session whose terminal is gone may take. */
#define STOP_USEC UINT64_C(5000000)

static int append_environment(sd_bus_message *m, const struct session_unit *s) {
        char unit[UNIT_NAME_MAX], path[sizeof(PRIVATE_DIR) + UNIT_NAME_MAX + 8];

        TRY(property_strings(m, "Environment", s->environment));
        executor_unit_name(s->id->job, s->id->role, s->id->index, s->id->attempt, unit);
        snprintf(path, sizeof(path), PRIVATE_DIR "/%s/env", unit);
        return property_environment_file(m, path);
}

int session_unit_build(sd_bus_message *m, const struct session_unit *s) {
        static const char *const command[] = { PRIMUS_LIBEXECDIR "/primus-session", NULL };
        char unit[SESSION_UNIT_NAME_MAX], slice[UNIT_NAME_MAX], text[160], user[16];

        session_unit_name(s->id->job, s->id->role, s->id->index, s->id->attempt, s->session, unit);
        snprintf(text, sizeof(text), "Session in Primus job %u, %s %u", s->id->job, s->id->role,
                 s->id->index);
        snprintf(user, sizeof(user), "%u", s->uid);
        TRY(property_unit_begin(m, unit));
        TRY(property_string(m, "Description", text));
        TRY(property_string(m, "Slice", job_slice_name(s->id->job, slice)));
        TRY(property_string(m, "Type", "exec"));
        TRY(property_string(m, "CollectMode", "inactive-or-failed"));
        TRY(property_string(m, "User", user));
        TRY(property_bool(m, "NoNewPrivileges", s->no_new_privileges));
        TRY(property_bool(m, "IgnoreSIGPIPE", false));
        TRY(property_string(m, "WorkingDirectory", "/")); /* primus-session goes to the executor's */
        TRY(property_u64(m, "LimitMEMLOCK", s->memlock));
        TRY(open_files_append(m, &s->open_files));
        TRY(property_u64(m, "TimeoutStopUSec", STOP_USEC));
        TRY(append_environment(m, s));
        TRY(devices_append_none(m)); /* the executor's rules hold once it is there */
        if (s->hide_managers)
                TRY(hide_append(m));
        TRY(property_control(m, s->control));
        TRY(property_exec(m, "ExecStart", command, NULL));
        return property_unit_end(m);
}
