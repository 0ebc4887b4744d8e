/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that a policy does not keep: marked (masterd/watch/checkpoints.h), and removed by ordinary jobs
 * of their owner's, one on each host that they were saved on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/checkpoint/policy.h"

struct job;
struct manager;

#define COLLECT_JOBS_MAX 16u /* at a time; what is on other hosts stays marked for the next */

struct collected {
        uint64_t *ids; /* that were marked, or would be; allocated */
        size_t n_ids;
        uint32_t jobs[COLLECT_JOBS_MAX]; /* that remove all that is marked of the job, by now or before */
        size_t n_jobs;
};

/* Of the user's job, array or element. dry: neither marks nor makes a job. A job that is refused sets the
 * error, and what was marked stays so. -ENOMEM. */
int collect_checkpoints(struct manager *m, uint32_t owner, uint32_t job, const struct checkpoint_policy *p,
                        bool dry, struct collected *ret, sd_bus_error *error);
void collected_done(struct collected *c);

/* One that says what stays (its key checkpoints) has ended. */
void collect_job_ended(struct manager *m, struct job *j);
