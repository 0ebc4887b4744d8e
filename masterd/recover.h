/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart: memory from the store, and the store's truth against what each agent reports when it
 * registers. */
#pragma once

#include "masterd/registration.h"

struct manager;
struct node;
struct link;
struct job;

int recover_load(struct manager *m);

/* Reconciles a registration: exits first, then units, then what should be there and is not. Only then the
 * node is READY. */
int recover_registered(struct manager *m, struct node *node, struct link *link, const struct registration *g);

/* A job with its data, not in any table. */
void recover_job_free(struct job *j);

/* Builds a job from its record (with body). Executors are PENDING; the caller adds theirs. */
struct job_record;
struct executor_record;
int recover_job(struct manager *m, const struct job_record *r, struct job **ret);
/* Takes over an attempt of an executor; records come in ascending order of attempts. */
int recover_executor(struct manager *m, struct job *j, const struct executor_record *r);
