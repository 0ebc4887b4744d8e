/* SPDX-License-Identifier: Apache-2.0 */
/* What a job may begin from. */
#pragma once

#include "tools/primusctl/cli/cli.h"

/* from: MODEL, MODEL@VERSION, a checkpoint's number, or an absolute path. *ret, to be freed, is the
 * directory. pin: one that is named by its number stays from now on. 0 or an exit status, having said why. */
int model_source(struct cli *c, const char *from, bool pin, char **ret);
