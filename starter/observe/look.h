/* SPDX-License-Identifier: Apache-2.0 */
/* What a unit's threads are doing and what its processes have read and written, by /proc. Run by child.h:
 * what hangs in the kernel may make a file of /proc hang. Without CAP_SYS_PTRACE it sees less. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/unitname.h"
#include "lib/observe/observe.h"

struct look_capture {
        const char *proc; /* "/proc" in life */
        char unit[UNIT_NAME_MAX];
        int signal;                /* 0: nobody is asked for its own stacks */
        const char *directory;     /* the job's work directory, see program.h; NULL: nowhere */
        uint32_t uid;              /* whose it is */
        uint64_t slice, cgroup_id; /* for the kernel's stacks; 0: without */
        const pid_t *pids;         /* NULL: those of the control group that is in */
        size_t n_pids;
};
/* job: struct look_capture. in: the unit's control group. out: gets the records, the last STREAM_END. */
void look_capture(void *job, int in, int out);

struct look_usage {
        const char *proc;
        size_t n;
        char (*units)[UNIT_NAME_MAX];
};
/* job: struct look_usage. in: the top of cgroup v2. out: a STREAM_USAGE of each unit of which something is
 * known, and STREAM_END. */
void look_usage(void *job, int in, int out);
