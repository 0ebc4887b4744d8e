/* SPDX-License-Identifier: Apache-2.0 */
/* Work that may hang in the kernel, such as a file of /proc of a process whose memory is on a file system of
 * its own: done by a process of its own, which has a few capabilities, writes what it finds into a pipe, and
 * ends by itself. The starter neither waits for it nor reads the pipe. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

/* At once, among them those that cannot be killed while they hang. */
#define CHILDREN_MAX 16u
#define CHILDREN_OF_OWNER_MAX 4u
#define CHILD_SECONDS 10u

struct children;
int children_new(sd_event *event, struct children **ret);
/* Those that are left are killed, and reaped by whoever comes after us. */
void children_free(struct children *c);
DEFINE_CLEANUP(struct children *, children_free)

/* Runs in the child. Descriptors other than its two are closed; whatever is in memory is a copy. */
typedef void (*child_function)(void *job, int in, int out);

/* owner: for whom it is, a user or anything that is counted like one. in: a descriptor that the child keeps;
 * stays the caller's. *ret_fd: where the child's words are read. -EBUSY: as many are under way. */
int child_run(struct children *c, uint32_t owner, uint64_t capabilities, child_function f, void *job, int in,
              int *ret_fd);
