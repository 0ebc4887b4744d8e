/* SPDX-License-Identifier: Apache-2.0 */
/* Whom this host serves, where its policy has names: asked of the host's own user database. */
#pragma once

#include "lib/base/cleanup.h"
#include "lib/policy/serve.h"

struct lookup;
/* policy stays the caller's. */
int lookup_new(const struct serve_policy *policy, struct lookup **ret);
void lookup_free(struct lookup *l);
DEFINE_CLEANUP(struct lookup *, lookup_free)

/* NULL: it is served; else why not, in buf. Where the database does not answer, nobody is whom it has not
 * told of within the last hour. */
const char *lookup_refuses(struct lookup *l, uint32_t uid, const char *node, char buf[static SERVE_WHY_MAX]);
