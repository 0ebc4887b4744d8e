/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl requeue. */
#include "tools/primusctl/cli/commands.h"

struct requeue_options {
        const char *reason;
};

static int requeue_run(struct cli *c, void *options, char **args, size_t n) {
        const struct requeue_options *o = options;

        return cli_each_job(c, args, n, "Requeue", o->reason ?: "", "is stopped and waits again");
}

static const struct cli_option requeue_options[] = {
        { "reason", 0, "TEXT", option_string, offsetof(struct requeue_options, reason), "for the events" },
        { 0 },
};

const struct command requeue_command = {
        .name = "requeue",
        .arguments = "[--reason=TEXT] JOB...",
        .help = "Stop jobs and put them back into the queue",
        .details = "They keep their number and the data that is acknowledged. A job's signal comes first\n"
                   "(submit --signal).",
        .options = requeue_options,
        .options_size = sizeof(struct requeue_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = requeue_run,
};
