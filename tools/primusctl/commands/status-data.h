/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a job as people read it: where its sources stand, who waits for whom. */
#pragma once

#include <stddef.h>

#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"

#define DATA_EXECUTORS_SHOWN 32u

/* A table of the sources, one of the executors that are fed (the first so many, or all), and what they add up
 * to. ended: the job is over, nothing waits any more. */
int status_data_print(const struct cli *c, const struct data_status *d, const struct executor *e, size_t n,
                      bool all, bool ended);

/* The same as JSON: an object for "data"; NULL when out of memory. What belongs to an executor is added to
 * its object. */
struct json_t *status_data_json(const struct data_status *d);
void status_data_executor_json(const struct executor *e, struct json_t *object);
