/* SPDX-License-Identifier: Apache-2.0 */
/* Where a unit is: every way from a name that somebody sent to a file or a process leads through here, and
 * none of them leads out of primus.slice. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PLACE_PROCESSES_MAX 4096u /* of a unit that are looked at */

/* The top of cgroup v2 ("/sys/fs/cgroup", or "/sys/fs/cgroup/unified"): a descriptor. -ENOENT: there is none.
 * root: put before every path, "" in life. */
int place_hierarchy(const char *root);
/* primus.slice below it: a directory to be read. -ENOENT. */
int place_slice(int hierarchy);
/* The control group of an executor's unit. -EINVAL: that is no such name; -ENOENT: there is none. */
int place_unit(int hierarchy, const char *unit);
/* The same on the hierarchy of systemd's own where the host has no cgroup v2. */
int place_unit_of_systemd(const char *root, const char *unit);
/* The number of a unit's job; the name is valid. */
uint32_t place_job(const char *unit);

/* path below top (relative, without "." and ".."), opened with flags; nothing on the way is a link, nor is
 * what is opened. */
int place_open_below(int top, const char *path, int flags);

/* Processes of the control group and of those below it, at most PLACE_PROCESSES_MAX. */
size_t place_processes(int unit_fd, pid_t ret[static PLACE_PROCESSES_MAX]);
