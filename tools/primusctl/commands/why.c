/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl why. */
#include "tools/primusctl/commands/why.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/text.h"

static int why_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(job_properties_done) struct job_properties p = { 0 };
        struct job_ref job;
        int r = cli_job(c, n > 0 ? args[0] : NULL, &job);

        (void)options;
        if (!r)
                r = ask_properties(c, &job, &p);
        if (r)
                return r;
        return job_state_exit(p.state) >= 0 ? why_ended(c, &job, &p) : why_waiting(c, &job);
}

const struct command why_command = {
        .name = "why",
        .arguments = "[JOB]",
        .help = "Say why a job waits, or how it came to its end",
        .max = 1,
        .run = why_run,
};
