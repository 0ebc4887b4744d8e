/* SPDX-License-Identifier: Apache-2.0 */
/* What is in memory, as records of the store's open batch. */
#pragma once

#include <stdint.h>

#include "lib/base/cleanup.h"
#include "masterd/core/manager.h"

/* Between the job and what is kept of it: the one place that knows which field is which. */
void record_state_of_job(const struct job *j, struct job_state_record *ret);
/* The job's other columns are set. */
void record_state_to_job(const struct job_state_record *data, struct job *j);

/* The end of a noun in what people read: "1 executor", "2 executors". */
#define PLURAL(n) ((n) == 1 ? "" : "s")

void record_node(struct manager *m, const struct node *node);
/* body: also the configuration and what came with it (once, at submission). */
void record_job(struct manager *m, const struct job *j, bool body);
/* The attempt as a record, but for its CPUs and the GPUs' names; borrows the executor's strings. */
struct executor_record record_of_executor(const struct executor *e);
/* Those names: uuids by spaces, "" where it has no host; allocated. NULL: no memory. */
char *executor_gpus(const struct executor *e);
void record_executor(struct manager *m, const struct executor *e);
/* An event of the job: stored, logged, and counted. role NULL: of the job itself. */
void record_event(struct manager *m, struct job *j, const char *kind, const struct executor *e,
                  const char *format, ...) _printf_(5, 6);

/* Secrets of a job into the open batch. */
void record_secrets(struct manager *m, const struct job *j);
