/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what runs is a program of Primus as the job's user, that can write nothing, reaches no network
 * and gains no privilege; whatever lies in the directory is opened with that user's rights alone. */
#include "starter/unit/get-unit.h"

#include <stdio.h>

#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "starter/unit/devices.h"
#include "starter/unit/hide.h"
#include "starter/unit/property.h"

#define STOP_USEC UINT64_C(5000000)
#define MEMORY_MAX (UINT64_C(256) << 20)
#define TASKS_MAX UINT64_C(4)
/* It is in no job's slice: behind the jobs, and one processor of theirs at most. */
#define CPU_WEIGHT UINT64_C(10)
#define CPU_QUOTA_USEC UINT64_C(1000000)
/* Nobody reads what a job has left on one host for longer; agentd stops it when its session ends. */
#define RUNTIME_USEC (UINT64_C(12) * 3600 * 1000000)

int get_unit_build(sd_bus_message *m, const struct get_unit *g) {
        const char *const command[] = { PRIMUS_LIBEXECDIR "/primus-executor", "--collect", g->directory,
                                        NULL };
        char unit[UNIT_NAME_MAX], text[64], user[16];

        get_unit_name(g->job, g->session, unit);
        snprintf(text, sizeof(text), "Artifacts of Primus job %u", g->job);
        snprintf(user, sizeof(user), "%u", g->uid);
        TRY(property_unit_begin(m, unit));
        TRY(property_string(m, "Description", text));
        TRY(property_string(m, "Slice", "primus.slice"));
        TRY(property_string(m, "Type", "exec"));
        TRY(property_string(m, "CollectMode", "inactive-or-failed"));
        TRY(property_string(m, "User", user));
        TRY(property_bool(m, "NoNewPrivileges", true));
        TRY(property_bool(m, "PrivateNetwork", true));
        TRY(property_string(m, "ProtectSystem", "strict"));
        TRY(property_string(m, "WorkingDirectory", "/"));
        TRY(property_u64(m, "CPUWeight", CPU_WEIGHT));
        TRY(property_u64(m, "CPUQuotaPerSecUSec", CPU_QUOTA_USEC));
        TRY(property_u64(m, "MemoryMax", MEMORY_MAX));
        TRY(property_u64(m, "TasksMax", TASKS_MAX));
        TRY(property_u64(m, "RuntimeMaxUSec", RUNTIME_USEC));
        TRY(property_u64(m, "TimeoutStopUSec", STOP_USEC));
        TRY(devices_append_none(m));
        if (g->hide_managers)
                TRY(hide_append(m));
        TRY(property_control(m, g->control));
        TRY(property_exec(m, "ExecStart", command, NULL));
        return property_unit_end(m);
}
