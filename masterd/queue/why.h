/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits, host by host in groups, and with what smaller wish it would start now. Nothing changes:
 * what is tried is tried on a copy of the scheduler. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/job/job.h"
#include "masterd/sched/policy.h"

struct manager;

#define WHY_GROUPS_MAX 16u
#define WHY_GROUP_TEXT_MAX 96u
#define WHY_SUGGESTIONS_MAX 8u
#define WHY_SUGGESTION_TEXT_MAX 256u

struct why_group {
        uint32_t hosts;
        char text[WHY_GROUP_TEXT_MAX]; /* "lack GPUs now" */
};

struct why {
        struct policy_why policy;
        char role[64];         /* the one for which there is no room; "" where it is not that */
        uint32_t wanted, fits; /* executors of it */
        struct why_group groups[WHY_GROUPS_MAX];
        size_t n_groups;
        char suggestions[WHY_SUGGESTIONS_MAX][WHY_SUGGESTION_TEXT_MAX]; /* "role worker: minNum 4 (of 8)" */
        size_t n_suggestions;
};

/* Of a job that has begun: what keeps executors that wait from being tried, one line; false: nothing does. */
bool why_not_tried(struct job *j, char *buf, size_t size);

/* -ENOENT: it does not wait for a place. -ENOMEM. */
int why_job(struct manager *m, struct job *j, struct why *ret);

/* The same of a job that is in no table, if it came now. *ret_placed: how many of its executors would have a
 * place at once; 0: it would wait, and *ret says why. -ENOMEM. */
int why_try(struct manager *m, struct job *j, struct why *ret, uint32_t *ret_placed);
