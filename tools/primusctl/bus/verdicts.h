/* SPDX-License-Identifier: Apache-2.0 */
/* What executors of a job suffer from, as masterd says it. */
#pragma once

#include <jansson.h>

#include "tools/primusctl/cli/cli.h"

/* A line for each of "verdicts" of a status; nothing when there are none. */
void verdicts_print(const struct cli *c, const json_t *verdicts);
