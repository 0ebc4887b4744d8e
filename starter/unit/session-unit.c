/* SPDX-License-Identifier: Apache-2.0 */
/* Session -> transient unit. Invariant: nothing that the user says in a session is in the unit's properties,
 * which everybody may read. */
#include "starter/unit/session-unit.h"

#include <stdio.h>

#include "starter/unit/devices.h"
#include "starter/unit/environment.h"
#include "lib/base/try.h"
#include "lib/unit/files.h"
#include "lib/base/unitname.h"

/* How long a session whose terminal is gone may take. */
#define STOP_USEC UINT64_C(5000000)

static int append_environment(sd_bus_message *m, const struct session_unit *s) {
        char unit[UNIT_NAME_MAX], path[sizeof(PRIVATE_DIR) + UNIT_NAME_MAX + 8];

        TRY(sd_bus_message_open_container(m, 'r', "sv"));
        TRY(sd_bus_message_append(m, "s", "Environment"));
        TRY(sd_bus_message_open_container(m, 'v', "as"));
        TRY(sd_bus_message_append_strv(m, (char **)s->environment));
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        executor_unit_name(s->id->job, s->id->role, s->id->index, s->id->attempt, unit);
        snprintf(path, sizeof(path), PRIVATE_DIR "/%s/env", unit);
        return sd_bus_message_append(m, "(sv)", "EnvironmentFiles", "a(sb)", 1, path, 0);
}

int session_unit_build(sd_bus_message *m, const struct session_unit *s) {
        static const char program[] = PRIMUS_LIBEXECDIR "/primus-session";
        char unit[SESSION_UNIT_NAME_MAX], slice[UNIT_NAME_MAX], text[160], user[16];

        session_unit_name(s->id->job, s->id->role, s->id->index, s->id->attempt, s->session, unit);
        snprintf(text, sizeof(text), "Session in Primus job %u, %s %u", s->id->job, s->id->role,
                 s->id->index);
        snprintf(user, sizeof(user), "%u", s->uid);
        TRY(sd_bus_message_append(m, "ss", unit, "fail"));
        TRY(sd_bus_message_open_container(m, 'a', "(sv)"));
        TRY(sd_bus_message_append(m, "(sv)(sv)(sv)(sv)", "Description", "s", text, "Slice", "s",
                                  job_slice_name(s->id->job, slice), "Type", "s", "exec", "CollectMode", "s",
                                  "inactive-or-failed"));
        TRY(sd_bus_message_append(m, "(sv)(sv)(sv)(sv)(sv)(sv)", "User", "s", user, "NoNewPrivileges", "b",
                                  (int)s->no_new_privileges, "IgnoreSIGPIPE", "b", 0, "WorkingDirectory", "s",
                                  "/", "LimitMEMLOCK", "t", s->memlock, "TimeoutStopUSec", "t",
                                  STOP_USEC));
        TRY(append_environment(m, s));
        TRY(devices_append_none(m)); /* the executor's rules hold once it is there */
        TRY(sd_bus_message_append(m, "(sv)(sv)(sv)", "StandardInputFileDescriptor", "h", s->control,
                                  "StandardOutput", "s", "null", "StandardError", "s", "journal"));
        TRY(sd_bus_message_append(m, "(sv)", "ExecStart", "a(sasb)", 1, program, 1, program, 0));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_append(m, "a(sa(sv))", 0);
}
