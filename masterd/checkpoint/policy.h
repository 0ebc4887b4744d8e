/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints of a job stay. What is kept is the union of three: the best of the job, the best of each
 * trial, the latest of each trial. One without a value of the metric is among the latest alone. A trial is a
 * row's trial, or all of the job where it has none. */
#pragma once

#include <stddef.h>

#include "masterd/checkpoint/registry.h"

/* As many of each. */
struct checkpoint_policy {
        uint32_t best, trial_best, trial_latest;
};

struct checkpoint_choice {
        struct checkpoint *checkpoint;
        bool stays;
};

/* Of the checkpoints of one job, which come in any order and leave in another; stays is set, of those that
 * are pinned, or held by a model, as well. Of equal values the earlier step is the better one. */
void checkpoint_policy_choose(const struct checkpoint_policy *p, struct checkpoint_choice *list, size_t n);
