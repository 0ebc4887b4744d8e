/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl suspend and resume. */
#include <inttypes.h>

#include "tools/primusctl/commands.h"

static int each(struct cli *c, const char *method, const char *what, char **args, size_t n) {
        int worst = CLI_OK;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
                struct job_ref job;
                int r = cli_job(c, args[i], &job);

                if (!r)
                        r = cli_job_call(c, &job, method, &m);
                if (!r)
                        r = cli_call(c, m, &job, &reply);
                if (r == CLI_UNREACHABLE || r == CLI_USAGE)
                        return r;
                if (r)
                        worst = r;
                else if (!c->json)
                        printf("Job %" PRIu32 " %s\n", job.number, what);
        }
        return worst;
}

static int suspend_run(struct cli *c, void *options, char **args, size_t n) {
        (void)options;
        return each(c, "Suspend", "is suspended: its data is held back", args, n);
}

static int resume_run(struct cli *c, void *options, char **args, size_t n) {
        (void)options;
        return each(c, "Resume", "goes on", args, n);
}

const struct command suspend_command = {
        .name = "suspend",
        .arguments = "JOB...",
        .help = "Hold back the data of jobs: trainers wait",
        .details =
                "Nothing more is handed out or delivered; the executors keep their places, memory and what "
                "they hold.",
        .min = 1,
        .max = SIZE_MAX,
        .run = suspend_run,
};

const struct command resume_command = {
        .name = "resume",
        .arguments = "JOB...",
        .help = "Let the data of suspended jobs go on",
        .min = 1,
        .max = SIZE_MAX,
        .run = resume_run,
};
