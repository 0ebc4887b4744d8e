/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a search. */
#pragma once

#include "masterd/spec/schema.h"

extern const struct schema search_schema;
bool job_has_search(const void *target);
#define JOB_SEARCH_ROW                                                                                       \
        { "search", KEY_MESSAGE, AT(job_spec, search), .message = &search_schema, .written = job_has_search }
