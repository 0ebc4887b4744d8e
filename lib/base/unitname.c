/* SPDX-License-Identifier: Apache-2.0 */
/* Names of units and slices. Invariant: role names hold no '-' (lib/base/parse.h), so distinct executors have
 * distinct names. */
#include "lib/base/unitname.h"

#include <stdio.h>

char *executor_unit_name(uint32_t job, const char *role, uint32_t index, uint32_t attempt,
                         char buf[static UNIT_NAME_MAX]) {
        snprintf(buf, UNIT_NAME_MAX, "primus-%u-%s-%u.%u.service", job, role, index, attempt);
        return buf;
}

char *job_slice_name(uint32_t job, char buf[static UNIT_NAME_MAX]) {
        snprintf(buf, UNIT_NAME_MAX, "primus-%u.slice", job);
        return buf;
}
