/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that a person holds: their data back, their processes frozen, or stopped and kept from starting. */
#pragma once

#include <stdbool.h>

#include "masterd/job/job.h"
#include "masterd/job/suspend.h"

struct manager;
struct node;

enum suspend_mode suspend_mode_from_string(const char *s);

/* Holds the job, or lets it go on; of an array all elements, those that are not made yet too. uid: who asks.
 * What feeders and agents are told leaves when it is on disk. 0; or, with a sentence in text: -ENODATA the
 * job has no data, -EALREADY it is in that state, -EAGAIN it does not run yet, -ESRCH it is being stopped or
 * over, -EOPNOTSUPP a host of it cannot freeze. */
#define SUSPENSION_TEXT_MAX 256
int suspension_begin(struct manager *m, struct job *j, enum suspend_mode mode, uint32_t uid,
                     char text[static SUSPENSION_TEXT_MAX]);
int suspension_end(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]);
/* The search of this trial parks it: it lets go of all that it holds; or lets it go on. why: for people.
 * Nothing of one that ends. */
void suspension_park(struct manager *m, struct job *trial, const char *why);
void suspension_unpark(struct manager *m, struct job *trial);

/* The job was loaded: one that was suspended for a savepoint only, which this master knows nothing of, goes
 * on. */
void suspension_restored(struct manager *m, struct job *j);

/* The job is being stopped, to end or for another attempt: it is held no more, unless it is stopped to be
 * held. */
void suspension_stopping(struct job *j);
/* It is QUEUED again: says by whom it is held, where it is. */
void suspension_queued(struct manager *m, struct job *j);
/* The agent does not freeze it: the job goes on. */
void suspension_freeze_refused(struct manager *m, struct executor *e, const char *why);
/* An element of an array runs: when the array is held, it is as well. */
void suspension_element_runs(struct manager *m, const struct job *array, const struct job *e);
/* An executor runs: in a job that is frozen it does not for long. */
void suspension_runs(struct manager *m, struct executor *e);
/* The node is back, and may have missed a word. */
void suspension_registered(struct manager *m, struct node *node);
