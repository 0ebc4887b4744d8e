/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl suspend and resume. */
#include "tools/primusctl/cli/commands.h"

struct suspend_options {
        bool data, freeze, stop;
};

static int suspend_run(struct cli *c, void *options, char **args, size_t n) {
        const struct suspend_options *o = options;

        if (o->data + o->freeze + o->stop > 1)
                return cli_usage(c, "suspend: --data, --freeze and --stop exclude each other");
        if (o->freeze)
                return cli_each_job(c, args, n, "SuspendAs", "freeze",
                                    "is suspended: its processes are frozen");
        if (o->stop)
                return cli_each_job(c, args, n, "SuspendAs", "stop",
                                    "is held: its executors are stopped, and it waits until it is resumed");
        return cli_each_job(c, args, n, "SuspendAs", "data", "is suspended: its data is held back");
}

static int resume_run(struct cli *c, void *options, char **args, size_t n) {
        (void)options;
        return cli_each_job(c, args, n, "Resume", NULL, "goes on");
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
        .details = "--data: nothing more is handed out or delivered; the executors run, and keep what they\n"
                   "hold. --freeze: their processes stop where they are. --stop: executors get SIGTERM and\n"
                   "their grace; when the job is resumed it waits for its place and begins another attempt,\n"
                   "which counts against nothing; data that is acknowledged stays done.",
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
