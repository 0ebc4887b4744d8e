/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

/* Makes the directories of the host's daemons, or gives those that are there (of an agentd that was root, or
 * another account's) the owners and modes of lib/unit/files.h: to be done before either daemon starts. uid
 * and gid: of primus-agentd's user; metrics: the group of those who may connect to sockets of MetricsListen=,
 * which have it of the directory. Logs what failed. */
int prepare(const char *root, uid_t uid, gid_t gid, gid_t metrics);
