/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a daemon used in a burst goes back to the kernel when the burst is over. (The allocator by
 * itself returns only what lies at the end of its heap, below which some small thing always stays.) */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

/* Looks every few seconds, and gives back what is free since the last look. The loop owns the timer. 0,
 * -ENOMEM. */
int memory_watch(sd_event *event);

/* One look. Returns whether anything was given back. */
bool memory_trim(void);
