/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of libprimus share: the handle, the connection to primus-executor, and pieces, which is what
 * a mode delivers. Nothing in here is seen by trainers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/primus/client-wire.h"
#include "lib/primus/held.h"
#include "lib/primus/primus.h"
#include "lib/primus/ring.h"
#include "lib/record/record.h"
#include "lib/wire/input.h"
#include "lib/wire/tasks.h"

#define ERROR_TEXT_MAX 1024u
#define PIECE_SIZE (1u << 20) /* what is read at once in descriptor and stdin mode */
#define TASKS_AHEAD 2u        /* descriptor mode: one being read and the one behind it */

/* Bytes of one task, made of whole records. */
struct piece {
        const uint8_t *data;
        size_t size;
        uint64_t task;     /* 0: of none (a plain stream) */
        uint64_t position; /* of its first byte, or first message */
        uint64_t end;      /* position behind it */
        uint64_t skip;     /* counted: records behind position that came before this piece */
        uint32_t source;
        bool counted;  /* positions are (position, skip + records), see CHUNK_COUNTED */
        bool linear;   /* position + distance is the position of a byte in it */
        bool task_end; /* no piece of this task follows */
};

struct primus;

/* A mode. */
struct mode_ops {
        /* The next piece; the former one is not used any more. 1; 0: no more data; -EBADMSG: a task has
         * failed (reported, handle's error filled); other negative: the feed is over. */
        int (*piece)(struct primus *p, struct piece *ret);
        /* The task has been delivered wholly and its last piece consumed, or it is given up (failed). */
        int (*drop)(struct primus *p, uint64_t task, bool failed);
        /* A packet of this mode. 0; -EPROTO: it is none. May take *fd. */
        int (*packet)(struct primus *p, uint32_t type, const uint8_t *body, size_t size, int *fd);
        /* For primus_get_fd(): a descriptor beside the connection that is readable when data have come (-1:
         * none), and whether there are any now; if not, the descriptor is made to tell. */
        int (*data_fd)(struct primus *p);
        bool (*ready)(struct primus *p);
        void (*close)(struct primus *p);
};

extern const struct mode_ops mode_ring, mode_descriptor, mode_stdin;

struct ring_state {
        struct ring_consumer *consumer;
        unsigned taken;     /* slots not released yet */
        uint64_t drop_task; /* slots of it are passed over, up to its end: it has failed */
        uint32_t flags;     /* of the latest slot */
        bool in_header;
        uint8_t *joined; /* a record that came in several slots */
        size_t joined_size, joined_allocated;
};

/* A task of descriptor mode. */
struct range_task {
        struct client_task task;
        int fd;
        char *path;
};

struct descriptor_state {
        struct range_task queue[TASKS_AHEAD]; /* the first one is being read */
        unsigned n, asked;
        bool active; /* queue[0] has been begun */
        bool last, as_range;
        uint64_t at;   /* where the file is read next */
        uint64_t skip; /* records to be passed over first */
        uint8_t *buf;  /* carry bytes from tail, then what was read */
        size_t allocated;
        size_t piece_size;  /* whole records at its front that were handed out */
        size_t filled;      /* bytes in it */
        uint64_t cold_to;   /* read-ahead has been asked for up to here */
        bool nowait;        /* the file system can say what is in memory */
        uint64_t told_usec; /* when an ACK was sent last */
};

struct stdin_state {
        uint8_t *buf;
        size_t allocated, begin, filled, piece_size;
        uint64_t stream; /* of buf[begin] */
        uint64_t drop_task;
        bool eof, broken;
        struct client_span *spans; /* by stream; the first one is where begin lies in, or in front of it */
        size_t n_spans, spans_allocated;
};

/* A place in a piece, between two records. */
struct place {
        size_t at;
        uint64_t records;     /* of the piece in front of it, as far as they are counted */
        uint64_t message_end; /* RECORD_MESSAGE: position behind the last one; 0: none */
};

struct primus {
        uint8_t *marker; /* a page that a forked child finds wiped */
        enum primus_mode mode;
        uint32_t ack; /* enum ack_mode */
        const struct mode_ops *ops;
        int fd; /* the connection; -EBADF: a plain stream */
        int poll_fd, ready_fd;
        bool interruptible, gone, ended;
        uint64_t max_record;
        struct record_format_info *formats;
        uint32_t n_formats;
        uint8_t job_uid[16];

        struct piece piece;
        struct client_ack now;  /* the task of the piece, as of the piece's first byte */
        struct place delivered; /* in the piece: behind what was handed out */
        /* The latest block, for primus_ack_records(): from where to where, and how much of it counts. */
        struct place block_begin, mark;
        size_t block_size;
        bool marked;             /* what counts ends at mark */
        bool failed_here;        /* the task failed behind what was handed out of the piece */
        struct client_ack acked; /* told last, with explicit */

        struct held held;
        uint64_t commits, committed;
        uint64_t waited_usec;

        uint32_t peer_version; /* primus-executor's */
        uint64_t place_task;   /* the task that was asked for last, and its path: where.c */
        char *place_path;

        uint8_t *csv_header;
        size_t csv_header_size;

        union {
                struct ring_state ring;
                struct descriptor_state descriptor;
                struct stdin_state in;
        };
        uint8_t *packet; /* CLIENT_PACKET_MAX bytes */
        char error[ERROR_TEXT_MAX];
};

/* Fills the line that primus_error() returns; returns -abs(error). */
int handle_fail(struct primus *p, int error, const char *format, ...) _printf_(3, 4);

/* ---- client.c: the connection ---- */
/* Dials $PRIMUS_FEED's name. */
int client_dial(struct primus *p, const char *name);
/* HELLO, and the answer: mode, formats, ring. */
int client_hello(struct primus *p, const void *state, size_t state_size);
int client_send(struct primus *p, uint32_t type, const void *body, size_t size);
/* state in as many packets as it takes; prefix: what stands before it in the first. */
int client_send_state(struct primus *p, uint32_t type, const void *prefix, size_t prefix_size,
                      const void *state, size_t state_size);
/* Takes the packets that have arrived. 0, or negative when the connection is over (p->gone). */
int client_drain(struct primus *p);
/* Waits for a packet, or until fd (-1: none) is readable (then 1), and counts the time as waited for data.
 * -EINTR when interruptible. */
int client_wait(struct primus *p, int fd);

/* ---- where.c ---- */
/* The answer to WHERE. -EPROTO. */
int client_take_place(struct primus *p, const uint8_t *body, size_t size);

/* ---- of primus.c, for the modes ---- */
const struct record_format_info *handle_format_of(const struct primus *p, uint32_t source);
/* The record at the start of buf, which holds whole records alone. As record_next(). */
int handle_whole_record(const struct record_format_info *f, const uint8_t *buf, size_t size,
                        struct record *ret, const char **ret_why);
/* The task has failed here: tells the executor and the mode. Returns -EBADMSG, or why it could not. */
int handle_task_failed(struct primus *p, uint64_t task, const char *why);
/* The header line of the CSV file that follows; more: to be added to what was kept last. */
int handle_keep_header(struct primus *p, const uint8_t *data, size_t size, bool more);
/* -ECHILD in a forked child. */
int handle_check(struct primus *p);
/* Moves *at over the next record of the piece. As record_next(). */
int handle_next_record(struct primus *p, struct place *at, struct record *ret, const char **ret_why);
/* ---- acknowledge.c ---- */
/* How far the task of the piece has been consumed. False: there is none. */
bool acknowledge_now(const struct primus *p, struct client_ack *ret);
/* The end of a task was seen by itself, behind its last record: with explicit it counts if that record does.
 */
int acknowledge_end(struct primus *p, const struct client_ack *end);
/* ---- mode-descriptor.c ---- */
/* The next range as a piece without bytes. 1, 0, negative. */
int descriptor_range(struct primus *p, struct piece *ret_piece, struct primus_range *ret);
/* CLOCK_MONOTONIC, microseconds. */
uint64_t feed_clock(void);
