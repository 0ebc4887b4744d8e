/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/unit/exit-explain.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"

static char *explain_oom(const struct exit_report *e, const char *node) {
        static const struct {
                const char *at, *words;
        } limits[] = {
                { "job", "the limit of the job's executors on that host together" },
                { "above", "the limit of all jobs on that host together" },
                { "host", "the end of the host's memory" },
                { "node", "the end of the memory of its NUMA nodes" },
        };
        char held[FORMAT_SIZE_MAX];
        const char *words = "its memory limit";
        char *text;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(limits); i++)
                if (strcmp(limits[i].at, e->oom.at) == 0)
                        words = limits[i].words;
        if (!*e->oom.task)
                r = asprintf(&text, "out of memory on host %s: the kernel killed it at its memory limit",
                             node);
        else
                r = asprintf(&text, "the kernel killed %s (pid %u) on host %s, which held %s, at %s",
                             e->oom.task, e->oom.pid, node, format_size(e->oom.held, held, sizeof(held)),
                             words);
        return r < 0 ? NULL : text;
}

char *exit_explain(const struct exit_report *e, const char *node, const char *command, const char *directory,
                   uint32_t uid) {
        char *text = NULL;
        int r = -1;

        if (strcmp(e->result, "oom-kill") == 0)
                return explain_oom(e, node);
        else if (strcmp(e->result, "timeout") == 0 && !e->stop_requested && !e->stop_local)
                r = asprintf(&text, "stopped on host %s: the time limit was over", node);
        else if (strcmp(e->result, "watchdog") == 0)
                r = asprintf(&text, "stopped on host %s: its watchdog was not fed in time", node);
        else if (strcmp(e->result, "no-record") == 0)
                r = asprintf(&text, "the unit is gone from host %s and left no exit record", node);
        else if (strcmp(e->code, "exited") != 0 || e->status < 200 || e->status > 243 ||
                 strcmp(e->result, "exit-code") != 0)
                return strdup("");
        else
                /* systemd.exec(5), "Process Exit Codes"; the user's program may return these numbers too, so
                 * the sentences that are not certain say the number. */
                switch (e->status) {
                case 200:
                        r = asprintf(&text,
                                     "directory %s does not exist on host %s or user %u may not enter it",
                                     directory ?: "(the working directory)", node, uid);
                        break;
                case 203:
                        r = asprintf(&text, "command not found or not executable on host %s: %s", node,
                                     command ?: "(see the job's configuration)");
                        break;
                case 216:
                        r = asprintf(&text,
                                     "systemd could not take on the groups of uid %u on host %s (status 216)",
                                     uid, node);
                        break;
                case 217:
                        r = asprintf(&text, "no user with uid %u on host %s", uid, node);
                        break;
                case 226:
                        r = asprintf(
                                &text,
                                "systemd could not hide what the executor is kept from on host %s (status "
                                "226; HideManagers= in agentd.conf there)",
                                node);
                        break;
                case 209:
                        r = asprintf(&text,
                                     "systemd could not set up standard output on host %s (status 209)",
                                     node);
                        break;
                case 214:
                case 206:
                case 205:
                        r = asprintf(&text,
                                     "systemd could not apply a limit of the unit on host %s (status %d)",
                                     node, e->status);
                        break;
                case 219:
                        r = asprintf(
                                &text,
                                "systemd could not move the executor into its cgroup on host %s (status 219)",
                                node);
                        break;
                default:
                        r = asprintf(&text,
                                     "exit status %d on host %s: systemd could not set the executor up, or "
                                     "its program returned that itself",
                                     e->status, node);
                }
        return r < 0 ? NULL : text;
}
