/* SPDX-License-Identifier: Apache-2.0 */
/* What each user has of masterd: active jobs, and the memory that they take. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct manager;
struct job;

struct holdings {
        uint32_t jobs;  /* active ones, an array with its elements is one */
        uint64_t bytes; /* that these take, elements and data too */
};

struct holdings holdings_of(const struct manager *m, uint32_t uid);

/* Whether the user may have so many bytes more: a new job (0: it is not read yet, so that nothing is read for
 * one who has all that he may have), or an active one that grows. Root may always. 0, or the error Refused.
 */
int holdings_admit(const struct manager *m, uint32_t uid, uint64_t more, sd_bus_error *error);
/* Whether the user may have one more job. */
int holdings_admit_job(const struct manager *m, uint32_t uid, sd_bus_error *error);

/* The job is as large as this now. To be called when it was made, and when something of it was changed. */
void holdings_weigh(struct job *j);
