/* SPDX-License-Identifier: Apache-2.0 */
/* The last word of executors that are fed: which tasks their trainers had finished, and how far they had come
 * in others, when they ended. Kept in a file per unit until masterd has the unit's end on disk, because the
 * executor that said it is gone by then. root, for tests, is put before the path ("" in life). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/messages.h"

#define FINAL_DIR "/var/lib/primus-agent/progress"
#define FINAL_MAX (64u << 20) /* bytes per unit: a million tasks, as many as an executor can hold */

/* Puts a body of FEED_FINAL behind what is there, or in its place. -EFBIG, or what the file system says. */
int final_put(const char *root, const char *unit, const void *body, size_t size, bool first);

/* Hands over what was put, report by report; the handler's negative result ends it. 0 also where there is
 * nothing; -EBADMSG: the rest is no report (agentd died while it wrote: the executor says it
 * again). */
typedef int (*final_handler)(const struct feed_report *report, void *userdata);
int final_read(const char *root, const char *unit, final_handler handler, void *userdata);

void final_delete(const char *root, const char *unit);

/* Deletes the files of all units for which keep() says no: those of an earlier boot. */
int final_sweep(const char *root, bool (*keep)(const char *unit, void *userdata), void *userdata);
