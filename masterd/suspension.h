/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that a person holds: their data back, their processes frozen, or stopped and kept from starting. */
#pragma once

#include <stdbool.h>

#include "masterd/job/job.h"

struct manager;
struct node;

/* On disk: new ones at the end. */
enum suspend_mode {
        SUSPEND_DATA,   /* SUSPENDED: nothing is handed out; executors run */
        SUSPEND_FREEZE, /* SUSPENDED: and their processes are frozen; memory and GPUs stay theirs */
        SUSPEND_STOP,   /* QUEUED: executors were stopped, and nothing is placed until the job is resumed */
        _SUSPEND_MODE_MAX,
        _SUSPEND_MODE_INVALID = -22
};
enum suspend_mode suspend_mode_from_string(const char *s);

/* Holds the job, or lets it go on; uid: who asks. What feeders and agents are told leaves when it is on disk.
 * 0; or, with a sentence in text: -ENODATA the job has no data, -EALREADY it is in that state, -EAGAIN it
 * does not run yet, -ESRCH it is being stopped or over, -EOPNOTSUPP a host of it cannot freeze. */
#define SUSPENSION_TEXT_MAX 256
int suspension_begin(struct manager *m, struct job *j, enum suspend_mode mode, uint32_t uid,
                     char text[static SUSPENSION_TEXT_MAX]);
int suspension_end(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]);
/* The job was loaded: one that was suspended for a savepoint only, which this master knows nothing of, goes
 * on. */
void suspension_restored(struct manager *m, struct job *j);

/* The job is held while it waits: it is not to be placed. */
bool suspension_keeps(const struct job *j);
/* The job is being stopped, to end or for another attempt: it is held no more, unless it is stopped to be
 * held. */
void suspension_stopping(struct job *j);
/* It is QUEUED again: says by whom it is held, where it is. */
void suspension_queued(struct manager *m, struct job *j);
/* Its executors' processes are to be frozen. */
bool suspension_frozen(const struct job *j);
/* The agent does not freeze it: the job goes on. */
void suspension_freeze_refused(struct manager *m, struct executor *e, const char *why);
/* An executor runs: in a job that is frozen it does not for long. */
void suspension_runs(struct manager *m, struct executor *e);
/* The node is back, and may have missed a word. */
void suspension_registered(struct manager *m, struct node *node);
