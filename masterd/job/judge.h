/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of an executor counts as: what happened (outcome.h), then what its job says about that
 * (exitCodes, elasticResource, ready), or why it was being stopped. Pure. */
#pragma once

#include "lib/wire/find.h"
#include "lib/wire/messages.h"
#include "masterd/job/job.h"
#include "masterd/job/outcome.h"

/* What an end is held against besides its job's own rules, and what is known of it besides its report. */
struct judging {
        const struct exit_rule_spec *site; /* looked at behind the role's and the job's */
        size_t n_site;
        const char *const *patterns;    /* what was looked for in its log, */
        const struct found_line *lines; /* and what was found for each; NULL: its log could not be read */
        size_t n;
        bool trial; /* it is one of a search */
};

/* The expressions, in the order of the rules, that its log has to be searched for before judge_exit() can
 * say; the texts are the rules'. Their number, at most FIND_PATTERNS_MAX; 0: judge_exit() needs none. */
size_t judge_questions(const struct executor *e, const struct exit_report *x, enum executor_event event,
                       const struct judging *how, const char *ret[static FIND_PATTERNS_MAX]);

/* event and text are what outcome_of() says; they and e->end.fate may change. A fate that a stop was given
 * stays: who is stopped because of another is not blamed for what he answers. */
void judge_exit(struct executor *e, const struct exit_report *x, const struct judging *how,
                enum executor_event *event, char text[static OUTCOME_TEXT_MAX]);

/* What an executor gets after memory was not enough, or 0: it has the most it may get. */
uint64_t judge_more_memory(const struct elastic_spec *elastic, uint64_t had);
