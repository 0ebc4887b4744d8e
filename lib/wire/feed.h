/* SPDX-License-Identifier: Apache-2.0 */
/* The packets between primus-executor (and later libprimus) and agentd on $PRIMUS_SOCKET, SOCK_SEQPACKET. A
 * packet is a struct feed_header and size bytes of body, at most FEED_PACKET_MAX together. Integers are of
 * the host (one machine). Strings in bodies are bytes without NUL, their length given before. Arrays are
 * packed as in lib/wire/tasks.h, at most TASKS_WIRE_MAX bytes; agentd does not look into them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/tasks.h"

#define FEED_PACKET_MAX (64u << 10)
/* A unit runs as long as its job, over upgrades of everything around it: an agentd speaks with executors that
 * the version before it started, and one that was put back with those of the version after it. Each says its
 * version (HELLO, WELCOME), and both then say only what the lower one knows. Packets may become longer at
 * their end, unless an array or a text follows; a new type is passed over by an older executor and must not
 * be sent to an older agentd. */
#define FEED_VERSION 4u
#define FEED_VERSION_OLDEST 2u /* of the release before this one */
static inline bool feed_version_fits(uint32_t version) {
        return version >= FEED_VERSION_OLDEST && version <= FEED_VERSION + 1;
}

/* From this one on the executor says in OPEN how many sources it knows, and may be told of more. */
#define FEED_VERSION_SOURCES 3u

/* From this one on a process of any executor, not of those with data alone, may say RESULT, METRICS and ASK.
 */
#define FEED_VERSION_RESULTS 4u
#define FEED_RESULT_MAX 512u /* bytes of one, also of a later version's */
#define FEED_RESULTS_MAX 32u /* of one connection that are not TAKEN yet */

enum feed_type {
        /* executor -> agentd */
        FEED_HELLO = 1, /* struct feed_hello */
        FEED_ANSWER,    /* struct feed_challenge, with SCM_CREDENTIALS */
        FEED_OPEN,      /* struct feed_open: ready for tasks */
        FEED_PROGRESS,  /* struct feed_progress + array of task_progress */
        FEED_ENTRIES,   /* scan: struct feed_entries + text + array of scan_entry */
        FEED_BYE,       /* struct feed_bye + text: no more will come */
        FEED_FINAL,   /* as PROGRESS, of all tasks that it held: the trainer has ended. agentd keeps it until
                       * masterd has the end of the unit on disk */
        FEED_RESULT,  /* struct feed_result: of a trial (FEED_VERSION_RESULTS) */
        FEED_METRICS, /* struct feed_metrics + points of lib/wire/metrics.h (FEED_VERSION_RESULTS); not
                         answered */
        FEED_ASK,     /* struct feed_ask + text: of a search's searcher (FEED_VERSION_RESULTS) */
        /* agentd -> executor */
        FEED_CHALLENGE = 64, /* struct feed_challenge */
        FEED_WELCOME,        /* struct feed_welcome; with a pipe: SCM_RIGHTS, its read end and write end */
        FEED_GRANT,          /* array of task_grant */
        FEED_LAST,           /* no further task: end of file after those granted */
        FEED_CONTROL,        /* struct feed_control_order */
        FEED_REFUSED,        /* text: why; the connection is closed after it */
        FEED_FAREWELL,       /* nothing: BYE and all before it have been passed on */
        FEED_SOURCE,         /* u32 number + text: a source that the job has more (FEED_VERSION_SOURCES) */
        FEED_TAKEN,          /* struct feed_taken + text: what masterd has on disk of results */
        FEED_TOLD,           /* struct feed_taken + text: the answer to ASK, or why there is none */
};

struct feed_header {
        uint32_t type;
        uint32_t size;
};
struct feed_hello {
        uint32_t version;
        uint32_t pid;
};
struct feed_challenge {
        uint8_t nonce[16];
};
struct feed_welcome {
        uint32_t ack;       /* enum ack_mode, see lib/wire/messages.h */
        uint32_t pipe_size; /* bytes that the pipe holds; 0: there is none (kind scan; input.mode ring,
                               descriptor) */
        uint32_t version;   /* agentd's */
        uint32_t reserved;
};
struct feed_open {
        uint32_t credits; /* tasks it is ready to hold */
        uint32_t sources; /* FEED_VERSION_SOURCES; before, the packet ends here */
};
#define FEED_PROGRESS_SYNC 1u   /* flag: sync is the value of the FEED_CONTROL_SYNC that this answers */
#define FEED_PROGRESS_HUNGRY 2u /* flag: hungry and unserved are said; older releases leave them 0 */
struct feed_progress {
        uint32_t credits; /* tasks it is ready for beyond those granted */
        uint16_t flags;   /* 32 bits in older releases, which look at the lowest one alone */
        uint8_t hungry;   /* processes of the trainer that wait for data */
        uint8_t unserved; /* of these: so many for which nothing is at hand */
        uint64_t sync;
        struct feed_counters counters;
};
struct feed_entries {
        uint64_t passed;       /* what is still to come is of this batch or later; 0: not said */
        uint32_t waiting_size; /* bytes of text: what is not there yet */
        uint32_t reserved;
};
struct feed_control_order {
        uint32_t op; /* enum feed_control */
        uint32_t reserved;
        uint64_t task, value;
};
struct feed_result {
        uint64_t number; /* the sender's, for TAKEN */
        uint64_t step;
        double metric; /* NaN: no number */
        uint32_t invalid;
        uint32_t reserved;
};
struct feed_ask {
        uint64_t number;    /* the sender's, for TOLD */
        uint32_t text_size; /* at most FEED_ASK_MAX */
        uint32_t reserved;
};
#define FEED_ASK_MAX (60u << 10) /* also of the text of TOLD */
struct feed_metrics {
        uint32_t local; /* which of the executor's processes, as torchrun numbers them; else 0 */
        uint32_t reserved;
};
struct feed_taken {
        uint64_t number;
        uint32_t refused; /* 1: text says why; saying it again does not help */
        uint32_t text_size;
};
struct feed_bye {
        uint32_t failed; /* 1: text says why */
        uint32_t text_size;
};
