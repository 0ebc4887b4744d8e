/* SPDX-License-Identifier: Apache-2.0 */
/* Host lists as people type them: "n[1-3,7],gpu01", "rack[01-04]n[1-2]". */
#pragma once

#include <stddef.h>

/* Expands into a NULL-ended array of at most max valid, distinct node names in the order given (free with
 * hostlist_free). -EINVAL: not a host list; -E2BIG: more than max. ret_n may be NULL. */
int hostlist_expand(const char *s, size_t max, char ***ret, size_t *ret_n);
void hostlist_free(char **names);

/* The shortest form for a sorted set of names: "n[1-3,7]". Allocated; NULL on ENOMEM. */
char *hostlist_compress(const char *const *names, size_t n);
