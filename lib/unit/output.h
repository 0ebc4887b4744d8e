/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/wire/messages.h"

/* Expands %j %r %i %a %n %% of an output pattern; a relative one is below directory, or stays so where that
 * is NULL. -EINVAL: an unknown letter. */
int output_expand(const char *pattern, const struct executor_id *id, const char *node, const char *directory,
                  char **ret);
