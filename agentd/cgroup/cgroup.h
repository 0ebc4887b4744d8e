/* SPDX-License-Identifier: Apache-2.0 */
/* The control group of one unit, as cgroup v2's files show it. A file that is not there (a controller that
 * the host does not have, an older kernel) leaves its values as they are: unknown is never 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/wire/telemetry-fields.h"

struct cgroup;

/* So often values that move slowly or cost much (pressure, limits, events, block I/O) are read, in calls of
 * cgroup_fill(); between, they are what they were. */
#define CGROUP_SLOW_CALLS 5u

/* Where cgroup v2 is mounted below root ("" in life): "/sys/fs/cgroup", or "/sys/fs/cgroup/unified" on a
 * hybrid host. -ENOENT: the host has none. */
int cgroup_root(const char *root, char **ret);

/* The directory of a unit below that, such as "primus.slice/primus-418.slice/UNIT". -ENOENT: it is not there
 * (yet). */
int cgroup_open(const char *root, const char *path, struct cgroup **ret);
struct cgroup *cgroup_free(struct cgroup *c);
DEFINE_CLEANUP(struct cgroup *, cgroup_free)

/* The inode of the directory: what BPF programs and sock_diag know it by. */
uint64_t cgroup_id(const struct cgroup *c);
/* For files that others read; stays the group's. */
int cgroup_fd(const struct cgroup *c);

/* The next cgroup_fill() reads everything. */
void cgroup_hasten(struct cgroup *c);

/* Writes what its files say; others stay untouched. */
void cgroup_fill(struct cgroup *c, uint64_t values[static _TELEMETRY_MAX]);
