/* SPDX-License-Identifier: Apache-2.0 */
/* The data of one job: what was listed, in which order it is given out, who holds what, how far it is. Pure:
 * the caller writes the records, sends the grants, reads files' rows back from the store, and says what time
 * it is.
 *
 * Memory is bounded by what is under way, not by how much there is:
 *   - Files are rows on disk, in the order in which they were listed. In memory is, of every FILES_GROUP of
 * them, how many tasks came before; groups are loaded when they are needed (data_missing, data_filled) and
 * kept for a while.
 *   - Tasks are made when they are needed, in one global order that follows from the configuration, the seed
 * and the listing alone: the q-th task made is always the same, for any number of executors and across
 * restarts. Its id is q + 1.
 *   - They are made in blocks of BLOCK_TASKS. A block is on disk (the state of the order at its beginning,
 * and which of its tasks are over) before any of its tasks is granted; after a restart an unfinished block is
 * made again and holds the same tasks. A block that is over is forgotten. Only a task that is more than done
 * or not done (partly acknowledged, failed before, given up, trimmed, split off) has a row of its own.
 *
 * Order. listed: by batch (hour of a time pattern), then source, then as listed; a source that is not listed
 * to its end holds back what comes behind its next batch (data_passed). With weights, sources take turns: the
 * next task is of the source with the lowest (made + 1) / weight. shuffle: the tasks of each source and epoch
 * in a pseudo-random permutation (a Feistel network over their number: no memory), sources in turn by weight,
 * or else by their numbers of tasks; needs the listing to be complete. Epochs follow each other. sampleRate
 * leaves tasks out by a hash of seed, epoch and task; they are never made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/input.h"
#include "lib/wire/tasks.h"

#define FILES_GROUP 256u
#define BLOCK_TASKS 1024u

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
        uint64_t size, mtime_nsec, inode, first, last, batch;
        uint64_t split; /* target size of a task; 0: the file is one */
};

/* A task in memory: one that is not over. */
struct task {
        uint64_t id;
        uint32_t source, epoch;
        uint64_t file; /* index within the source */
        struct data_file what;
        enum task_place place;
        uint64_t start, end;
        uint64_t read, acked, skip, records; /* as in struct task_progress; records: over all holders */
        uint64_t records_before;             /* of earlier holders */
        uint64_t seed;
        uint32_t failures;
        char *error;
        void *holder; /* while LEASED */
        uint64_t granted_usec;
        struct task *lease_prev, *lease_next; /* list of the holder */
        struct task *prev, *next;             /* pending queue, or those given up */
};

int data_new(const struct data_config *c, struct data **ret);
struct data *data_free(struct data *d);

/* ---- listing ---- */
/* The next file of a source. The caller writes the row (its index is data_n_files() before the call). */
int data_add(struct data *d, uint32_t source, const struct data_file *f);
void data_scanned(struct data *d, uint32_t source); /* it is complete */
void data_passed(struct data *d, uint32_t source,
                 uint64_t batch); /* what is still to come is of batch or later */
uint64_t data_n_files(const struct data *d, uint32_t source);
bool data_all_scanned(const struct data *d);

/* ---- making tasks ---- */
enum data_state {
        DATA_READY,   /* enough is pending */
        DATA_MISSING, /* rows of files are needed: data_missing() */
        DATA_WAITS,   /* for the listing to go on */
        DATA_OVER,    /* every task of every epoch has been made */
};
/* Makes tasks until at least wanted are PENDING. -ENOMEM. */
int data_prepare(struct data *d, uint32_t wanted);
/* Which rows to load: up to FILES_GROUP from *ret_first on. false: none. Asked for once until they are
 * filled. */
bool data_missing(struct data *d, uint32_t *ret_source, uint64_t *ret_first, uint32_t *ret_n);
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
/* Whether anything has to be written now (a new block: before it can be granted) or some time soon
 * (progress). */
bool data_urgent(const struct data *d);
bool data_dirty(const struct data *d);
/* Says all of it; returns a mark. Once that is durable, data_durable(mark): tasks of new blocks may be
 * leased. */
uint64_t data_flush(struct data *d, const struct data_sink *sink, void *userdata);
void data_durable(struct data *d, uint64_t mark);

/* ---- after a restart: files' counts first (data_add of each row, in order), then these, then
 * data_restored() ---- */
int data_restore_state(struct data *d, const void *state, size_t size);
int data_restore_block(struct data *d, uint64_t block, const void *state, size_t state_size, const void *over,
                       size_t over_size);
int data_restore_task(struct data *d, const struct task *t);
/* Makes the tasks of the unfinished blocks again. DATA_MISSING: load rows and call again; DATA_READY;
 * -EUCLEAN: the records do not fit together; -ENOMEM. */
int data_restored(struct data *d);

/* ---- leases; O(1) ---- */
/* Hands the next pending, durable task to holder, on the list *leases; NULL: none. */
struct task *data_lease(struct data *d, void *holder, struct task **leases, uint64_t now_usec);
/* By id; NULL: over, or never made. */
struct task *data_task(struct data *d, uint64_t id);
bool data_was_made(const struct data *d, uint64_t id); /* it is over, if data_task() does not know it */
/* A lease that an executor told of after a restart. */
void data_adopt(struct data *d, struct task *t, void *holder, struct task **leases, uint64_t now_usec);
/* What the holder says; offsets never go back. 1: the task is over now (t is gone); 0; and *ret_event for
 * what is worth telling people. -ENOMEM. */
enum data_event {
        DATA_EVENT_NONE,
        DATA_EVENT_FAILED,  /* and will be tried again */
        DATA_EVENT_GAVE_UP, /* set aside */
        DATA_EVENT_SPLIT,   /* its remainder is a task of its own now */
};
int data_report(struct data *d, struct task *t, struct task **leases, const struct task_progress *p,
                enum data_event *ret_event);
/* Its holder is gone: PENDING again from where it was acknowledged, first in the queue; no failure is
 * counted. */
void data_return(struct data *d, struct task *t, struct task **leases);
/* last in the queue, not to be leased before usec (Kafka: there was nothing to read). */
void data_defer(struct data *d, struct task *t, struct task **leases, uint64_t until_usec);
/* By a person: GAVE_UP -> PENDING with a new budget; anything -> FINISHED (skip; -ENOMEM). */
void data_retry(struct data *d, struct task *t);
int data_skip(struct data *d, struct task *t, struct task **leases);
/* The task that is worth splitting for an idle executor: LEASED, most left to do at its rate, at least
 * min_bytes unread, splittable, and not asked already; *ret_end: where to ask it to stop. NULL: none. */
struct task *data_slowest(struct data *d, uint64_t now_usec, uint64_t min_bytes, uint64_t *ret_end);

/* ---- looking ---- */
struct data_totals {
        uint64_t files, tasks; /* tasks: of all epochs, as far as listed; split-off ones included */
        uint64_t pending, leased, done, failed, skipped; /* pending: made or not */
        uint64_t bytes, read, acked, records;            /* bytes 0: not known */
        uint64_t bytes_failed;
};
void data_totals(const struct data *d, struct data_totals *ret);
void data_source_totals(const struct data *d, uint32_t source, struct data_totals *ret);
/* Nothing is left to grant now or later, leases aside. */
bool data_exhausted(const struct data *d);
/* Everything listed is done or set aside. */
bool data_over(const struct data *d);
/* Live tasks in the order of their ids, behind id after; NULL: no more. O(log n). */
struct task *data_next_task(struct data *d, uint64_t after);
size_t data_memory(const struct data *d); /* bytes held, about */

/* ---- savepoints ---- */
/* Where the data stands, as JSON: the manifest of a savepoint, without the rows of files (counted, and a
 * digest per source). Leased tasks appear as they were acknowledged. Allocated. */
int data_save(const struct data *d, char **ret_json);
/* Reads one into d, which has the same sources and all of the manifest's files added. -EBADMSG with a line in
 * *ret_error (allocated): it is no manifest, or is of other sources. Believes nothing. */
int data_load(struct data *d, const char *json, size_t size, char **ret_error);
