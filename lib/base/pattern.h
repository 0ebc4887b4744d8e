/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of users over lines of other users' programs: Perl-compatible (pcre2pattern(3)), on
 * bytes, without what runs for ever: whatever the expression and the line are, a match ends after a bounded
 * number of steps. A library of its own, for who needs libpcre2. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/cleanup.h"

#define PATTERN_MAX 256u       /* bytes of an expression */
#define PATTERN_LINE_MAX 4096u /* what is behind that in a line is not looked at */

struct pattern;

/* Whether it can be compiled; else *ret_why is a phrase behind the key's name ("is no regular expression:
 * …"), valid until the thread's next call. */
bool pattern_valid(const char *text, const char **ret_why);

/* -EINVAL, as pattern_valid() says; -ENOMEM. */
int pattern_new(const char *text, struct pattern **ret);
struct pattern *pattern_free(struct pattern *p);
DEFINE_CLEANUP(struct pattern *, pattern_free)

/* Whether the line has a part that matches. A match that takes too many steps counts as none. */
bool pattern_match(struct pattern *p, const char *line, size_t size);
