/* SPDX-License-Identifier: Apache-2.0 */
/* From a submitted job to its end, as "run" shows it: its output here, and its status as ours. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tools/primusctl/cli/cli.h"
#include "tools/primusctl/commands/run-stdio.h"

struct run_follow {
        uint32_t n; /* executors */
        bool sent;  /* its directory was sent along */
        const struct run_stdio_options *stdio;
};

/* Follows a job that was submitted after interrupt_block(). An exit status: of a job that FAILED, that of the
 * executor which failed first. */
int run_follow(struct cli *c, sd_event *event, const struct job_ref *job, const struct run_follow *o);

/* The same of an array: that of its lowest index that failed. */
int run_follow_array(struct cli *c, sd_event *event, const struct job_ref *job);

/* What a shell would say of an executor's end: its exit status, or 128 and the signal's number; CLI_FAILED
 * where neither is known. */
struct executor;
int run_exit_status(const struct executor *e);
