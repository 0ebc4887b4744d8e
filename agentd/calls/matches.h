/* SPDX-License-Identifier: Apache-2.0 */
/* Which signals a caller has asked for, by its match rules. Of a rule the path alone is looked at, since that
 * is what parts one job's signals from all others'; whoever gets more than he asked for passes over it, as
 * every client of a bus does. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MATCHES_MAX 512u /* as a bus allows */
#define MATCH_PATH_MAX                                                                                       \
        255u /* bytes; no object of masterd's has a longer one, so such a rule is for nothing */

struct matches {
        char **paths;
        size_t n_paths;
        unsigned all; /* rules that name no path */
};
void matches_done(struct matches *m);

/* "type='signal',path='/org/primus/Master1/job/7'". *ret_path: what is wanted by it, allocated: a path, ""
 * for all there are; NULL: nothing that the bus does not say in any case. -ENOBUFS: there are as many as
 * there may be; -ENOMEM. */
int matches_add(struct matches *m, const char *rule, char **ret_path);
/* One of those that are like it. *ret_path: what is wanted by it no more; NULL: there was none. */
void matches_remove(struct matches *m, const char *rule, char **ret_path);
bool matches_want(const struct matches *m, const char *path);
