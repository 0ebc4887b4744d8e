/* SPDX-License-Identifier: Apache-2.0 */
/* Holding a job's data back, and letting it go on. */
#pragma once

#include "masterd/job/job.h"

struct manager;

/* Holds the job's data back, or lets it go on; uid: who asks. What feeders are told leaves when it is on
 * disk. 0; or, with a sentence in text: -ENODATA the job has no data, -EALREADY it is in that state, -EAGAIN
 * it does not run yet, -ESRCH it is being stopped or over. */
#define SUSPENSION_TEXT_MAX 160
int suspension_begin(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]);
int suspension_end(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]);
/* The job was loaded: one that was suspended for a savepoint only, which this master knows nothing of, goes
 * on. */
void suspension_restored(struct manager *m, struct job *j);
