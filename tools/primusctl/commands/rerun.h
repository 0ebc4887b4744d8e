/* SPDX-License-Identifier: Apache-2.0 */
/* The call of Job.Rerun, for more than one command. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tools/primusctl/cli/commands.h"

struct rerun_options {
        bool failed;
        bool goes_on;    /* a search, under its own number ... */
        uint32_t trials; /* ... with so many altogether; 0: as many as it was to have */
        struct option_list env, secrets, set;
};
/* A status of primusctl; *ret is what answers. */
int rerun_call(struct cli *c, const struct job_ref *job, const struct rerun_options *o, struct job_ref *ret);
