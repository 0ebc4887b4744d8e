/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a job and shows how it gets on: on a terminal a block redrawn in place (state, roles, a bar for
 * the data with rate and time left), elsewhere a line at each change. */
#pragma once

#include "tools/primusctl/cli/cli.h"

struct progress_options {
        const char *role; /* show the output of ROLE or ROLE/INDEX above the block; NULL: none */
        bool logs;        /* show everyone's output */
        bool quiet;       /* nothing but the result */
};

/* Returns the job's exit status, or that of a failure. Ends with the table of roles and the reason. */
int progress_wait(struct cli *c, const struct job_ref *job, const struct progress_options *options);
