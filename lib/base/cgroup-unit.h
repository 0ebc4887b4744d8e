/* SPDX-License-Identifier: Apache-2.0 */
/* Which unit of Primus a process is in. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* The service in whose control group a process is, when that is in a slice below primus.slice of this host's
 * systemd: text is /proc/PID/cgroup of the process, init that of PID 1. 0, or -ENOENT: it is elsewhere. Works
 * on cgroup v2 ("0::PATH") and on hybrid and v1 hosts ("N:name=systemd:PATH"), and where the host's systemd
 * sits in a control group itself. */
int cgroup_unit_parse(const char *text, const char *init, char *ret, size_t size);
/* The same of a process; negative errno: it is gone. */
int cgroup_unit_of(pid_t pid, char *ret, size_t size);
/* Its path in the hierarchy that systemd manages, cut to size: for people. */
int cgroup_path_of(pid_t pid, char *ret, size_t size);
