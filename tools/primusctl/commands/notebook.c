/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl notebook. */
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/served.h"

static int notebook_run(struct cli *c, void *options, char **args, size_t n) {
        (void)args;
        (void)n;
        return served_run(c, options, "notebook", NULL);
}

static const struct cli_option notebook_options[] = {
        SERVED_ROW("dir", 0, "DIR", option_string, directory,
                   "the host's folder to begin in (the current one)"),
        SERVED_OPTIONS,
        { 0 },
};

const struct command notebook_command = {
        .name = "notebook",
        .arguments = "[OPTIONS]",
        .help = "A Jupyter notebook on a host of the cluster, forwarded to here",
        .details =
                "One job with one executor, in the current directory and with the caller's environment as with run; prints\n"
                "the address to open here. Needs jupyterlab or notebook in the python3 of that environment.",
        .options = notebook_options,
        .options_size = sizeof(struct served_options),
        .run = notebook_run,
};
