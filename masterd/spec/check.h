/* SPDX-License-Identifier: Apache-2.0 */
/* What no single key can know: defaults that come from other keys, and rules between keys. */
#pragma once

#include "masterd/spec/read.h"
#include "masterd/spec/spec.h"

/* Fills in the remaining defaults of a spec that was read without error, and reports what does not go
 * together. 0 (see the diagnostics), or -ENOMEM. */
int check_job(struct reader *r, struct job_spec *s);

/* The parts of it that are about data (check-data.c). */
int complete_data(struct job_spec *s);
int check_data(struct reader *r, struct job_spec *s);
/* What is about waiting and giving way (check-queue.c). */
int check_queue(struct reader *r, const struct job_spec *s);

/* What is about where executors may go (check-placement.c). */
int check_placement(struct reader *r, const struct job_spec *s);
/* What is about what they may use there (schema-limits.c). */
int check_limits(struct reader *r, const struct job_spec *s);
/* About a search (check-search.c); fills in how many trials. */
int check_search(struct reader *r, struct job_spec *s);
/* About failures (check-failure.c). */
int complete_failure(struct job_spec *s);
int check_failure(struct reader *r, const struct job_spec *s);

/* Warns of what is given in a job without errors and changes nothing there (check-idle.c). 0, or -ENOMEM. */
int check_idle(struct reader *r, const struct job_spec *s);

/* A key of the job. */
struct place place_of(const char *key);
/* A key of role[i]; NULL: the role. */
struct place place_in_role(size_t i, const char *key);

#define report_at(r, where, ...)                                                                             \
        ({                                                                                                   \
                struct place _where = (where);                                                               \
                reader_report((r), DIAGNOSTIC_ERROR, &_where, __VA_ARGS__);                                  \
        })
