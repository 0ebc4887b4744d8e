/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of a unit's processes, for hosts that take no BPF: dearer by far, blind to what ended
 * without having been waited for by another process of the unit, and bounded. Inside the room. */
#pragma once

#include <stdint.h>

#include "lib/wire/telemetry-fields.h"

/* Processes and threads of a unit that one look goes through; of a unit with more, values are of the first
 * ones and the sums that would be wrong stay TELEMETRY_UNKNOWN. */
#define PROCFS_TASKS_MAX 1024u

/* The directory of a unit by its id, two levels below the slice: a descriptor, or -ENOENT. */
int procfs_find(int slice_fd, uint64_t cgroup_id);

/* proc_fd: /proc. Fills what is not known of the processes in unit_fd/cgroup.procs. -errno: the unit is gone.
 */
int procfs_fill(int proc_fd, int unit_fd, uint64_t values[static _TELEMETRY_MAX]);
