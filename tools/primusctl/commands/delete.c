/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl delete. */
#include "tools/primusctl/cli/commands.h"

static int delete_run(struct cli *c, void *options, char **args, size_t n) {
        (void)options;
        return cli_each_job(c, args, n, "Delete", NULL, "is deleted");
}

const struct command delete_command = {
        .name = "delete",
        .arguments = "JOB...",
        .help = "Forget jobs that have ended",
        .details =
                "Status, events, log and the like of them go for good, of an array with its elements. Savepoints\n"
                "stay, and what the jobs used counts on in usage. Refused while another job waits to run "
                "after one.",
        .min = 1, /* never a job that nobody named */
        .max = SIZE_MAX,
        .run = delete_run,
};
