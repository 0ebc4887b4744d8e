/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are inside the host, and what it is called by: NUMA nodes, /dev/shm, labels. Everything below
 * root, which is "" in life; what cannot be read is left out. -ENOMEM. */
#pragma once

#include "lib/wire/messages.h"

#define SYSTEM_FILE_MAX (256u << 10) /* bytes of a file of the kernel or of /etc that is looked into */

/* The online CPUs of each NUMA node that has any, in the kernel's order; without such nodes all in one. */
int locality_read_numa(const char *root, struct inventory *i);
/* The index into i->numa of a PCI device's node; 0 where the kernel does not say. */
uint32_t locality_numa_of_pci(const char *root, const char *pci, const struct inventory *i);
/* The size of /dev/shm; 0: there is none. */
uint64_t locality_read_shm(const char *root);
/* Sets i->labels: arch, os and kernel, with those of extra (NULL-ended KEY=VALUE, or NULL) over them. */
int locality_set_labels(const char *root, char *const *extra, struct inventory *i);
