/* SPDX-License-Identifier: Apache-2.0 */
/* What pipe.c (what goes into the trainer's standard input, and what of it the trainer has taken) and
 * pipe-push.c (how it gets there) share. Not for others. */
#pragma once

#include "executor/feed/feed-internal.h"

#define CHUNKS_AHEAD 4u
#define SPLICE_MIN (64u << 10)

enum item_kind {
        ITEM_CHUNK,
        ITEM_RANGE,
        ITEM_END,
        ITEM_AGAIN,
        ITEM_FAIL
};

/* What comes next in the stream, and then of its task. */
struct item {
        enum item_kind kind;
        uint64_t task, generation; /* another one: the trainer could not use what this is of */
        bool begun;                /* the stream has something of it */
        /* CHUNK */
        unsigned buffer;
        struct chunk chunk;
        size_t done;
        /* RANGE */
        struct opened *opened;
        int fd; /* the reader's */
        uint64_t first, last, at;
        bool spliced;
        char *error; /* FAIL */
        struct item *prev, *next;
};

/* A file whose pages are in the pipe: compared with the scan when the trainer has taken them. */
struct to_check {
        uint64_t task, generation, stream_end;
        struct opened *opened;
        struct to_check *prev, *next;
};

struct pipe_delivery {
        struct feed *feed;
        struct producer *producer;
        struct flow flow;
        int write_end; /* -EBADF once the trainer has been shown the end of file */
        int read_end;  /* kept for looking at what is unread in it */
        struct item *items;
        unsigned n_ranges;
        uint8_t *buffers[CHUNKS_AHEAD];
        bool buffer_used[CHUNKS_AHEAD];
        unsigned room; /* the one that the producer fills */
        struct to_check *checks;
        bool can_splice;
        bool pad;      /* the last task broke off inside a line */
        bool full;     /* the pipe took no more at the last attempt */
        uint64_t spin; /* microseconds; 0: it did not help lately */
        unsigned not_spun, hot;
        bool small;               /* the pipe is, for now */
        bool untold;              /* the trainer has to be told something first, and does not take it */
        struct client_span span;  /* the latest that was sent ... */
        uint64_t span_generation; /* ... and of which delivery of its task */
        uint8_t *copy;            /* bytes of a range on their way */
        size_t copy_size, copy_done;
        uint64_t tick, next_tick;
        bool was_hungry;
        uint64_t looked; /* when, for the waits */
        uint64_t consumer_wait, producer_wait;
};

/* The task, as long as what was read of it then is what the trainer is to have. */
static inline struct task *pipe_task(struct pipe_delivery *d, uint64_t id, uint64_t generation) {
        struct task *t = tasks_find(&d->feed->tasks, id);

        return t && t->generation == generation ? t : NULL;
}

/* Writes what the pipe takes. Returns whether more could be written at once. */
bool pipe_push(struct pipe_delivery *d);
/* The trainer is shown the end of file behind what is in the pipe. */
void pipe_end_of_file(struct pipe_delivery *d);
