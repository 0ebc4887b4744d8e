/* SPDX-License-Identifier: Apache-2.0 */
/* Series as event files, which TensorBoard reads. */
#pragma once

#include <jansson.h>

#include "tools/primusctl/cli/cli.h"

/* A file for each process of each job: DIRECTORY/JOB/ROLE-INDEX[.LOCAL]/events.out.tfevents.TIME.primus. all:
 * as "primusctl metrics --json --name" prints them. What is there already is replaced. An exit status. */
int metrics_write_events(const struct cli *c, const char *directory, const json_t *all);
