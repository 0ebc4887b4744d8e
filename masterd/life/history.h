/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that have ended: the latest stay in memory, older ones come back from the store when somebody asks. */
#pragma once

#include "masterd/job/job.h"

struct manager;

/* What is kept in memory: so many jobs with so many executors and bytes together. */
#define HISTORY_JOBS 200u
#define HISTORY_EXECUTORS 1000u
#define HISTORY_BYTES (32u << 20)

void history_job_ended(struct manager *m, struct job *j);
/* A job that had ended is active again. */
void history_job_again(struct manager *m, struct job *j);
/* Forgets a job that has ended and is no element, in memory and in the store, with the elements of an array;
 * its savepoints stay, and what it used counts on. Frees j. */
void history_delete(struct manager *m, struct job *j);

/* Calls back with the job (NULL: there is none of that number, or error < 0), at once when it is in memory.
 */
typedef void (*history_handler)(struct job *j, int error, void *userdata);
int history_get(struct manager *m, uint32_t number, history_handler handler, void *userdata);
