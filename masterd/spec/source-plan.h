/* SPDX-License-Identifier: Apache-2.0 */
/* From the sources that a job's data has to those that it is to have: which are added, which removed, and
 * what weight each has. Sources are known by their names, and what one is does not change. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "masterd/spec/edit.h"

/* One source that is to be there, or is not to be. */
struct source_wish {
        char *name;
        bool remove;     /* it is there */
        char *add;       /* it is not: an entry as EDIT_ADD_SOURCE has it; else NULL */
        uint32_t weight; /* 0: none is said */
};
struct source_plan {
        struct source_wish *wishes; /* in the order of the wanted ones, then those that are to go */
        size_t n;
};
void source_plan_done(struct source_plan *p);

/* text: JSON, an array of entries of inputManager.fileConfig.inputs or .kafkaConfig.topics. removed: of each
 * source of the job, whether it was removed already. -EINVAL: ret_error says what is wrong (one line);
 * -ENOMEM. */
int source_plan_make(const struct job_spec *now, const bool *removed, const char *text,
                     struct source_plan *ret, char ret_error[static SPEC_EDIT_TEXT_MAX]);
