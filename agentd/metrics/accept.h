/* SPDX-License-Identifier: Apache-2.0 */
/* What a scraper would like to read: the Accept header of HTTP. Pure. */
#pragma once

#include <stdbool.h>

/* Whether OpenMetrics 1.0 is wanted at least as much as plain text. NULL: no such header. */
bool accept_openmetrics(const char *header);
