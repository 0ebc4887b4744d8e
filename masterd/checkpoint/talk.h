/* SPDX-License-Identifier: Apache-2.0 */
/* What executors say of checkpoints, and are answered: JSON objects, by link and feed's socket.
 *
 *     {"op": "checkpoint", "path": "/shared/c/step-000000001000", "step": 1000, "time": 1764000000.5,
 * "files": 3, "bytes": 4096, "metrics": {"loss": 0.25}, "metric": "loss", "smaller": true}      it is there:
 * {"id": 7}
 *     {"op": "checkpointGone", "path": …}                                               it is not:   {}
 *     {"op": "checkpointsMarked", "after": 0}       those to be removed: {"checkpoints": [{"id", "path",
 * "step", "time", "host"} …]}, some of them, whose ids are above after
 *
 * metric "": none counts. A metric that is null is no number. */
#pragma once

#include <stddef.h>

#include "lib/wire/question.h"
#include "masterd/checkpoint/registry.h"

#define CHECKPOINT_TALK_MAX 4096u /* bytes of a question */
#define CHECKPOINT_WHY_MAX QUESTION_WHY_MAX
#define CHECKPOINT_METRICS_NAMES_MAX 32u

enum checkpoint_op {
        CHECKPOINT_SAVED,
        CHECKPOINT_GONE,
        CHECKPOINT_MARKED,
        _CHECKPOINT_OP_MAX
};

struct checkpoint_talk {
        enum checkpoint_op op;
        uint64_t after;
        /* path, step, saved_real, files, bytes, metrics, metric, value, smaller; the others are not filled
         * in. */
        struct checkpoint_facts facts;
        char *path, *metrics, *metric; /* what the facts point to */
};

/* 0; -ENOENT: it is no question of these; -EINVAL with a sentence in why; -ENOMEM. */
int checkpoint_talk_read(const char *text, struct checkpoint_talk *ret, char why[static CHECKPOINT_WHY_MAX]);
void checkpoint_talk_done(struct checkpoint_talk *t);

/* The value of that metric, as JSON has the metrics; NaN: it is not there, or no number. */
double checkpoint_value(const char *metrics, const char *metric);

/* To be freed. */
int checkpoint_talk_id(uint64_t id, char **ret);
int checkpoint_talk_marked(const struct checkpoints *c, uint32_t owner, uint64_t after, char **ret);
