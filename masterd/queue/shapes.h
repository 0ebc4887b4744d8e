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
        uint64_t memory; /* of each */
        uint32_t *allowed, *present, *excluded;
        struct constraint **constraints; /* required and preferred ones */
        size_t n_constraints;
        struct sched_preference *preferred;
        struct sched_amount *amounts;
};

/* A gang with what its shapes point to. Zero-initialised. */
struct gang_data {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct shape_data data[SCHED_SHAPES_MAX];
        size_t n;
        struct sched_gang gang; /* of these shapes */
};

/* What the job waits for now; n = 0: nothing. Behind the shapes that wait are those of roles that do not,
 * where the others are to be near to them or apart. Replaces what was in g. -ENOMEM. */
int gang_build(struct manager *m, struct job *j, struct gang_data *g);
void gang_data_done(struct gang_data *g);

/* A shape with all that a role's configuration says, but how many. j NULL: of a job that is not one yet. Zero
 * *d before; shape_data_done() after, whatever comes back. -ENOMEM. */
int shape_build(struct manager *m, struct job *j, const struct role_spec *spec, struct sched_shape *s,
                struct shape_data *d);
void shape_data_done(struct shape_data *d);

/* The name of the role that is behind a shape of the gang that gang_build() makes now. */
const char *gang_role(struct job *j, uint32_t shape);

/* What an executor of the role takes of licences: allocated, NULL for none. Those that masterd.conf does not
 * have (any more) have a total of 0. -ENOMEM. */
int shape_amounts(struct manager *m, const struct role_spec *spec, struct sched_amount **ret,
                  uint32_t *ret_n);
/* Whether the executor is one of those that the shape is for. */
bool gang_takes(const struct gang_data *g, uint32_t shape, const struct executor *e);

/* It has no place and may have one (its turn in an ordered start is another question). */
bool executor_waits(const struct executor *e);
