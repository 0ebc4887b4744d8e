/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as RFC 9457 has them, "application/problem+json". */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* type "about:blank", the status and the sentence. */
json_t *problem_new(unsigned status, const char *detail);

/* Of an error that came from the bus: type "urn:primus:error:BadConfig", or "about:blank" where it is not
 * Primus's own. if_match: the request had a version, which is what a conflict is about then. A position that
 * the sentence begins with ("line 3, column 7: ") stands in "line" and "column", too. */
json_t *problem_of_error(const char *name, const char *message, bool if_match, unsigned *ret_status);
