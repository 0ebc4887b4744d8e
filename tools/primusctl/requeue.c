/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl requeue. */
#include <inttypes.h>

#include "lib/base/cleanup.h"
#include "tools/primusctl/commands.h"

struct requeue_options {
        const char *reason;
};

static int requeue_run(struct cli *c, void *options, char **args, size_t n) {
        const struct requeue_options *o = options;
        int worst = CLI_OK;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
                struct job_ref job;
                int r = cli_job(c, args[i], &job);

                if (!r)
                        r = cli_job_call(c, &job, "Requeue", &m);
                if (!r && sd_bus_message_append(m, "s", o->reason ?: "") < 0)
                        r = cli_oom(c);
                if (!r)
                        r = cli_call(c, m, &job, &reply);
                if (r == CLI_UNREACHABLE || r == CLI_USAGE)
                        return r;
                if (r)
                        worst = r;
                else if (!c->json)
                        printf("Job %" PRIu32 " is stopped and waits again\n", job.number);
        }
        return worst;
}

static const struct cli_option requeue_options[] = {
        { "reason", 0, "TEXT", option_string, offsetof(struct requeue_options, reason), "for the events" },
        { 0 },
};

const struct command requeue_command = {
        .name = "requeue",
        .arguments = "JOB...",
        .help = "Stop jobs and put them back into the queue",
        .details = "They keep their number and the data that is acknowledged. A job's signal comes first, "
                   "see --signal of submit.",
        .options = requeue_options,
        .options_size = sizeof(struct requeue_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = requeue_run,
};
