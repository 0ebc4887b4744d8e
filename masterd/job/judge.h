/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of an executor counts as: what happened (outcome.h), then what its job says about that
 * (exitCodes, elasticResource, ready), or why it was being stopped. Pure. */
#pragma once

#include "lib/wire/messages.h"
#include "masterd/job/job.h"
#include "masterd/job/outcome.h"

/* event and text are what outcome_of() says; they and e->end.fate may change. A fate that a stop was given
 * stays: who is stopped because of another is not blamed for what he answers. */
void judge_exit(struct executor *e, const struct exit_report *x, enum executor_event *event,
                char text[static OUTCOME_TEXT_MAX]);

/* What an executor gets after memory was not enough, or 0: it has the most it may get. */
uint64_t judge_more_memory(const struct elastic_spec *elastic, uint64_t had);
