/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits, or how it came to its end. */
#pragma once

#include <jansson.h>

#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"

/* Of a job that has not ended: what it waits for, host by host in groups, and with which smaller wishes it
 * would start now (why-waiting.c). Returns an exit status. */
int why_waiting(struct cli *c, const struct job_ref *job);

/* Of a job that would be submitted, json_trial: whether it starts at once, else what why_waiting() would say.
 */
void trial_print(const json_t *trial);

/* Of a job that has ended: first cause, blame, what was done, and the causes in order; with c->json as JSON.
 * Returns an exit status. */
int why_ended(struct cli *c, const struct job_ref *job, const struct job_properties *p);
