/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are let through, before anything of them is looked at. The page is of one origin, and other
 * pages in the same browser are not to make it do or tell anything: not by a name of their own for this
 * address (DNS rebinding), nor by forms, links and scripts (cross-site requests). */
#pragma once

#include <stdbool.h>

struct guard_request {
        const char *method;
        bool api; /* below /v1, not a file of the page */
        /* Headers; NULL: none. */
        const char *host, *content_type, *origin, *fetch_site, *marker;
        bool reads_only;          /* the door is one at which nothing is changed */
        const char *const *names; /* further ones of the host, NULL-ended; or NULL */
};

/* The header that a request which changes something has: no form can send it. */
#define GUARD_MARKER "Primus-Request"

/* 0, or the status of the refusal and its sentence. */
unsigned guard_check(const struct guard_request *r, const char **ret_why);
