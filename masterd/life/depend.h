/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that wait for the ends of others, or for a time, before their first start. Such a job is QUEUED and
 * not tried by the scheduler. */
#pragma once

#include "masterd/job/job.h"

struct manager;

/* Reads after and begin of the job's configuration. */
int depend_prepare(struct job *j);

/* Looks up the jobs that a new job, which nobody knows yet, waits for, in memory and in the store; then calls
 * done, at once when there is nothing to look up: unknown names one that there is not, or is NULL; error
 * negative when the store did not answer. 0 or negative (then done is not called). */
typedef void (*depend_done_t)(void *userdata, int error, const char *unknown);
int depend_ask(struct manager *m, struct job *j, depend_done_t done, void *userdata);

/* The job is in the table from now on: new (behind depend_ask()) or loaded. It may end here, when what it
 * waits for cannot hold any more. */
void depend_watch(struct manager *m, struct job *j);

/* It is not to be placed yet. */
bool depend_holds_back(const struct job *j);

/* "after job 5 (RUNNING); begins at ..." of what is not met yet; begins: its time has not come. "": nothing
 * is. Into buf, which is returned. */
#define DEPEND_TEXT_MAX 512u
char *depend_text(struct manager *m, const struct job *j, bool begins, char *buf, size_t size);

/* Of a job that is only tried, behind depend_ask(): what it would wait for, in the same words. *ret_never:
 * one of those can never hold, so that it would end at once, and the text says which. */
char *depend_foresee(struct manager *m, struct job *j, char *buf, size_t size, bool *ret_never);

/* Another state of a job; it has ended. What waits for it is told in the same batch. */
void depend_job_changed(struct manager *m, struct job *j);
void depend_job_ended(struct manager *m, struct job *j);

/* The lowest number of a job that is held back and names that one, or an element of it; 0: none. */
uint32_t depend_waiting(struct manager *m, uint32_t number);

void depend_free(struct manager *m);
