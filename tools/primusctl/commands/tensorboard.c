/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl tensorboard. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/metrics-events.h"
#include "tools/primusctl/commands/served.h"

/* What jobs have reported goes along, as it is now. */
static int show_jobs(struct cli *c, struct served_options *o, char **jobs, size_t n) {
        char directory[] = "/tmp/primus-tensorboard-XXXXXX";
        int r;

        if (!mkdtemp(directory))
                return cli_fail(c, "%s: %s", directory, strerror(errno));
        r = metrics_export(c, jobs, n, directory);
        if (!r)
                r = served_run(c, o, "tensorboard", directory);
        (void)remove_tree(directory);
        return r;
}

static int tensorboard_run(struct cli *c, void *options, char **args, size_t n) {
        struct served_options *o = options;

        if ((n > 0) + (o->attach != NULL) + (o->directory != NULL) != 1)
                return cli_usage(c, "tensorboard: say jobs, or --logdir=DIR, or --attach=JOB, one of them");
        return n > 0 ? show_jobs(c, o, args, n) : served_run(c, o, "tensorboard", NULL);
}

static const struct cli_option tensorboard_options[] = {
        SERVED_ROW("logdir", 0, "DIR", option_string, directory,
                   "a folder that the host sees, with event files"),
        SERVED_OPTIONS,
        { 0 },
};

const struct command tensorboard_command = {
        .name = "tensorboard",
        .arguments = "[OPTIONS] [JOB...]",
        .help = "TensorBoard of what jobs have reported, forwarded to here",
        .details =
                "A job that shows the metrics of other jobs as they are now, or of --logdir as they grow; prints the address\n"
                "to open here. Needs tensorboard in the python3 of the caller's environment.",
        .options = tensorboard_options,
        .options_size = sizeof(struct served_options),
        .max = SIZE_MAX,
        .run = tensorboard_run,
};
