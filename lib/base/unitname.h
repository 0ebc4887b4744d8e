/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are the same on every host: an executor's unit, a job's slice, and the files beside them.
 * Identity is never parsed out of these names (it is read from PRIMUS_* in the unit's environment); they are
 * for people. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define UNIT_NAME_MAX 96

/* "primus-418-worker-3.1.service". Returns buf. */
char *executor_unit_name(uint32_t job, const char *role, uint32_t index, uint32_t attempt,
                         char buf[static UNIT_NAME_MAX]);

/* Whether a name looks like one of those. */
bool executor_unit_name_valid(const char *name);

/* "primus-418.slice". Returns buf. */
char *job_slice_name(uint32_t job, char buf[static UNIT_NAME_MAX]);
