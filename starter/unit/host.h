/* SPDX-License-Identifier: Apache-2.0 */
/* What the limits of an order mean on this host. root is put before every path ("" in life). Nothing here
 * looks at a file system that could hang: what a directory is on, the table of mounts says. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/messages.h"

/* The same limits with the whole disk's device (/dev/vda) in the place of each path. -EINVAL with *ret_why
 * (allocated, a sentence with the host's name): there is no such device, or no disk under that directory.
 * *ret is NULL and *ret_n 0 on a host that has no io controller: there is nothing to enforce them with. */
int host_io(const char *root, const char *node, const struct io_limit *io, size_t n, struct io_limit **ret,
            size_t *ret_n, char **ret_why);

/* A bit for each of the kernel's NUMA nodes that has one of these CPUs. 0: there is one node only, one of
 * them is numbered above 63, or nothing is known. */
uint64_t host_numa_nodes(const char *root, const char *cpus);

/* Half of the processes and threads that the kernel has room for; 0: not known. */
uint64_t host_tasks_bound(const char *root);
