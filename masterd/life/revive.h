/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and executors from their records. */
#pragma once

struct manager;
struct job;
struct job_record;
struct executor_record;

/* A job with its data, not in any table. */
void revive_job_free(struct job *j);

/* Builds a job from its record (with body). Executors are PENDING; the caller adds theirs. */
int revive_job(struct manager *m, const struct job_record *r, struct job **ret);
/* Takes over an attempt of an executor; records come in ascending order of attempts. */
int revive_executor(struct manager *m, struct job *j, const struct executor_record *r);

/* All active jobs with what is stored of them, behind the hosts; then, when everybody has what he stores of
 * them, they go on: who holds a place has it again, who has ended is decided about anew. */
int revive_load(struct manager *m);
int revive_resume(struct manager *m);
