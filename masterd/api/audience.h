/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets a job's signals: those who have asked about it lately. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/core/listeners.h"

struct job;

/* The caller has a right on the job, or (looks) may only look at it: it gets the job's signals from now on,
 * the latter as long as that holds. The latest 32 of each do: who only looks takes nobody's place who has a
 * right, and few places. */
void audience_add(struct job *j, sd_bus_message *call, uint32_t uid, bool looks);
/* Whether it gets them by a right of its own. */
bool audience_has(const struct job *j, const char *name);
/* Calls send for each, unless it may not look any more; later where that has to be found out, in the order of
 * the calls. data belongs to the caller; it is copied where it is needed longer. */
void audience_tell(struct job *j, watcher_function send, const void *data, size_t size);
/* The job goes. */
void audience_forget(struct job *j);
