/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked of a start order before anything is made of it: by agentd, and again by the starter. */
#pragma once

#include <stdbool.h>

#include "lib/policy/serve.h"
#include "lib/wire/messages.h"

/* NULL, or a static D-Bus error name with *ret_why (allocated; NULL on ENOMEM). Of the user, what his number
 * tells; where the policy has names, the rest is looked up before anything is made (units_ops.serve). */
const char *admission_check(const struct start_order *o, const char *node, const struct serve_policy *policy,
                            char **ret_why);
