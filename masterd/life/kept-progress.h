/* SPDX-License-Identifier: Apache-2.0 */
/* Progress that outlives its job because the configuration names it: with
 * inputManager.workPreserve.hdfsConfig.stagingDir, the end of the job leaves a savepoint that the same user's
 * next job with the same stagingDir goes on from. Upstream keeps files in that directory; here it is a name,
 * and nothing is read or written there. One job at a time has it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "masterd/life/savepoint-text.h"

struct manager;
struct job;
struct job_spec;
struct kept_progress;

#define KEPT_PROGRESS_TEXT_MAX 512u

/* The name of the savepoint that a job of this user and configuration goes on from. False: there is none. */
bool kept_progress_find(const struct manager *m, uint32_t owner, const struct job_spec *spec,
                        char ret[static SAVEPOINT_NAME_MAX + 1]);
/* Whether the job may have it; refused as below. */
int kept_progress_admit(struct manager *m, const struct job *j, const char *from,
                        char text[static KEPT_PROGRESS_TEXT_MAX]);
/* The job has it from now on, until it ends or leaves memory; nothing happens where it names none. from: the
 * savepoint that the job is being made of, or NULL. Or, with a sentence in text: -EBUSY another job has it,
 * -EDQUOT the user has too many savepoints, -ENOMEM. */
int kept_progress_take(struct manager *m, struct job *j, const char *from,
                       char text[static KEPT_PROGRESS_TEXT_MAX]);
/* The number of the job that has the savepoint of this name; 0: none. */
uint32_t kept_progress_keeper(const struct manager *m, const char *name);
/* Jobs are in memory, from the store: who has it has had it all the while. -ENOMEM. */
int kept_progress_load(struct manager *m);
/* Where that is the end of the job, its data is in memory still: the savepoint goes into the batch that has
 * the end, and the job has the name until that is on disk. */
void kept_progress_attempt_over(struct manager *m, struct job *j);
/* The job leaves memory. */
void kept_progress_drop(struct job *j);
/* When no job is left. */
void kept_progress_free(struct manager *m);
