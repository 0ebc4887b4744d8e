/* SPDX-License-Identifier: Apache-2.0 */
/* What is around the data of a job, for its tests: a listing, a disk that loses what was not durable, and
 * executors that outlive masterd. Keeps the truth beside it: which byte was acknowledged how often, and what
 * each number of a task means. */
#pragma once

#include "masterd/data/data.h"

#define WORLD_SOURCES 5u
#define WORLD_HOLDERS 17u
#define WORLD_SIZE 256u /* of the largest file */

struct world_file {
        struct data_file f;
        char path[32];
        uint8_t *acked; /* epochs x WORLD_SIZE: how often */
};

/* What an executor knows of a task that it has, or has had since it was last heard out. */
struct held {
        uint64_t id, start, end, acked, records;
        uint32_t source, epoch;
        uint64_t file;
        bool done;
        struct held *prev, *next;
};

struct holder {
        struct task *leases;
        struct held *held;
};

/* What the id of a task stood for when it was granted first. */
struct meaning {
        uint32_t source, epoch;
        uint64_t file, start, end;
        bool known;
};

struct disk {
        void *state;
        size_t state_size;
        struct {
                uint64_t index;
                void *state, *over;
                size_t state_size, over_size;
        } blocks[256];
        size_t n_blocks;
        struct task *tasks;
        size_t n_tasks;
        size_t rows[WORLD_SOURCES];
        bool scanned[WORLD_SOURCES];
};

struct flush {
        uint64_t mark;
        struct disk after;
        struct flush *prev, *next;
};

struct world {
        uint64_t random;
        struct data_config config;
        uint32_t weights[WORLD_SOURCES];
        struct data *d;
        uint64_t now;
        struct world_file *files[WORLD_SOURCES];
        size_t n_files[WORLD_SOURCES]; /* when all is listed */
        size_t listed[WORLD_SOURCES];
        uint32_t n_first, n_all; /* sources: at the beginning, and with those that are to be added */
        bool topics;             /* sources may bring more at any time, which comes last */
        struct disk disk;
        struct flush *flushes; /* not durable yet */
        struct holder holders[WORLD_HOLDERS];
        size_t n_holders;
        struct meaning *meanings; /* by id - 1 */
        size_t n_meanings;
        uint64_t acked, records, n_skipped; /* bytes and records told */
        size_t most_memory;
};

uint64_t world_random(struct world *w, uint64_t n); /* below n */
/* config.weights, if any, are of config.n_sources. batches: files come in as many per source. */
void world_new(struct world *w, uint64_t seed, const struct data_config *config, size_t n_files,
               size_t n_batches, size_t n_holders);
void world_free(struct world *w);

/* The last n sources are not there, until they are added one by one. */
void world_later(struct world *w, uint32_t n);
int world_append(struct world *w);

void world_list(struct world *w, uint32_t source, size_t n); /* and says that it is complete when it is */
void world_list_all(struct world *w);
void world_topics(
        struct world *w); /* before any is listed: files are partitions, all but the first come late */
void world_fill(struct world *w);                    /* rows that are asked for */
int world_prepare(struct world *w, uint32_t wanted); /* with rows as they are needed */
void world_flush(struct world *w);
void world_durable(struct world *w, size_t n); /* the oldest n flushes */
void world_sync(struct world *w);              /* all of it */
/* masterd ends, with what is not durable, and comes back; executors say what they hold. */
void world_restart(struct world *w);
/* Another job with the same listing, of which nothing is on disk and nobody holds anything. */
void world_replace(struct world *w, struct data *d);
/* The next task for a holder; NULL: none. Checks that nobody else has it. */
struct held *world_lease(struct world *w, size_t holder);
/* The holder goes on by n bytes. */
void world_progress(struct world *w, size_t holder, struct held *h, uint64_t n, enum task_state state);
/* The holder stops at end. */
void world_trim(struct world *w, size_t holder, struct held *h, uint64_t end);
void world_die(struct world *w, size_t holder);
/* Leases and finishes until nothing is left. */
void world_finish(struct world *w);
/* Sums against what is there; acked and records only when exact. */
void world_check_totals(struct world *w, bool exact);
/* Every byte of every task that is no exception, at least once, and at most once when exact. */
void world_check_all_read(struct world *w, bool exact);
