/* SPDX-License-Identifier: Apache-2.0 */
/* The data of one job: what was listed, in which order it is given out, who holds what, how far it is. Pure:
 * the caller writes the records, sends the grants, reads files' rows back from the store, and says what time
 * it is.
 *
 * Memory is bounded by what is under way, not by how much there is:
 *   - Files are rows on disk, in the order in which they were listed. In memory is, of every FILES_GROUP of
 * them, how many tasks came before; rows are loaded when they are needed (data_missing, data_filled) and kept
 * for a while.
 *   - Tasks are made when they are needed, in one global order that follows from the configuration, the seed
 * and the listing alone: the q-th task made is always the same, for any number of executors and across
 * restarts. Its id is q + 1.
 *   - They are made in blocks of BLOCK_TASKS. A block is on disk (the state of the order at its beginning,
 * and which of its tasks are over) before any of its tasks is granted; after a restart an unfinished block is
 * made again and holds the same tasks. A block that is over is forgotten. Only a task that is more than done
 * or not done (partly acknowledged, failed before, given up, trimmed, split off) has a row of its own, and
 * its block says of it what it says of those that are over: not to be made again.
 *   - Tasks that were given up stay in memory, to be shown with their reason.
 *
 * Order. listed: by batch (hour of a time pattern), then source, then as listed; a source that is not listed
 * to its end holds back what comes behind its next batch (data_passed; UINT64_MAX: nothing, and what it
 * brings later comes last). With weights, sources take turns: the next task is of the source with the lowest
 * (made + 1) / weight; a weight of 0 among others counts as 1, and batches order nothing but each source's
 * own files. shuffle: the tasks of each source and epoch in a pseudo-random permutation (a Feistel network
 * over their number: no memory), sources in turn by weight, or else by their numbers of tasks; needs the
 * listing to be complete. Epochs follow each other, each when the listing is complete. sampleRate leaves
 * tasks out by a hash of seed and file: the same ones in each epoch, those of one file evenly spread; they
 * are never made and counted nowhere.
 *
 * Steering. People may add, pause, resume, remove and re-weight a source. Such a step has its place in the
 * order, before the first task that nobody has had: what was planned behind it is planned anew. It is on disk
 * with the block that it falls into, so a block that is made again holds the same tasks. Turns by weight are
 * counted from the last step on.
 *
 * Splitting. A file of known size s > split > 0 has ceil(s / split) parts, the last one with what is left; a
 * rest below split / 4 goes to the part before. At most FILE_PARTS_MAX: with more, split counts as larger.
 * Any other file is one task, [first, last). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/wire/input.h"
#include "lib/wire/tasks.h"

#define FILES_GROUP 16u
#define FILES_ROWS_MAX 256u /* asked for at once by data_missing() */
#define FILE_PARTS_MAX (1u << 20)
#define BLOCK_TASKS 1024u
#define SPLIT_OFF_MAX 65536u /* remainders alive at a time; beyond, a task that is cut fails instead */
#define DATA_IDLE_USEC (UINT64_C(500) * 1000) /* how long a stream that had nothing to read rests */

enum task_place {
        TASK_PENDING,
        TASK_LEASED,
        TASK_FINISHED,
        TASK_GAVE_UP,
        _TASK_PLACE_MAX
};
const char *task_place_to_string(enum task_place p); /* PENDING LEASED DONE FAILED */

struct data;

struct data_config {
        const uint32_t *weights; /* of the sources; 0: none */
        size_t n_sources;
        enum input_order order;
        uint64_t seed;
        uint32_t epochs;       /* >= 1 */
        uint32_t sample_ppm;   /* of 1,000,000 */
        uint32_t max_attempts; /* failures that set a task aside */
};

/* A file (or partition, or command) as listed. */
struct data_file {
        const char *path; /* bytes */
        uint64_t size, mtime_nsec, inode;
        uint64_t first, last; /* positions; last TASK_TO_END: wherever it ends (compressed, a stream) */
        uint64_t batch;       /* does not fall within a source */
        uint64_t split; /* target size of a task; 0: the file is one. Counts with first 0 and last size */
};

/* A task in memory: one that is not over. Its row needs id, source, epoch, file, place (LEASED is kept as
 * PENDING: leases are soft), start, end, acked, skip, records, records_before, failures and error; what and
 * seed follow from the row of the file and the configuration. */
struct task {
        uint64_t id;
        uint32_t source, epoch;
        uint64_t file; /* index within the source */
        struct data_file what;
        enum task_place place;
        uint64_t start, end;
        uint64_t read, acked, skip, records; /* as in struct task_progress; records: over all holders */
        uint64_t records_before;             /* of earlier holders */
        uint64_t read_before;                /* where this holder began */
        uint64_t seed;
        uint32_t failures;
        char *error;
        void *holder; /* while LEASED */
        uint64_t granted_usec;
        uint64_t told;                        /* the caller's: when its holder spoke of it last; 0 at first */
        struct task *lease_prev, *lease_next; /* list of the holder, in the order of its grants (utlist) */
        struct task *prev, *next;             /* pending queue, those leased, or those given up */
};
/* As it is granted: from where it was acknowledged. Points into t. */
void data_grant(const struct task *t, struct task_grant *ret);

int data_new(const struct data_config *c, struct data **ret);
struct data *data_free(struct data *d);
DEFINE_CLEANUP(struct data *, data_free)

/* ---- listing ---- */
/* The next file of a source. The caller writes the row (its index is data_n_files() before the call), ahead
 * of the next data_flush(). -EINVAL: no such source, first behind last, path too long, or batch is lower than
 * that of a file before it or than what was passed; -ENOMEM. */
int data_add(struct data *d, uint32_t source, const struct data_file *f);
void data_scanned(struct data *d, uint32_t source); /* it is complete */
void data_passed(struct data *d, uint32_t source,
                 uint64_t batch); /* what is still to come is of batch or later */
uint64_t data_n_files(const struct data *d, uint32_t source);
bool data_all_scanned(const struct data *d);

/* ---- steering ---- */
struct data_steering {
        uint32_t weight; /* 0: none has one; in data_steer(): as it is */
        bool paused, removed;
        bool ended; /* in data_steer(): is to be; it never goes on */
};
/* From the next task on that nobody has had: a paused source gives out nothing until it is resumed, what
 * comes back from holders included; a removed one never again, and what comes back of it counts as skipped.
 * Removing is for ever, and the caller lists it no further (data_scanned). So it is with one that is ended:
 * what was listed is given out as before, but for streams, which are over when nobody has them any more.
 * After a restart, what was planned then counts as had: up to BLOCK_TASKS and those that were asked for
 * ahead; so does it once a topic has brought more. Durable with the next data_flush(). -ENODATA: no such
 * source; -ESTALE: it was removed; -EBUSY: restoring, or too often without a task between; -ENOMEM. Changes
 * nothing then. */
int data_steer(struct data *d, uint32_t source, const struct data_steering *how);
void data_steering(const struct data *d, uint32_t source, struct data_steering *ret);

/* One more source, the last one, which has its turns from the next task on that nobody has had. In an epoch
 * that is not the first, it has a part in that one and those that follow. Durable with the next data_flush(),
 * which comes after that of the configuration that has it. Cannot fail, once there is room for it:
 * data_append_room(), in the same turn. -ENOSPC: INPUT_SOURCES_MAX; -EBUSY: restoring, or too often without a
 * task between; -ENOMEM. */
int data_append_room(struct data *d, size_t n);
void data_append(struct data *d, uint32_t weight);
/* After data_restored(): sources of the configuration that were not added before the end of who wrote that,
 * are now. 0; -EBUSY: restoring; -ENOMEM. */
int data_append_rest(struct data *d);

/* ---- making tasks ---- */
enum data_state {
        DATA_READY,   /* enough is pending */
        DATA_MISSING, /* rows of files are needed: data_missing() */
        DATA_WAITS,   /* for the listing to go on */
        DATA_OVER,    /* every task of every epoch has been made */
};
/* Makes tasks until at least wanted are PENDING (deferred ones do not count). What is wanted ahead decides
 * how many commits a second it takes: a block is granted when it is durable. A state, or -ENOMEM. */
int data_prepare(struct data *d, uint32_t wanted);
/* Which rows to load: up to FILES_ROWS_MAX from *ret_first on. false: none. To be called until it says so;
 * asked for once until they are filled, and by then maybe for the tasks after next too. */
bool data_missing(struct data *d, uint32_t *ret_source, uint64_t *ret_first, uint32_t *ret_n);
/* The rows that were asked for, copied. -EUCLEAN: they are not those that were added; -ENOMEM: ask again. */
int data_filled(struct data *d, uint32_t source, uint64_t first, const struct data_file *files, size_t n);

/* ---- records ---- */
/* What has to be written, to go through with data_flush(); each struct is valid during the call. */
struct data_sink {
        void (*put_block)(void *userdata, uint64_t block, const void *state, size_t state_size,
                          const void *over, size_t over_size);
        void (*delete_block)(void *userdata, uint64_t block);
        void (*put_task)(void *userdata, const struct task *t);
        void (*delete_task)(void *userdata, uint64_t id);
        void (*put_state)(void *userdata, const void *state,
                          size_t size); /* counters, totals; one row per job */
};
/* Whether anything has to be written now (a new block, a remainder: before it can be granted) or some time
 * soon (progress). */
bool data_urgent(const struct data *d);
bool data_dirty(const struct data *d);
/* Says all of it, which is one transaction; returns a mark. Once that is durable, data_durable(mark): tasks
 * of new blocks may be leased. Flushes become durable in their order. */
uint64_t data_flush(struct data *d, const struct data_sink *sink, void *userdata);
void data_durable(struct data *d, uint64_t mark);

/* ---- after a restart: files first (data_add of each row, in order; data_scanned, data_passed), then these
 * in any order, then data_restored() ---- */
/* -EUCLEAN: it is no such record, or does not fit what was added; -EEXIST: twice; -ENOMEM. */
int data_restore_state(struct data *d, const void *state, size_t size);
int data_restore_block(struct data *d, uint64_t block, const void *state, size_t state_size, const void *over,
                       size_t over_size);
int data_restore_task(struct data *d, const struct task *t);
/* Makes the tasks of the unfinished blocks again. DATA_MISSING: load rows and call again; DATA_READY;
 * -EUCLEAN: the records do not fit together; -ENOMEM. Without any record (a new job): DATA_READY. */
int data_restored(struct data *d);

/* ---- leases; O(1) ---- */
/* Hands the next pending, durable task to holder, on the list *leases; NULL: none. */
struct task *data_lease(struct data *d, void *holder, struct task **leases, uint64_t now_usec);
uint64_t
data_next_due(const struct data *d); /* when the first deferred task may be leased; UINT64_MAX: none */
/* By id; NULL: over, or never made. */
struct task *data_task(struct data *d, uint64_t id);
bool data_was_made(const struct data *d, uint64_t id); /* it is over, if data_task() does not know it */
/* A lease that an executor told of after a restart. */
void data_adopt(struct data *d, struct task *t, void *holder, struct task **leases, uint64_t now_usec);
/* What the holder says; offsets never go back, and stay within the task. 1: it is DONE and t is gone; 0; and
 * *ret_event for what is worth telling people. -ENOMEM: a remainder could not be made, nothing was changed.
 * An end that is lower than t->end is where the holder stops: what lies behind it becomes a task of its own,
 * first in the queue when that is durable. RETURNED: first in the queue again; a stream (size unknown, last
 * TASK_TO_END): last in it, and after DATA_IDLE_USEC when it has brought nothing. The caller reports only
 * what comes from t->holder; that of others is late, and means nothing any more. */
enum data_event {
        DATA_EVENT_NONE,
        DATA_EVENT_FAILED,  /* and will be tried again */
        DATA_EVENT_GAVE_UP, /* set aside */
        DATA_EVENT_SPLIT,   /* its remainder is a task of its own now */
};
int data_report(struct data *d, struct task *t, struct task **leases, const struct task_progress *p,
                uint64_t now_usec, enum data_event *ret_event);
/* Its holder is gone: PENDING again from where it was acknowledged, first in the queue; no failure is
 * counted. */
void data_return(struct data *d, struct task *t, struct task **leases);
void data_return_all(struct data *d, struct task **leases); /* keeps their order */
/* last in the queue, not to be leased before usec (Kafka: there was nothing to read). */
void data_defer(struct data *d, struct task *t, struct task **leases, uint64_t until_usec);
/* By a person: GAVE_UP -> PENDING with a new budget, once that is durable (-EBUSY: it is not GAVE_UP);
 * anything -> FINISHED (skip; t is gone; leases: of its holder, NULL when it is not LEASED). */
int data_retry(struct data *d, struct task *t);
void data_skip(struct data *d, struct task *t, struct task **leases);
/* The task that is worth splitting for an idle executor: LEASED, most left to do at its rate, at least
 * min_bytes unread, splittable (what.split > 0, end known), and not asked already in this lease; *ret_end:
 * where to ask it to stop. Counts as asked. NULL: none. O(leases). */
struct task *data_slowest(struct data *d, uint64_t now_usec, uint64_t min_bytes, uint64_t *ret_end);

/* ---- looking ---- */
struct data_totals {
        uint64_t files, tasks; /* tasks: of all epochs, as far as listed; split-off ones included */
        uint64_t pending, leased, done, failed, skipped; /* pending: made or not */
        uint64_t bytes, read, acked; /* positions: bytes, for Kafka messages. bytes: of those tasks of which
                                      * it is known; what a task turned out to have when it is over */
        uint64_t records;
        uint64_t bytes_failed; /* left in those that were given up */
};
void data_totals(const struct data *d, struct data_totals *ret);
void data_source_totals(const struct data *d, uint32_t source, struct data_totals *ret);
/* The batch up to which all of each source is through (what failed for good aside): the first that has
 * something left, or may have; UINT64_MAX: there is none. In the order listed alone. False: that cannot be
 * told, or too much is under way. */
bool data_at(const struct data *d, uint64_t *ret_batches);
/* Nothing is left to grant now or later, leases aside. */
bool data_exhausted(const struct data *d);
/* What keeps pending tasks from being leased now. */
enum data_hold {
        DATA_HELD_NOT,    /* nothing: there is one */
        DATA_HELD_DISK,   /* they are not durable yet */
        DATA_HELD_REST,   /* they are deferred */
        DATA_HELD_FILES,  /* rows of their files are needed */
        DATA_HELD_LIST,   /* the listing has to go on */
        DATA_HELD_PAUSED, /* they are of sources that are paused */
};
enum data_hold data_hold(const struct data *d, uint64_t now_usec);
/* Everything listed is done or set aside. */
bool data_over(const struct data *d);
/* Live tasks in the order of their ids, behind id after; NULL: no more. O(log n). */
struct task *data_next_task(const struct data *d, uint64_t after);
size_t data_memory(const struct data *d); /* bytes held, about */

/* ---- savepoints ---- */
/* Where the data stands, as JSON: the manifest of a savepoint, without the rows of files (counted, and a
 * digest per source). Leased tasks appear as they were acknowledged. Allocated. Not while data_restored() is
 * still due: -EBUSY. */
int data_save(const struct data *d, char **ret_json);
/* Reads one into d, which has the same sources and exactly the manifest's files added, and nothing else done
 * to it; data_restored() follows, and the next data_flush() says all of it. -EBADMSG with a line in
 * *ret_error (allocated): it is no manifest, or of other data or another order; d is to be freed. Believes
 * nothing. */
int data_load(struct data *d, const char *json, size_t size, char **ret_error);
