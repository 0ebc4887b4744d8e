/* SPDX-License-Identifier: Apache-2.0 */
/* Between jobs and the policy: which of them wait, in which pool, what they cost, and what was decided. The
 * decisions themselves are sched/'s, which knows no jobs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/job/job.h"
#include "masterd/sched/policy.h"

struct manager;
struct placement;

/* The policy, with the pools of the configuration. */
int queueing_new(struct manager *m);
void queueing_free(struct placement *p);
/* Tells the policy of the pools of m->conf (shares.c). */
int queueing_set_pools(struct manager *m);
/* What users have used, from the store; before it runs. */
int queueing_load(struct manager *m);
/* Reads the settings again. */
void queueing_reload(struct manager *m);
/* Puts what users have used into the open batch. */
void queueing_record_shares(struct manager *m);

/* The clock of the policy, and a time of it as wall clock. UINT64_MAX stays. */
uint64_t queueing_now(void);
uint64_t queueing_real(uint64_t at);
uint64_t queueing_at(uint64_t real);

/* The job has executors that may be placed now. Idempotent. */
void placement_enqueue(struct manager *m, struct job *j);
/* It waits for nothing any more; it is being stopped, and gone at the latest then (0: it is over). */
void placement_dequeue(struct manager *m, struct job *j);
/* It is being stopped. */
void queueing_leaving(struct manager *m, struct job *j, uint64_t within_usec);
/* It is not stopped after all. */
void queueing_stays(struct manager *m, struct job *j);
/* It is over: forgotten. */
void queueing_forget(struct manager *m, struct job *j);
/* It waits again from the beginning: nothing of it runs. */
void queueing_again(struct manager *m, struct job *j);
/* Its priority, pool or time limit is another one. */
void queueing_changed(struct manager *m, struct job *j);

/* The executor holds something (1), holds it no more (-1). */
void queueing_held(struct manager *m, const struct executor *e, int sign);

/* Tries those that wait, once: reserves, numbers attempts, records, registers the orders. */
void placement_run(struct manager *m);

/* Why the job waits. -ENOENT: it does not. */
int queueing_why(struct manager *m, const struct job *j, struct policy_why *ret);
/* The same without its position: for lists, which would look through the queue for each of theirs. */
int queueing_last_why(struct manager *m, const struct job *j, struct policy_why *ret);
/* The same in a line for people, into buf, which is returned. */
char *queueing_why_text(struct manager *m, struct job *j, const struct policy_why *why, char *buf,
                        size_t size);
#define QUEUEING_WHY_MAX 320

/* What would become of a job that is in no table, if it came now and asked for g. -ENOMEM. */
int queueing_try(struct manager *m, const struct job *j, const struct sched_gang *g,
                 struct policy_trial *ret);

struct policy *queueing_policy(struct manager *m);
/* Numbers of the jobs that wait, in their order; at most n. Returns how many. */
size_t queueing_order(struct manager *m, uint64_t *numbers, size_t n);
