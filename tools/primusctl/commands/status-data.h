/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a job as people read it: where its sources stand, who waits for whom. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/primusctl/cli/cli.h"

#define DATA_EXECUTORS_SHOWN 32u

/* A table of the sources, one of the executors that are fed (the first so many, or all), and what they add up
 * to; data and executors as a status has them. ended: the job is over, nothing waits any more. */
int status_data_print(const struct cli *c, const json_t *data, const json_t *executors, bool all, bool ended);
