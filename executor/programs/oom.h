/* SPDX-License-Identifier: Apache-2.0 */
/* Which process the kernel killed for want of memory, and at whose limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oom_at {
        OOM_AT_UNIT,  /* the executor's own limit */
        OOM_AT_JOB,   /* that of the job's slice */
        OOM_AT_ABOVE, /* that of all jobs of the host, or of what the host lives in */
        OOM_AT_HOST,  /* the host had no more */
        OOM_AT_NODE,  /* the NUMA nodes that it may have memory of had no more */
        _OOM_AT_MAX,
};
const char *oom_at_to_string(enum oom_at at);

struct oom {
        enum oom_at at;
        char task[64];
        uint32_t pid;
        uint64_t held; /* bytes; 0: not known */
};

/* The last such kill in the unit's cgroup that the kernel's log (the text, of size bytes) tells of. false:
 * none. */
bool oom_parse(const char *log, size_t size, const char *unit, struct oom *ret);
/* The same from the kernel, which keeps the end of its log. Needs CAP_SYSLOG. */
bool oom_find(const char *unit, struct oom *ret);
