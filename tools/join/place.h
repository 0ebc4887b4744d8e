/* SPDX-License-Identifier: Apache-2.0 */
/* Where this host's identity and its master's address are kept. */
#pragma once

#include <stdbool.h>

#include "lib/base/cleanup.h"
#include "lib/wire/authority.h"

#define NODE_DIRECTORY PRIMUS_SYSCONFDIR "/node"
#define MASTER_DROP_IN PRIMUS_SYSCONFDIR "/agentd.conf.d/10-join.conf"
#define MASTER_PORT 7747

/* Everything below says on stderr what went wrong, in one line, and returns the exit status for that. */
enum {
        JOIN_OK = 0,
        JOIN_FAILED = 1,
        JOIN_USAGE = 2,
        JOIN_CONFIG = 78, /* trying again changes nothing: somebody has to set something first */
};

/* "primus-join: ..." to people; alone where systemd writes the name before it. Returns status. */
int fail(int status, const char *format, ...) _printf_(2, 3);

/* Whether this host has an identity. */
bool identity_there(void);
/* Whether it is one of that name. */
bool identity_named(const char *node);
/* Whether it can be written at all: found out before a token is spent. */
int identity_writable(void);
/* Replaces the identity as a whole, on disk. Where it is of another cluster than the one before, what the
 * agent remembers of that one is forgotten, or it would not follow the new master before the next boot. */
int identity_write(const char *ca_pem, const struct certificate *certificate);

/* Master= of agentd.conf and its drop-ins (allocated); NULL where nobody has set it, or a join did. */
char *master_set_by_others(void);
/* Master= of the drop-in that joins write. */
int master_write(const char *host);
