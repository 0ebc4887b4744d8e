/* SPDX-License-Identifier: Apache-2.0 */
/* Series as event files, which TensorBoard reads. */
#pragma once

#include <jansson.h>

#include "tools/primusctl/cli/cli.h"

/* A file for each process of each job: DIRECTORY/JOB/ROLE-INDEX[.LOCAL]/events.out.tfevents.TIME.primus. all:
 * as "primusctl metrics --json --name" prints them. What is there already is replaced. An exit status. */
int metrics_write_events(const struct cli *c, const char *directory, const json_t *all, size_t *ret_files);

/* The same of all that these jobs have, which has to be something. An exit status. */
int metrics_export(struct cli *c, char *const *jobs, size_t n, const char *directory);
