/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the API for programs, OpenAPI 3.0.3, made of the tables by which it is served. */
#pragma once

#include "webd/route/route.h"

/* NULL: no memory. */
json_t *openapi_new(const struct route *table, size_t n);
