/* SPDX-License-Identifier: Apache-2.0 */
/* What this host's agentd.conf says, for people who ask on this host. */
#pragma once

/* Value of KEY= in section [Agent] of agentd.conf and its drop-ins below root, the last one; allocated;
 * -ENOENT. */
int agent_setting(const char *root, const char *key, char **ret);
