/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of bytes that goes through a trainer's standard input: which bytes of it are which positions of
 * which task, and, from how much of it the trainer has taken off the pipe, how far each task has been read
 * and counts under input.ack. Bookkeeping alone.
 *
 * Bytes that follow the file one to one count one by one (a reader goes back to the record's start); those of
 * other pieces (shuffled records, messages, a CSV's header) when all bytes of the piece do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "executor/feed/tasks.h"

#define FLOW_PIECES_MAX 65536u /* beyond that, neighbours become one piece that counts as a whole */

struct piece;

struct flow {
        struct tasks *tasks;
        uint64_t pipe_size;
        uint64_t written;           /* length of the stream so far */
        uint64_t consumed;          /* of it, taken off the pipe by the trainer */
        uint64_t processed;         /* of it, by the trainer's own word (input.ack explicit) */
        struct piece *pieces;       /* what does not count yet, in the order of the stream */
        struct piece *first_unread; /* of them */
        unsigned n;
};

void flow_init(struct flow *f, struct tasks *tasks, uint64_t pipe_size);
void flow_done(struct flow *f);

/* A piece of task begins at the end of the stream: it stands for [from, to), and is complete when flow_end()
 * is called. by_byte: each byte is one position on. records of it count with it. 0 or -ENOMEM. */
int flow_begin(struct flow *f, uint64_t task, struct task_mark from, struct task_mark to, bool by_byte,
               uint64_t records);
/* n more bytes of it have been written. */
void flow_wrote(struct flow *f, uint64_t n);
/* All of it is written. to: where it really ends. */
void flow_end(struct flow *f, struct task_mark to);
/* n bytes of nobody's (a newline behind a line that broke off). */
void flow_skip(struct flow *f, uint64_t n);

/* The trainer has taken consumed bytes off the pipe; settles what counts now. Returns whether anything moved.
 */
bool flow_consumed(struct flow *f, uint64_t consumed);
/* The trainer says that it has processed so much of the stream. -ERANGE: it has not got so much. */
int flow_processed(struct flow *f, uint64_t bytes);
/* The trainer has exited 0: what it has taken counts, where it does not say so itself. */
void flow_finish(struct flow *f);
