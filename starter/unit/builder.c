/* SPDX-License-Identifier: Apache-2.0 */
/* Start order -> transient unit. Invariant: the properties, which every user of the host may read, hold
 * identity and limits only; nothing that the user gave us but the command line, which /proc shows as well. */
#include "starter/unit/builder.h"

#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/base/utf8.h"
#include "lib/unit/files.h"
#include "lib/unit/identity.h"
#include "lib/unit/output.h"
#include "starter/unit/devices.h"
#include "starter/unit/enforce.h"
#include "starter/unit/hide.h"
#include "starter/unit/property.h"

/* How long unpacking the job's files may take before systemd gives up the start. */
#define STAGE_USEC (UINT64_C(3600) * USEC_PER_SEC)

#define EXECUTOR_PATH PRIMUS_LIBEXECDIR "/primus-executor"
#define LAUNCH_PATH PRIMUS_LIBEXECDIR "/primus-launch"

/* The launcher stands before every command: it changes to the job's directory, opens the output file and
 * looks for the command, all with the user's rights and in his environment. So no path of the user's is a
 * property that systemd acts on as root, and the end of a unit leaves its record whatever became of the
 * directory. */
static int append_start(sd_bus_message *m, const struct start_order *o, const struct unit_context *c,
                        char **ret_why) {
        const char *head[8] = { LAUNCH_PATH };
        _cleanup_free_ char *output = NULL;
        size_t n = 1;

        if (o->output && *o->output) {
                int r = output_expand(o->output, &o->id, c->node, NULL, &output);
                if (r == -EINVAL && asprintf(ret_why,
                                             "the output pattern %s has an unknown letter behind %%; known "
                                             "are %%j %%r %%i %%a %%n",
                                             o->output) < 0)
                        return -ENOMEM;
                if (r < 0)
                        return r;
                if (!utf8_valid(output, strlen(output)))
                        return asprintf(ret_why, "the output file's name is not valid UTF-8, which systemd "
                                                 "cannot take") < 0
                                       ? -ENOMEM
                                       : -EINVAL;
                head[n++] = "--output";
                head[n++] = output;
        }
        head[n++] = "--";
        if (o->kind == ORDER_FEED) {
                head[n++] = EXECUTOR_PATH;
                head[n++] = "--feed";
                head[n++] = "--";
        } else if (o->kind == ORDER_SCAN) {
                head[n++] = EXECUTOR_PATH;
                head[n++] = "--scan";
        }
        return property_exec(m, "ExecStart", head, o->argv);
}

static int append_commands(sd_bus_message *m, const struct start_order *o, const struct unit_context *c,
                           char **ret_why) {
        const char *const stage[] = { EXECUTOR_PATH, "--stage", c->bundle, c->work, NULL };

        if (c->bundle)
                TRY(property_exec(m, "ExecStartPre", stage, NULL));
        /* ExecStopPost=+primus-exit comes from units/executor-exit.conf. */
        return append_start(m, o, c, ret_why);
}

static int append_output(sd_bus_message *m, const struct start_order *o) {
        char field[64];
        const struct {
                const char *name;
                uint32_t value;
        } numbers[] = { { "PRIMUS_JOB", o->id.job }, { "PRIMUS_INDEX", o->id.index } };

        TRY(property_string(m, "StandardOutput", "journal"));
        TRY(property_string(m, "StandardError", "journal"));
        TRY(property_string(m, "SyslogIdentifier", o->id.role));
        /* An interval of 0 would be journald's default limit; a microsecond's is none. */
        TRY(property_u64(m, "LogRateLimitIntervalUSec", 1));
        TRY(property_u32(m, "LogRateLimitBurst", 100000000));
        /* "<3>" at the start of a line is the program's own text. */
        TRY(property_bool(m, "SyslogLevelPrefix", false));
        TRY(property_open(m, "LogExtraFields", "aay"));
        TRY(sd_bus_message_open_container(m, 'a', "ay"));
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                snprintf(field, sizeof(field), "%s=%u", numbers[i].name, numbers[i].value);
                TRY(sd_bus_message_append_array(m, 'y', field, strlen(field)));
        }
        snprintf(field, sizeof(field), "PRIMUS_ROLE=%s", o->id.role);
        TRY(sd_bus_message_append_array(m, 'y', field, strlen(field)));
        TRY(sd_bus_message_close_container(m));
        return property_close(m);
}

static int append_environment(sd_bus_message *m, const struct start_order *o, const struct unit_context *c,
                              const char *unit) {
        _cleanup_(strings_free_p) char **identity = NULL;
        char path[sizeof(PRIVATE_DIR) + UNIT_NAME_MAX + 8];

        TRY(unit_identity(o, c->node, c->term, &identity));
        TRY(property_strings(m, "Environment", identity));
        snprintf(path, sizeof(path), PRIVATE_DIR "/%s/env", unit);
        return property_environment_file(m, path);
}

static int check_order(const struct start_order *o, const struct unit_context *c, char **ret_why) {
        int r = 0;

        if (!o->argv || (o->kind != ORDER_SCAN && (!*o->argv || !**o->argv)))
                r = asprintf(ret_why, "the command is empty");
        else if (!text_is_setting(c->directory))
                r = asprintf(ret_why, "the working directory's name is not valid UTF-8, or has control "
                                      "characters, line breaks, or a blank or backslash where it ends");
        for (size_t i = 0; o->argv && o->argv[i] && r == 0; i++)
                if (!utf8_valid(o->argv[i], strlen(o->argv[i])))
                        r = asprintf(
                                ret_why,
                                "argument %zu of the command is not valid UTF-8, which systemd cannot take",
                                i);
        return r < 0 ? -ENOMEM : r > 0 ? -EINVAL : 0;
}

/* Who divides his cgroup has limits of his own in there, at which one part ends and not all of it. */
static int append_delegation(sd_bus_message *m, const struct start_order *o) {
        if (o->extra.delegate == 0)
                return property_string(m, "OOMPolicy", "kill");
        TRY(property_string(m, "OOMPolicy", "continue"));
        return property_strings(m, "DelegateControllers",
                                (char *[]){ (char *)"cpu", (char *)"memory", (char *)"pids", NULL });
}

/* With READY=1 to come, the start lasts until then: systemd waits for it, also over our restarts. */
static int append_type(sd_bus_message *m, const struct start_order *o, const struct unit_context *c) {
        bool notify = strcmp(o->extra.ready, "notify") == 0;

        TRY(property_string(m, "Type", notify ? "notify" : "exec"));
        /* Of any process: the trainer is rarely the main one. */
        if (notify || o->extra.watchdog_usec > 0)
                TRY(property_string(m, "NotifyAccess", "all"));
        if (o->extra.watchdog_usec > 0)
                TRY(property_u64(m, "WatchdogUSec", o->extra.watchdog_usec));
        if (notify)
                return property_u64(m, "TimeoutStartUSec",
                                    o->extra.ready_timeout_usec > 0 ? o->extra.ready_timeout_usec
                                                                    : UINT64_MAX);
        return c->bundle ? property_u64(m, "TimeoutStartUSec", STAGE_USEC) : 0;
}

int unit_build(sd_bus_message *m, const struct start_order *o, const struct unit_context *c, char **ret_why) {
        char unit[UNIT_NAME_MAX], slice[UNIT_NAME_MAX], text[160];

        TRY(check_order(o, c, ret_why));
        executor_unit_name(o->id.job, o->id.role, o->id.index, o->id.attempt, unit);
        TRY(property_unit_begin(m, unit));
        snprintf(text, sizeof(text), "Primus job %u, %s %u, attempt %u", o->id.job, o->id.role, o->id.index,
                 o->id.attempt);
        TRY(property_string(m, "Description", text));
        TRY(property_string(m, "Slice", job_slice_name(o->id.job, slice)));
        TRY(append_type(m, o, c));
        TRY(property_string(m, "CollectMode", "inactive-or-failed"));
        TRY(property_string(m, "KillMode", "control-group"));
        TRY(property_bool(m, "SendSIGKILL", true));
        /* The limit is also primus-exit's; a shorter grace is kept by a timer of agentd's own. */
        TRY(property_u64(m, "TimeoutStopUSec", MAX(o->grace_usec, UNIT_STOP_USEC_MIN)));
        snprintf(text, sizeof(text), "%u", o->uid);
        TRY(property_string(m, "User", text));
        TRY(append_delegation(m, o));
        TRY(property_bool(m, "NoNewPrivileges", !o->new_privileges));
        TRY(property_bool(m, "IgnoreSIGPIPE", false)); /* as in a shell: "producer | head" ends */
        /* Not the job's: that is the launcher's to enter (PRIMUS_DIRECTORY). */
        TRY(property_string(m, "WorkingDirectory", "/"));
        TRY(append_environment(m, o, c, unit));
        TRY(limits_append(m, o, c));
        TRY(devices_append(m, o, c, ret_why));
        if (c->hide_managers)
                TRY(hide_append(m));
        TRY(append_output(m, o));
        TRY(append_commands(m, o, c, ret_why));
        return property_unit_end(m);
}
