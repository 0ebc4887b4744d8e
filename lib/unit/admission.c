/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of start orders. Invariant: an order that passes names a valid executor of an allowed user. */
#include "lib/unit/admission.h"

#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

const char *admission_check(const struct start_order *o, const char *node, bool allow_root, char **ret_why) {
        const char *error = LINK_ERROR_START, *text;
        int r;

        if (!role_name_valid(o->id.role) || o->id.job == 0 || o->id.attempt == 0)
                r = asprintf(ret_why, "the order names no valid executor");
        else if (o->uid == 0 && !allow_root) {
                error = LINK_ERROR_REFUSED;
                r = asprintf(
                        ret_why,
                        "host %s does not run jobs of root; submit as an ordinary user, or set AllowRoot=yes "
                        "in /etc/primus/agentd.conf there",
                        node);
        } else if (o->uid == UINT32_MAX || o->uid == UINT16_MAX)
                r = asprintf(ret_why, "uid %u is not a user's", o->uid);
        else if ((text = start_order_bad_text(o)))
                r = asprintf(ret_why,
                             "the order's %s has control characters, line breaks, or a blank or backslash "
                             "where it ends; host %s does not take that",
                             text, node);
        else if (o->cwd && *o->cwd && *o->cwd != '/')
                r = asprintf(ret_why, "the working directory %s is not an absolute path", o->cwd);
        else
                return NULL;
        if (r < 0)
                *ret_why = NULL;
        return error;
}
