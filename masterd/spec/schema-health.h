/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a role, and of a job, about their health. For the tables alone. */
#pragma once

#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"

extern const struct schema health_schema;
bool role_has_health(const void *target);
bool job_has_health(const void *target);

#define ROLE_HEALTH_ROW                                                                                      \
        {                                                                                                    \
                "health", KEY_MESSAGE, AT(role_spec, health), .message = &health_schema,                     \
                                                              .written = role_has_health                     \
        }
#define JOB_HEALTH_ROW                                                                                       \
        { "health", KEY_MESSAGE, AT(job_spec, health), .message = &health_schema, .written = job_has_health }
