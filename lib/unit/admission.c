/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of start orders. Invariant: an order that passes names a valid executor of an allowed user. */
#include "lib/unit/admission.h"

#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/base/names.h"

const char *admission_check(const struct start_order *o, const char *node, const struct serve_policy *policy,
                            char **ret_why) {
        const char *error = LINK_ERROR_START, *unserved, *bad;
        char text[SERVE_WHY_MAX];
        int r;

        if (!role_name_valid(o->id.role) || o->id.job == 0 || o->id.attempt == 0)
                r = asprintf(ret_why, "the order names no valid executor");
        else if ((unserved = serve_decide_number(policy, o->uid, node, text, NULL))) {
                error = LINK_ERROR_NOT_SERVED;
                r = asprintf(ret_why, "%s", unserved);
        } else if ((bad = start_order_bad_text(o)))
                r = asprintf(ret_why,
                             "the order's %s has control characters, line breaks, or a blank or backslash "
                             "where it ends; host %s does not take that",
                             bad, node);
        else if (o->cwd && *o->cwd && *o->cwd != '/')
                r = asprintf(ret_why, "the working directory %s is not an absolute path", o->cwd);
        else
                return NULL;
        if (r < 0)
                *ret_why = NULL;
        return error;
}
