/* SPDX-License-Identifier: Apache-2.0 */
/* What a job waits for, in the scheduler's words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/job/job.h"
#include "masterd/sched/sched.h"

struct manager;

struct shape_data {
        uint32_t role;
        uint32_t *allowed, *present, *excluded;
};

/* A gang with what its shapes point to. Zero-initialised. */
struct gang_data {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct shape_data data[SCHED_SHAPES_MAX];
        size_t n;
};

/* What the job waits for now; n = 0: nothing. Replaces what was in g. -ENOMEM. */
int gang_build(struct manager *m, struct job *j, struct gang_data *g);
void gang_data_done(struct gang_data *g);

/* The name of the role that is behind a shape of the gang that gang_build() makes now. */
const char *gang_role(struct job *j, uint32_t shape);

/* It has no place and may have one (its turn in an ordered start is another question). */
bool executor_waits(const struct executor *e);
