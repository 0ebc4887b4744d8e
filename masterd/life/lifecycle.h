/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to jobs: verdicts, stops, ends, another attempt of all of it. Every function here changes
 * memory and the open batch together. */
#pragma once

#include <stdbool.h>

#include "masterd/job/job.h"

struct manager;

/* Records the job and tells those who watch it. */
void lifecycle_job_changed(struct manager *m, struct job *j);
/* The same of an executor. */
void lifecycle_executor_changed(struct manager *m, struct executor *e);

/* Stops the job; it ends as verdict (JOB_EVENT_SUCCEEDED, _FAILED, _KILLED, or _REQUEUE for another attempt).
 * No effect when it has ended or a stop is under way, except that a kill or a failure overrides a requeue. */
void lifecycle_stop_job(struct manager *m, struct job *j, enum job_event verdict, const char *reason)
        __attribute__((nonnull));
/* Kills it with that time between the signals, whatever its configuration says. Of one that is being stopped
 * already the time gets shorter, never longer. */
void lifecycle_kill_job(struct manager *m, struct job *j, uint64_t grace_usec, const char *reason)
        __attribute__((nonnull));
/* Stops an executor (why: static text, for its agent: it is kept); it counts as nothing but what e->end.fate
 * says. One that waits for a place will not get one. No effect on one that is being stopped. */
void lifecycle_stop_executor(struct manager *m, struct executor *e, const char *why);
/* Stops an executor that is to go on elsewhere: its end counts as nothing, and the next attempt is placed at
 * once. No effect on one that is being stopped. why: static text, for the agent; text: for the event. */
void lifecycle_move(struct manager *m, struct executor *e, const char *why, const char *text);
/* An attempt of the job failed: another one while maxAppAttempts allows, else the job fails. */
void lifecycle_fail_attempt(struct manager *m, struct job *j, const char *reason);

/* An executor that waits for its place will not get one: its job is being stopped. */
void lifecycle_cancel(struct executor *e);
/* Moves the job on where its executors allow it: RUNNING, a verdict, the end. */
void lifecycle_review(struct manager *m, struct job *j);
