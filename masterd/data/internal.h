/* SPDX-License-Identifier: Apache-2.0 */
/* The data of one job, inside: what the modules behind data.h share. */
#pragma once

#include "masterd/data/data.h"
#include "masterd/data/ids.h"
#include "masterd/data/listing.h"
#include "masterd/data/order.h"

/* Where a live task is. Each is a list through prev and next. */
enum work_list {
        LIST_QUEUE,    /* pending, durable */
        LIST_FRESH,    /* pending, when what was said last is durable; in the order of marks */
        LIST_DEFERRED, /* pending, at its time; in the order of times */
        LIST_HELD,     /* pending, of a source that is paused */
        LIST_UNWANTED, /* pending, of a source that was removed, or a stream of one that ended: to be skipped
                        */
        LIST_LEASED,
        LIST_GAVE_UP,
        LIST_RESTORED, /* a record whose file has not been read yet */
        LIST_DEAD,     /* over, with a row that is to be deleted; not in the ids */
        _WORK_LIST_MAX
};

/* A task and what only this room knows of it. */
struct work {
        struct task t;       /* first */
        struct block *block; /* the one that stands for it; NULL: it has a row of its own */
        enum work_list list;
        bool has_row, dirty, asked;
        uint64_t due; /* DEFERRED: when; FRESH: the mark */
        struct work *dirty_prev, *dirty_next;
        char path[];
};
static inline struct work *work_of(const struct task *t) {
        return (struct work *)t;
}

struct planned {
        uint64_t number;
        uint32_t source, epoch;
};

/* BLOCK_TASKS tasks that follow each other in the order. Its state, as it is on disk: the place of the order
 * at its beginning, and each step with which people steered it within: {u32 of its tasks before the step,
 * place that the order has behind it}, in their order. */
#define BLOCK_STEP_HEAD 4u
#define BLOCK_STEPS_MAX 256u
#define BLOCK_STEPS_EVER                                                                                     \
        (BLOCK_STEPS_MAX + 1u) /* with the one that data_append_rest() takes, come what may */
struct block {
        uint64_t index;
        uint8_t *state;
        size_t place_size, state_size;
        size_t last_step; /* where it begins in state; 0: there is none */
        uint32_t n_steps;
        uint32_t n_planned, n_made, n_gone;
        bool on_disk, dirty;
        uint8_t gone[BLOCK_TASKS / 8]; /* over, or with a row of their own: not to be made again */
        struct planned *plan;          /* n_planned; NULL once all are made */
        struct block *prev, *next;
};

/* Sums over the tasks of a source, or of all. */
struct counts {
        uint64_t split_off, done, skipped;
        uint64_t over_acked, over_records; /* of those that are over */
        uint64_t learnt; /* what tasks turned out to have, less what was thought; may be "negative" */
        uint64_t live, leased, gave_up;
        uint64_t live_read, live_acked, live_records, failed_bytes;
        uint64_t live_bytes; /* what they are thought to have */
};

struct data {
        struct data_config config;
        uint32_t *weights;
        struct listing listing;
        struct order order;
        struct ids ids, split_ids;
        struct task *lists[_WORK_LIST_MAX];
        struct work *dirty;
        struct block *blocks;  /* by index; the last one may not be full yet */
        struct block *making;  /* the first of which not all tasks are made; NULL: none */
        struct block *dropped; /* not planned any more: to be deleted on disk */
        size_t n_blocks, n_plans, blocks_memory;
        uint64_t n_planned;            /* tasks of the order so far; the number of the next one */
        uint64_t n_flushed, n_durable; /* of these */
        uint64_t n_touched;   /* of these, up to the last one that anybody may have had, or that has a row */
        uint64_t n_split_off; /* ever; of the ids */
        uint64_t n_split_live;
        uint64_t mark;      /* of the last flush */
        uint32_t n_pending; /* in QUEUE and FRESH */
        bool urgent, state_dirty;
        bool late; /* a topic has brought more: where the order came by before cannot be told any more */
        bool has_state, restoring, checked, loaded; /* loaded: from a savepoint, so nothing is on disk */
        uint8_t *state;                             /* its record, with room for any */
        size_t state_size;
        struct counts all, *counts;
        size_t work_memory;
};

/* ---- leases.c: live tasks ---- */
/* A live task of a file, without a place yet: to be put on a list. NULL: no memory. */
struct work *work_new(struct data *d, uint64_t id, uint32_t source, uint32_t epoch, uint64_t file,
                      const struct data_file *what, uint64_t start, uint64_t end);
void work_free(struct data *d, struct work *w);
/* Adds a live task to the counts (sign 1), or takes it out ((uint64_t)-1). */
void work_count(struct data *d, const struct task *t, uint64_t sign);
/* -EEXIST, -ENOMEM. Counts it as live and pending. */
int work_add(struct data *d, struct work *w);
void work_put(struct data *d, struct work *w, enum work_list list);  /* last */
void work_move(struct data *d, struct work *w, enum work_list list); /* from one list to the end of another */
void work_move_first(struct data *d, struct work *w);                /* to the front of the queue */
void work_forget(struct data *d, struct work *w); /* as if it had not been made: nobody has had it */
/* Pending, when flushed is durable. */
void work_put_fresh(struct data *d, struct work *w);
/* Something changed that its row tells: from here on it has one. */
void work_changed(struct data *d, struct work *w);
/* Without an end of its own: a partition of a topic. */
static inline bool is_stream(const struct task *t) {
        return t->what.size == TASK_UNKNOWN && t->what.last == TASK_TO_END;
}
int work_order(struct task *a, struct task *b); /* by id, those split off first; for utlist */

/* ---- blocks.c: making tasks ---- */
/* Plans what the order gives, into the last block and a new one at most. 1: more is planned; 0: not. */
int blocks_plan(struct data *d, enum order_result *ret);
/* Makes the next planned task. 1; 0: rows are missing; -ENOMEM, -EUCLEAN. There must be one. */
int blocks_make(struct data *d);
int blocks_add(struct data *d, uint64_t index, const uint8_t *state, size_t size, struct block **ret);
void blocks_free(struct data *d, struct block **list, struct block *b); /* list: blocks or dropped */
void block_gone(struct data *d, struct block *b, uint64_t id);          /* its bit */
bool block_is_gone(const struct block *b, uint64_t number);
/* From its beginning: goes to its place and plans its first n tasks again, with the steps up to there.
 * -EUCLEAN: that cannot be. */
int block_replay(struct data *d, struct block *b, uint32_t n);
/* Room for a step after which there are so many sources. -EBUSY: it would be more than most in one block;
 * -ENOMEM. */
int blocks_step_room(struct data *d, uint32_t n_sources, uint32_t most);
/* The order is another one from its next task on; there is room for the step. */
void blocks_step(struct data *d, const struct order_step *step);
/* Plans only the first n tasks: those behind were granted to nobody. Not when anything came late. 0; -ENOMEM,
 * and nothing was changed. */
int blocks_cut(struct data *d, uint64_t n);
uint64_t blocks_made(const struct data *d); /* number of the next task to make */
bool data_all_made(const struct data *d);   /* of all epochs, and the listing is complete */
size_t blocks_memory(const struct data *d);

/* ---- records.c, restore.c ---- */
/* ---- steer.c ---- */
/* Where a pending task belongs: in the queue, or not. */
enum work_list steer_queue(const struct data *d, const struct task *t);
void steer_skip_unwanted(struct data *d);

/* The state's record: {u32 version, u32 sources, u64 planned, u64 split_off, place of the order, of each
 * source u64 split_off, done, skipped, over_acked, over_records, learnt}, little-endian. What was written
 * before sources were added has fewer of them. */
#define STATE_VERSION 1u
#define STATE_HEAD 24u
#define STATE_COUNTS 6u
size_t records_state_size(const struct data *d);
size_t records_state_max(size_t n_sources); /* of any with so many */
void records_state_write(const struct data *d, uint8_t *to);
static inline uint64_t *counts_field(struct counts *c, size_t i) {
        uint64_t *const fields[STATE_COUNTS] = { &c->split_off,  &c->done,         &c->skipped,
                                                 &c->over_acked, &c->over_records, &c->learnt };

        return fields[i];
}
/* What is restored fits together, as far as it can be told without rows; plans the blocks again. 0, -EUCLEAN,
 * -ENOMEM. */
int restore_check(struct data *d);

#define COUNT(d, s, field, delta)                                                                            \
        do {                                                                                                 \
                (d)->counts[s].field += (delta);                                                             \
                (d)->all.field += (delta);                                                                   \
        } while (0)
