/* SPDX-License-Identifier: Apache-2.0 */
/* agentd's probes in the kernel: what executors used and how their threads stand, exact, and without a cost
 * while they run (docs/decisions/probes.md). Where the kernel refuses some of it, or all, /proc says
 * what it can. A unit is known by the id of its control group: the inode of its directory on the v2
 * hierarchy. The programs are the starter's, who hands over descriptors of what they count; nothing of this
 * outlives the connection to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "lib/base/cleanup.h"
#include "lib/observe/observe.h"
#include "lib/wire/telemetry-fields.h"

struct probe;

/* A program of the kernel's; why: what is in its way, for people, "" where it is up. */
struct probe_program {
        const char *name; /* "exits", "tasks", "ingress", "egress", "retransmits", "block", "victims" */
        bool up;
        bool out_of_place; /* down because what it counts is not there to be counted, and nothing was refused
                            */
        char why[OBSERVE_WHY_MAX];
};

/* Without programs, until probe_adopt(); -ENOMEM only. */
int probe_new(struct probe **ret);
void probe_free(struct probe *p);
DEFINE_CLEANUP(struct probe *, probe_free)

/* The directory of primus.slice on the v2 hierarchy, below which the units are (primus-N.slice/UNIT), for
 * /proc; it stays the caller's. 0, also where it is the one already; -errno from fstat(). */
int probe_set_slice(struct probe *p, int slice_fd);

/* What the programs count, as descriptors; -EBADF: it is not there. */
struct probe_descriptors {
        int state, units, flows, events; /* maps */
        int tasks;                       /* the link of the iterator */
};
#define PROBE_DESCRIPTORS_NONE                                                                               \
        (struct probe_descriptors) {                                                                         \
                -EBADF, -EBADF, -EBADF, -EBADF, -EBADF                                                       \
        }
void probe_descriptors_done(struct probe_descriptors *d);

/* How the starter's programs are (_OBSERVE_PROGRAM_MAX, in their order; copied), and their descriptors, which
 * are p's from now on in any case. Without descriptors those that are there already stay. Where the kernel
 * does not let us read them, all are down and say so. -ENOMEM only. */
int probe_adopt(struct probe *p, const struct probe_program *programs, struct probe_descriptors *d);
/* All of them are down, and this is why. */
void probe_disown(struct probe *p, const char *why);

/* What the starter has read of a unit's processes, where nothing counts it: of use to probe_fill() until
 * PROBE_USAGE_USEC later. */
struct probe_usage {
        uint64_t read_bytes, write_bytes, block_read_bytes, block_write_bytes;
};
#define PROBE_USAGE_USEC (10u * 1000000u)
void probe_note_usage(struct probe *p, uint64_t cgroup_id, const struct probe_usage *usage);

/* One pass over all tasks of the host; before probe_fill(), as often as fresh values are wanted. < 0: the
 * kernel does not let it, and probe_fill() asks /proc. Not before the first packet or task there is nothing
 * to know. */
int probe_scrape(struct probe *p);

/* The last pass was the kernel's, and not /proc's. */
bool probe_counts(const struct probe *p);

/* What is known of the unit; other values stay as they are. Counters never fall, and never run ahead of what
 * probe_final() will say. Those that are exact in other places (CPU time; block devices where the io
 * controller is on v1) are filled only where they are TELEMETRY_UNKNOWN: call after cgroup_fill(). */
void probe_fill(struct probe *p, uint64_t cgroup_id, uint64_t values[static _TELEMETRY_MAX]);

/* Everything that ended there, for the exit record: complete once primus-exit has written it. Counters alone.
 * false: nothing was seen of it. */
bool probe_final(struct probe *p, uint64_t cgroup_id, uint64_t values[static _TELEMETRY_MAX]);

/* The unit is over, and its exit record has what it needs. */
void probe_forget(struct probe *p, uint64_t cgroup_id);

/* All programs and how they are; *ret is p's. */
size_t probe_programs(const struct probe *p, const struct probe_program **ret);

/* How many units, events found no room in the kernel; 0 is how it should be. */
uint64_t probe_dropped(const struct probe *p);

/* Becomes readable when events wait; -1: there are none, or not before probe_adopt(). */
int probe_fd(const struct probe *p);
typedef void (*probe_event_handler)(const struct probe_event *e, void *userdata);
/* Calls f for what waits. How many, or -errno. */
int probe_dispatch(struct probe *p, probe_event_handler f, void *userdata);
