/* SPDX-License-Identifier: Apache-2.0 */
/* A host as a person names it for ssh: [USER@]HOST[:PORT]. */
#pragma once

/* What ssh is called with: its host (a new string, the caller's) and its port (within host; NULL: ssh's own).
 * -EINVAL: what ssh would take for an option, or could hand to a shell of a ProxyCommand in its
 * configuration. */
int ssh_host_split(const char *host, char **ret_name, const char **ret_port);
