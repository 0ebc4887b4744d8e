/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of a host's GPUs: bits by the place in its inventory, and as text, uuids by spaces, which outlives the
 * inventory. Pure. */
#pragma once

#include "lib/wire/messages.h"

#define NODE_GPUS_MAX 64u

/* All of the set, however many and however long their names are. Allocated; NULL: out of memory. */
char *gpus_text(const struct inventory *v, uint64_t gpus);
/* Those of the text that the host has. */
uint64_t gpus_of_text(const struct inventory *v, const char *text);
/* Its place in the list; -ENOENT: it is not in it, or behind what a set has room for. */
int gpus_index(const struct inventory *v, const char *uuid);
/* The same GPUs, by uuid, in another list; those that are not in it are not in the set any more. */
uint64_t gpus_remap(const struct inventory *old, const struct inventory *v, uint64_t gpus);
/* An inventory that knows no GPU gets those of the text, NODE_GPUS_MAX at most, of which nothing but their
 * names is known. -ENOMEM: some were added. */
int gpus_named(const char *text, struct inventory *v);
