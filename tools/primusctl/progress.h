/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a job and shows how it gets on: on a terminal a block redrawn in place (state, roles, a bar for
 * the data with rate and time left), elsewhere a line at each change. */
#pragma once

#include "tools/primusctl/cli.h"

struct progress_options {
        const char *role; /* show the output of ROLE or ROLE/INDEX above the block; NULL: none */
        bool logs;        /* show everyone's output */
        bool quiet;       /* nothing but the result */
};

/* Returns the job's exit status, or that of a failure. Ends with the table of roles and the reason. */
int progress_wait(struct cli *c, const struct job_ref *job, const struct progress_options *options);

/* "ROLE" or "ROLE/INDEX" into its parts; *ret_role is allocated. CLI_USAGE with a sentence when it is
 * neither. */
int role_parse(const struct cli *c, const char *text, char **ret_role, uint32_t *ret_index,
               bool *ret_has_index);
