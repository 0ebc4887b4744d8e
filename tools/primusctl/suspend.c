/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl suspend and resume. */
#include <inttypes.h>

#include "tools/primusctl/commands.h"

struct suspend_options {
        bool data, freeze, stop;
};

/* mode NULL: resume. */
static int each(struct cli *c, const char *mode, const char *what, char **args, size_t n) {
        int worst = CLI_OK;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
                struct job_ref job;
                int r = cli_job(c, args[i], &job);

                if (!r)
                        r = cli_job_call(c, &job, mode ? "SuspendAs" : "Resume", &m);
                if (!r && mode && sd_bus_message_append(m, "s", mode) < 0)
                        return cli_oom(c);
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
        const struct suspend_options *o = options;

        if (o->data + o->freeze + o->stop > 1)
                return cli_usage(c, "suspend: --data, --freeze and --stop exclude each other");
        if (o->freeze)
                return each(c, "freeze", "is suspended: its processes are frozen", args, n);
        if (o->stop)
                return each(c, "stop", "is held: its executors are stopped, and it waits until it is resumed",
                            args, n);
        return each(c, "data", "is suspended: its data is held back", args, n);
}

static int resume_run(struct cli *c, void *options, char **args, size_t n) {
        (void)options;
        return each(c, NULL, "goes on", args, n);
}

static const struct cli_option suspend_options[] = {
        { "data", 0, NULL, NULL, offsetof(struct suspend_options, data),
          "hold back its data: trainers wait (the default)" },
        { "freeze", 0, NULL, NULL, offsetof(struct suspend_options, freeze),
          "freeze its processes: they keep memory, GPUs and ports" },
        { "stop", 0, NULL, NULL, offsetof(struct suspend_options, stop),
          "stop its executors, which frees all that, and keep it waiting" },
        { 0 },
};

const struct command suspend_command = {
        .name = "suspend",
        .arguments = "[--data|--freeze|--stop] JOB...",
        .help = "Hold jobs: their data, their processes, or their places",
        .details = "--data: nothing more is handed out or delivered; the executors run, and keep what they "
                   "hold. --freeze: their\n"
                   "processes stop where they are. --stop: executors get SIGTERM and their grace; when the "
                   "job is resumed it waits\n"
                   "for its place and begins another attempt, which counts against nothing; data that is "
                   "acknowledged stays done.",
        .options = suspend_options,
        .options_size = sizeof(struct suspend_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = suspend_run,
};

const struct command resume_command = {
        .name = "resume",
        .arguments = "JOB...",
        .help = "Let suspended and held jobs go on",
        .min = 1,
        .max = SIZE_MAX,
        .run = resume_run,
};
