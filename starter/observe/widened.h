/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes that were made larger for agentd: how many there are, and what they hold at most. The kernel
 * keeps the sum of what a user's pipes may have from everybody but whom it trusts, which is why the starter
 * is asked; so it keeps a sum of its own. */
#pragma once

#include <stdint.h>

#include "lib/base/cleanup.h"

/* A pipe for each connection to the feed's socket, of 128 KiB, and what the agent takes for larger ones. */
#define WIDENED_MAX 4096u
#define WIDENED_BYTES_MAX (UINT64_C(768) << 20)

struct widened;
/* max, bytes_max: for tests. */
int widened_new(unsigned max, uint64_t bytes_max, struct widened **ret);
void widened_free(struct widened *w);
DEFINE_CLEANUP(struct widened *, widened_free)

/* Makes the pipe hold size bytes, if it holds less, or twice as many as a new one does, where that is more.
 * -EMEDIUMTYPE: it is none, or one that has a name; -EDQUOT: with it there would be too many, or they would
 * be too large. fd stays the caller's. */
int widened_take(struct widened *w, int fd, uint32_t size, uint64_t now, uint32_t *ret);
