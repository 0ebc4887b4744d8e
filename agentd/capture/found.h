/* SPDX-License-Identifier: Apache-2.0 */
/* A capture, put together from what the starter found. Pure. */
#pragma once

#include "lib/observe/stream.h"
#include "lib/wire/capture.h"

/* One more record. What does not fit (too many threads, a stack of a thread that is not there) is left out.
 * -ENOMEM. */
int found_add(struct capture *c, const struct stream_item *item);

/* The name of a system call of this machine; "call NUMBER" for one that the library does not know. */
void call_name(long number, char *buf, size_t size);
