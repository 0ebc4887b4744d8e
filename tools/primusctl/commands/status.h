/* SPDX-License-Identifier: Apache-2.0 */
/* A job as people read it. */
#pragma once

#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"

/* The end of a job: the table of roles, the reason, the first error; with c->json all of it as JSON. */
int status_result(const struct cli *c, const struct job_properties *p, const struct job_status *s,
                  const struct executor *executors, size_t n);
