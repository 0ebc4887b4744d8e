/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked of a start order before anything is made of it: by agentd, and again by the starter. */
#pragma once

#include <stdbool.h>

#include "lib/wire/messages.h"

/* NULL, or a static D-Bus error name with *ret_why (allocated; NULL on ENOMEM). */
const char *admission_check(const struct start_order *o, const char *node, bool allow_root, char **ret_why);
