/* SPDX-License-Identifier: Apache-2.0 */
/* Where an executor is among the host's control groups, as programs in the kernel know it. */
#pragma once

#include <stdint.h>

#include "lib/wire/messages.h"

struct unit_group {
        uint64_t slice, unit; /* inodes of primus.slice and of the unit's directory */
};
/* -ENOENT: the host has no cgroup v2 tree, or the unit is not in it (any more). */
int unit_group_find(const struct executor_id *id, struct unit_group *ret);
