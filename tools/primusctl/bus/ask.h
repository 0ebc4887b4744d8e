/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to masterd, whose answers are waited for. 0 or an exit status. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/json/replies.h"
#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"

/* Sends the call; what comes is an object, or a list of them, of that shape: with --json what is printed,
 * else with the hidden members, which people are shown. job: for "there is no job 7", or NULL. */
int ask_object(struct cli *c, sd_bus_message *m, const struct job_ref *job, const struct json_shape *s,
               json_t **ret);
int ask_list(struct cli *c, sd_bus_message *m, const struct job_ref *job, const struct json_shape *s,
             json_t **ret);
/* The list that a method of the manager answers to no arguments. */
int ask_manager_list(struct cli *c, const char *method, const struct json_shape *s, json_t **ret);

/* The call for its properties: what comes is for job_properties_read(). */
int ask_properties_call(struct cli *c, const struct job_ref *job, sd_bus_message **ret);
/* It has a name and a state. */
int ask_properties(struct cli *c, const struct job_ref *job, struct job_properties *ret);
int ask_status(struct cli *c, const struct job_ref *job, struct job_status *ret);
/* The same as JSON, of the shape json_status. */
int ask_status_json(struct cli *c, const struct job_ref *job, json_t **ret);
/* CLI_FAILED, and what to name instead, where the job is an array, which has no executors of its own. */
int ask_no_array(struct cli *c, const struct job_ref *job);
/* all: with attempts that others came after. */
int ask_executors(struct cli *c, const struct job_ref *job, bool all, struct executor **ret, size_t *ret_n);
