/* SPDX-License-Identifier: Apache-2.0 */
/* What is in memory, as records of the store's open batch. */
#pragma once

#include <stdint.h>

#include "lib/base/cleanup.h"
#include "masterd/core/manager.h"

/* What the machine of a job needs beyond the store's columns, as kept in job_record.state_data. */
struct job_state_data {
        uint8_t version; /* 2; what is behind the end of an older one is zero */
        uint8_t verdict;
        uint8_t saving;
        uint8_t requeueing;
        uint32_t order_step;
        uint64_t attempt_real;
        /* 2: */
        uint32_t requeues, asked;
        uint64_t slot_real, waits_real, not_before_real, leave_real;
        uint32_t leave_for;
        uint8_t leave_why;
        uint8_t reserved[3];
        uint64_t after_met;
        uint32_t array_since;
        uint8_t had_env, had_secrets, reserved2[2];
        /* 2: changes while it runs */
        uint64_t limits_real;
        uint64_t epoch, membership; /* masterd/life/epochs.h */
        uint64_t rolling_real;      /* masterd/life/rolling.h */
        uint32_t rolling_batch, rolling_index;
        char rolling_role[36];
        uint64_t held_real, froze_real; /* masterd/life/suspension.h */
        uint32_t held_by;
        uint8_t held_mode, reserved3[3];
};

/* The end of a noun in what people read: "1 executor", "2 executors". */
#define PLURAL(n) ((n) == 1 ? "" : "s")

void record_node(struct manager *m, const struct node *node);
/* body: also the configuration and what came with it (once, at submission). */
void record_job(struct manager *m, const struct job *j, const char *warnings, bool body);
/* The attempt as a record, but for the term and the GPUs' names; borrows the executor's strings. */
struct executor_record record_of_executor(const struct executor *e);
void record_executor(struct manager *m, const struct executor *e);
/* An event of the job: stored, logged, and counted. role NULL: of the job itself. */
void record_event(struct manager *m, struct job *j, const char *kind, const struct executor *e,
                  const char *format, ...) _printf_(5, 6);

/* Secrets of a job into the open batch. */
void record_secrets(struct manager *m, const struct job *j);
