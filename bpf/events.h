/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/* What the programs in the kernel, starter/observe and agentd/probe share: values of the maps and records of
 * the ring buffer. Read by both compilers; fixed widths, no padding left to chance. A unit is known by the id
 * of its control group on the v2 hierarchy, which is the inode of its directory. */
#pragma once

#include <stdint.h>

#define PROBE_UNITS_MAX 8192u         /* units at a time, those that ended a moment ago included */
#define PROBE_VICTIMS_MAX 64u         /* killed for memory, and not ended yet */
#define PROBE_EVENTS_SIZE (64u << 10) /* bytes of the ring buffer */
#define PROBE_DEPTH_MAX 16            /* levels between a task's control group and primus.slice, and above */

/* Map "place", one element, index 0. The starter writes it and hands it to nobody: what is counted at all is
 * not for the agent to say. */
struct probe_place {
        uint64_t slice;   /* id of primus.slice; 0: not known yet */
        uint64_t level;   /* its depth, found out by the first packet; 0: not yet */
        uint32_t recover; /* this pass also takes what ended before the probes were there */
        uint32_t reserved;
};

/* Map "state", one element, index 0. The agent's. */
struct probe_state {
        uint64_t pass;    /* number of the pass of iter/task that is under way */
        uint64_t dropped; /* units that found no room in a map, events that found none in the ring */
};

struct probe_sums {
        uint64_t cpu_ns, run_delay_ns;
        uint64_t read_bytes, write_bytes;             /* of read() and write() and their kin */
        uint64_t block_read_bytes, block_write_bytes; /* fetched from, dirtied for a block device */
};

/* Map "units": control group id → this. */
struct probe_unit {
        struct probe_sums ended; /* tasks that ended; only ever grows */
        uint64_t exits;          /* how many */
        uint64_t created_ns;     /* when the unit was seen first, CLOCK_BOOTTIME */
        /* The pass that saw it last. base is what ended was when that pass met the unit's first task: a task
         * that ends behind the pass is in live and not in base, so base + live counts nobody twice. */
        uint64_t pass;
        struct probe_sums base, live;
        uint32_t tasks, running, blocked, stopped;
        uint64_t anon_pages, file_pages; /* of its processes, each for itself; shared memory is in file */
        uint64_t idle_ns;                /* since any of its tasks was on a CPU */
};

/* Map "flows": control group id → this. */
struct probe_flow {
        uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets; /* IP */
        uint64_t retransmits;                                /* TCP segments */
        uint64_t block_read_bytes, block_write_bytes;        /* done by block devices */
        uint64_t oom_kills;
        uint64_t created_ns;
};

enum probe_event_kind {
        PROBE_OOM_VICTIM = 1, /* chosen by the kernel to free memory */
        PROBE_KILLED = 2,     /* a process was ended by a signal */
};

/* Record of the ring buffer. */
struct probe_event {
        uint32_t kind;
        uint32_t pid; /* as the initial namespace counts */
        uint32_t signal;
        uint32_t reserved;
        uint64_t cgroup_id;  /* the unit's */
        uint64_t anon_pages; /* of an OOM victim; 0: not known */
        uint64_t file_pages; /* shared memory included */
        char comm[16];
};
