/* SPDX-License-Identifier: Apache-2.0 */
/* The files of logs --output: a pattern with %j %x %r %i %a %n %% names one for each attempt. */
#pragma once

#include <stdio.h>

#include "tools/primusctl/bus/watch.h"

/* The file of an attempt, empty and open for writing; NULL (what is wrong has been said, but for want of
 * memory). */
FILE *logfile_open(const struct cli *c, const char *pattern, const struct watch *w, const struct executor *e);
