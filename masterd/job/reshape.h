/* SPDX-License-Identifier: Apache-2.0 */
/* A job gets another configuration while it runs: it grows, shrinks, gets roles and loses them. Memory only;
 * who is stopped, started, told and recorded is decided elsewhere (masterd/life/change.h). */
#pragma once

#include <stdint.h>

#include "masterd/job/job.h"

/* The job has this configuration from now on. Roles are the same by their names: executors below the new num
 * stay who they are, what is new is PENDING without an attempt, and the others are leaving, whatever their
 * state: whoever holds nothing has to be taken off there by job_dismiss(), and the others when they have
 * ended. Ranks are counted anew, in the order of the configuration. Takes spec over on success; -ENOMEM
 * changes nothing. O(executors). */
int job_reshape(struct job *j, struct job_spec *spec);

/* Forgets an executor that was leaving; it is in no list and holds nothing. */
void job_dismiss(struct executor *e);

/* From the store: an executor that was leaving. role is the configuration's that it was of, and lives as long
 * as the job's present or a retired one. */
int job_add_leaving(struct job *j, const struct role_spec *role, uint32_t index, struct executor **ret);

/* Keeps a former configuration for as long as somebody is leaving (at least until the next job_dismiss()).
 * Takes spec over, also on failure. */
int job_retire(struct job *j, struct job_spec *spec);
/* A role of that name in the present configuration, or else in the latest that had it. NULL: never heard of.
 */
const struct role_spec *job_role_known(const struct job *j, const char *name);

/* What former configurations take. */
size_t job_retired_bytes(const struct job *j);
/* Frees former configurations where nobody is leaving. */
void job_retired_trim(struct job *j);
/* Frees all who are leaving, and what they are of. */
void job_leaving_done(struct job *j);
