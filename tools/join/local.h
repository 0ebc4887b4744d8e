/* SPDX-License-Identifier: Apache-2.0 */
/* The master of this very host: where it listens, and a token from it. */
#pragma once

#include <stdbool.h>

#include "lib/base/addr.h"
#include "lib/wire/authority.h"

/* Where a client on this host reaches what Listen= of masterd.conf says, "*:7747 192.0.2.1:7748": any address
 * is 127.0.0.1 (or ::1). The first of the list that can be read; the default where none can. */
void listen_target(const char *listen, struct addr *ret);

/* The same of masterd's settings on this host. */
void local_target(struct addr *ret);

/* Whether the host of "HOST[:PORT]" is this one: one of its addresses can be bound here. */
bool is_this_host(const char *master);

/* A token of one use, for a minute, one address and this name, which it may have had before; asked of masterd
 * on the system bus. An exit status as in place.h, said. */
int local_token(const struct addr *from, const char *name, struct join_token *ret);
