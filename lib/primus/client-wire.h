/* SPDX-License-Identifier: Apache-2.0 */
/* The packets between libprimus in a trainer and its primus-executor on $PRIMUS_FEED, an abstract
 * SOCK_SEQPACKET socket
 * ("@primus-feed/UNIT/random"). Both run as the job's user in one unit; the executor checks SO_PEERCRED's
 * uid. So agentd's end touches nothing here: the ring, its descriptors and this socket live as long as the
 * two that use them. A packet is a struct client_header and size bytes of body, at most CLIENT_PACKET_MAX
 * together; integers are the host's. The executor believes nothing of what a trainer says: a wrong packet
 * ends that connection.
 *
 *   trainer                                executor
 *   HELLO version, checkpoint state    →
 *                                      ←   WELCOME mode, ack, ring's shape, formats of the sources; ring
 * mode: by SCM_RIGHTS the data memfd (to be mapped read-only), the control memfd, eventfd "produced", eventfd
 *                                          "released"; or REFUSED and a line
 *   descriptor:
 *   NEXT credits                       →
 *                                      ←   TASK with its descriptor, or LAST
 *   ACK* task, position, skip, records →   (every mode; in ring mode release is told through the ring itself)
 *   DONE / FAIL task                   →   (DONE: descriptor mode; FAIL: every mode)
 *                                      ←   TRIM task, end (descriptor mode)
 *   TRIMMED task, end                  →
 *   WHERE task                         →   (every mode, for messages)
 *                                      ←   PLACE task, path
 *   COMMIT state                       →
 *                                      ←   COMMITTED: has been taken into account
 *   stdin mode: the trainer reads descriptor 0; STREAM bytes of the stream processed → (explicit,
 * checkpoint), and where each task lies in the stream comes as SPAN* from the executor before its bytes are
 * readable.
 */
/* What counts, by input.ack:
 *   release: ring: a slot that has been released. descriptor: ACK up to the record before the latest, now and
 *     then, and DONE.
 *   explicit: ACK alone, in every mode; a slot that has been released says nothing then (the trainer may
 *     acknowledge less often than the ring is large). stdin: STREAM.
 *   DONE says that a task has been read wholly: another may be given for it. Whether it counts, see above and
 * below. exit: what has been released, or is DONE, once the trainer has exited 0. checkpoint: COMMIT alone.
 * One connection at a time: a task's records must not go to one process and its checkpoint come from another.
 * Nothing is delivered before HELLO, whose state says where tasks go on: from there where it is further than
 * the grant; at TASK_TO_END the task is done without being delivered. An ACK whose position is TASK_TO_END
 * means the whole task: sent once all of its records count and its end has been seen. CSV: in ring mode a
 * task's first slots are the header line alone, with RING_HEADER; in descriptor mode the trainer reads it at
 * the start of the file. FAIL: what was delivered of the task before keeps its meaning for COMMIT and ACK. In
 * ring mode the executor ends the task with RING_TASK_BROKEN, if its end is not in the ring already; the
 * trainer passes over all up to there. SPAN is sent in stdin mode with explicit and checkpoint; then the
 * pipe's first byte comes behind HELLO. When a connection ends, what was delivered over it and does not count
 * is delivered again to another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The executor's program and the trainer's library may be of neighbouring versions: an upgrade replaces the
 * files, and a trainer may map them late. Each says its version, and both then say only what the lower one
 * knows. */
#define CLIENT_VERSION 2u
#define CLIENT_VERSION_OLDEST 1u /* of the release before this one */
static inline bool client_version_fits(uint32_t version) {
        return version >= CLIENT_VERSION_OLDEST && version <= CLIENT_VERSION + 1;
}
#define CLIENT_VERSION_WHERE 2u /* from this one on: WHERE and PLACE */
#define CLIENT_PACKET_MAX (64u << 10)
#define CLIENTS_MAX 64u /* connections of one executor */
#define CLIENT_SOURCES_MAX 1024u

enum client_type {
        /* trainer -> executor */
        CLIENT_HELLO = 1, /* struct client_hello + state */
        CLIENT_NEXT,      /* struct client_next */
        CLIENT_ACK,       /* struct client_ack, repeated */
        CLIENT_DONE,      /* struct client_ack */
        CLIENT_FAIL,      /* struct client_fail + text */
        CLIENT_TRIMMED,   /* struct client_trim */
        CLIENT_COMMIT,    /* state */
        CLIENT_STREAM,    /* struct client_stream */
        CLIENT_MORE,      /* the rest of a state that does not fit the packet of HELLO or COMMIT: they come
                             directly behind it, until the state has the n of its struct client_state */
        CLIENT_WHERE,     /* struct client_where: which file is it? */
        /* executor -> trainer */
        CLIENT_WELCOME = 64, /* struct client_welcome + struct client_format each source */
        CLIENT_REFUSED,      /* text */
        CLIENT_TASK,         /* struct client_task + path; one descriptor */
        CLIENT_LAST,         /* nothing: no further task */
        CLIENT_TRIM,         /* struct client_trim */
        CLIENT_COMMITTED,    /* nothing */
        CLIENT_SPAN,         /* struct client_span, repeated */
        CLIENT_PLACE,        /* struct client_place + path: the answer to WHERE */
};

struct client_header {
        uint32_t type, size;
};
struct client_hello {
        uint32_t version;
        uint32_t state_size; /* of the checkpoint that the trainer goes on from, all of it; 0: none. As much
                                of it as fits follows */
};
struct client_welcome {
        uint32_t mode;             /* enum input_delivery */
        uint32_t ack;              /* enum ack_mode */
        uint32_t slots, slot_size; /* ring */
        uint64_t max_record;
        uint32_t n_sources;
        uint32_t version; /* primus-executor's */
};
struct client_format {
        uint32_t kind;  /* enum record_kind */
        uint32_t flags; /* 1: CSV multiline */
        uint64_t record_size;
};
struct client_next {
        uint32_t credits;
};
struct client_ack {
        uint64_t task, position, skip, records;
};
struct client_fail {
        uint64_t task;
        uint32_t text_size; /* text follows */
};
struct client_task {
        uint64_t task, start, end, offset, skip, seed;
        uint32_t source, path_size; /* path follows, without NUL */
};
struct client_where {
        uint64_t task;
};
struct client_place {
        uint64_t task;
        uint32_t path_size, reserved; /* path follows, without NUL; none: the task is over, or another's */
};
struct client_trim {
        uint64_t task, end;
};
struct client_stream {
        uint64_t bytes; /* of the stream since the trainer began, cumulative */
};
struct client_span {
        uint64_t stream;   /* the task's bytes begin here in the stream, at position below; */
        uint64_t position; /* later bytes count on from it until the next span */
        uint64_t task;
        uint64_t skip; /* CLIENT_SPAN_COUNTED */
        uint32_t source, flags;
};
#define CLIENT_SPAN_COUNTED 2u /* its records count from (position, skip) on, one by one; not its bytes */
#define CLIENT_SPAN_END 1u     /* the task is over at this place of the stream, wholly; its last span */
/* A checkpoint's state (HELLO, COMMIT): struct client_state and n struct client_ack: how far each task not
 * yet done durably has been delivered; position TASK_TO_END: wholly. */
#define CLIENT_STATE_MAGIC 0x73727050u
#define CLIENT_STATE_VERSION 1u
#define CLIENT_STATE_MAX (4u << 20)
struct client_state {
        uint32_t magic, version;
        uint8_t job_uid[16];
        uint32_t n, reserved;
};
