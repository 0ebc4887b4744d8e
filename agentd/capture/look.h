/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at processes through /proc, in a thread: what hangs in the kernel may make a file of /proc hang, and
 * then it is this thread that does. Needs no capability; without CAP_SYS_PTRACE it sees less. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/cleanup.h"
#include "lib/wire/capture.h"

struct look;

/* Threads that look, among them those that hang in it though nobody waits for them any more. */
#define LOOKS_MAX 16u
#define LOOKS_OF_USER_MAX 4u

struct look_request {
        const char *proc; /* "/proc" in life */
        const pid_t *pids;
        size_t n_pids;
        const char *unit;      /* whose they are; for the signal */
        int signal;            /* 0: nobody is asked for its own stacks */
        const char *directory; /* the job's work directory, see program.h; NULL: nowhere */
        uint32_t uid;          /* whose those files and processes are */
        /* Sends the signal to a process of the unit that catches it, and says so. */
        bool (*tell)(pid_t pid, const char *unit, int signal);
        /* The kernel's stacks of a control group's tasks: see latency_stacks(). May be NULL. */
        char *(*stacks)(uint64_t slice, uint64_t cgroup_id);
        uint64_t slice, cgroup_id;
};

/* Starts; everything is copied. -EBUSY: as many look already. ret_fd becomes readable once it is over, and is
 * the look's. */
int look_new(const struct look_request *q, struct look **ret, int *ret_fd);
/* What was found up to now; the look ends where it is not over. To be called once. */
void look_take(struct look *l, struct capture *ret);
/* Also while its thread hangs. */
void look_free(struct look *l);
DEFINE_CLEANUP(struct look *, look_free)
