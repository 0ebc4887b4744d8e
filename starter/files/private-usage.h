/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/unit/private-usage.h"

/* Of a unit's private directory. Follows no links. -ENOENT. */
int private_usage_read(const char *root, const char *unit, struct private_usage *ret);
