/* SPDX-License-Identifier: Apache-2.0 */
/* The text of cgroup files. Pure. What a text does not have stays untouched. */
#pragma once

#include <stdint.h>

/* "max" is UINT64_MAX; text that is no number leaves *ret. */
void cgroup_parse_number(const char *text, uint64_t *ret);

struct cgroup_key {
        const char *name;
        uint64_t *ret;
};
/* Flat keyed files ("usage_usec 42"), one key a line. keys ends with a NULL name. */
void cgroup_parse_keys(const char *text, const struct cgroup_key *keys);

/* cpu.max, "150000 100000": microseconds of CPU per second; UINT64_MAX: no limit. */
void cgroup_parse_cpu_max(const char *text, uint64_t *ret);

/* NAME.pressure: total= of the lines "some" and "full", microseconds. Either may be NULL. */
void cgroup_parse_pressure(const char *text, uint64_t *ret_some, uint64_t *ret_full);

/* io.stat, "8:0 rbytes=1 wbytes=2 ...": sums over devices. A group that has done no I/O has an empty file:
 * 0 and 0. */
void cgroup_parse_io(const char *text, uint64_t *ret_read, uint64_t *ret_written);
