/* SPDX-License-Identifier: Apache-2.0 */
/* A unit's lack of memory or I/O, as the kernel tells of it the moment it happens: triggers on its pressure
 * files, and changes of memory.events. Nothing is polled, and a unit that lacks nothing costs nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

enum pressure_kind {
        PRESSURE_MEMORY,      /* all its threads stood still for lack of memory, */
        PRESSURE_IO,          /* or for a disk */
        PRESSURE_MEMORY_HIGH, /* it was held back at memory.high, */
        PRESSURE_MEMORY_MAX,  /* or ran into memory.max */
        PRESSURE_OOM,         /* processes of it were killed for lack of memory */
        _PRESSURE_KIND_MAX
};

/* "memory", "io", "memory-high", "memory-max", "oom". */
const char *pressure_kind_to_string(enum pressure_kind k);

struct pressure_options {
        uint64_t window_usec;          /* 500 ms to 10 s; the kernel's bounds */
        uint64_t memory_usec, io_usec; /* so long within a window; 0: is not watched */
};
/* Whether the kernel would take that: thresholds are 0, or within the window. */
bool pressure_options_valid(const struct pressure_options *o);

struct pressure;

/* amount: of the first two, for how long it has stood still since it was told last, in microseconds; of the
 * others how often it happened. Not more than twice a second for each file. */
typedef void (*pressure_handler)(enum pressure_kind kind, uint64_t amount, void *userdata);

int pressure_new(sd_event *event, const struct pressure_options *options, pressure_handler handler,
                 void *userdata, struct pressure **ret);
/* Changes of memory.events: anybody may read it. dir: the unit's control group; it may be closed afterwards.
 * -ENOENT: there is no memory controller. */
int pressure_watch_events(struct pressure *p, int dir);
/* kind: PRESSURE_MEMORY or PRESSURE_IO; fd: the unit's file of it, opened for writing by whoever may, and
 * taken in any case. < 0: the kernel does not take the trigger. */
int pressure_watch(struct pressure *p, enum pressure_kind kind, int fd);
/* Whether the options want it. */
bool pressure_wanted(const struct pressure_options *o, enum pressure_kind kind);
void pressure_free(struct pressure *p);
DEFINE_CLEANUP(struct pressure *, pressure_free)
