/* SPDX-License-Identifier: Apache-2.0 */
/* A job as people read it. */
#pragma once

#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"

/* What masterd has answered about one job: GetAll, GetStatus, ListExecutors. */
struct status_replies {
        sd_bus_message *properties, *status, *executors;
};

/* The end of a job: the table of roles, the reason, the first error; with c->json all of it as JSON. The
 * replies are read from their beginnings. */
int status_result(const struct cli *c, const struct status_replies *r);
