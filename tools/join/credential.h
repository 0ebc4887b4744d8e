/* SPDX-License-Identifier: Apache-2.0 */
/* What a host that is made by demand is given at its first boot, as systemd's credential primus.join: one
 * line, "HOST[:PORT] NAME TOKEN". */
#pragma once

#include "lib/wire/authority.h"

/* A host's name, a port, a node's name and a token are far shorter. */
#define CREDENTIAL_MAX 1024u

struct join_credential {
        char target[264]; /* HOST[:PORT] */
        char name[65];    /* of the node */
        struct join_token token;
};

/* text is changed. 0; -EINVAL, *ret_why (static) in the words of "its ... is not ...". */
int credential_parse(char *text, struct join_credential *ret, const char **ret_why);
/* The same of a file; an exit status as in place.h, having said why: what a file says does not change by
 * itself. */
int credential_read(const char *file, struct join_credential *ret);
