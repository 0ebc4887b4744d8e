/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one source: their numbers of tasks, and the few rows that are in memory. Tasks of a source are
 * numbered from 0 in the order in which its files were listed, without those that the sample leaves out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/data/data.h"

#define ROW_GROUPS_MAX 256u /* of all sources, in memory */

/* Files from which on a batch holds. */
struct batch_run {
        uint64_t task;
        uint64_t batch;
};

struct listed_source {
        uint64_t n_files, n_tasks, bytes;
        uint64_t *before; /* tasks before each group of files */
        size_t groups_allocated;
        struct batch_run *runs;
        size_t n_runs, runs_allocated;
        uint64_t passed; /* what is still to come is of this batch or later */
        uint64_t digest; /* of all rows */
        bool scanned;
        size_t hint; /* group that was looked into last */
};

struct row_group;
struct listing {
        struct listed_source *sources;
        size_t n_sources, n_scanned;
        uint64_t n_files, n_tasks, bytes; /* of all sources */
        uint64_t seed;
        uint32_t sample_ppm;
        struct row_group *groups; /* hash by source and number */
        struct row_group *oldest; /* by use (utlist) */
        struct row_group *wanted; /* not asked for yet, in the order in which they are needed */
        size_t n_groups, rows_memory;
};

int listing_init(struct listing *l, size_t n_sources, uint64_t seed, uint32_t sample_ppm);
void listing_done(struct listing *l);

int listing_add(struct listing *l, uint32_t source, const struct data_file *f);
void listing_scanned(struct listing *l, uint32_t source);
void listing_passed(struct listing *l, uint32_t source, uint64_t batch);
/* Batch of a task, number < n_tasks. *hint: where to begin to look, of an earlier call. */
uint64_t listing_batch(const struct listing *l, uint32_t source, uint64_t number, size_t *hint);

/* What a task is. 1; 0: its rows are not here, and are wanted now; -EUCLEAN: the row that is here has no such
 * task. *ret points into the cache until rows are wanted again. */
int listing_task(struct listing *l, uint32_t source, uint64_t number, const struct data_file **ret,
                 uint64_t *ret_file, uint64_t *ret_start, uint64_t *ret_end);
/* Keeps the rows of a task that will be needed soon, or wants them. -ENOMEM. */
int listing_soon(struct listing *l, uint32_t source, uint64_t number);
/* A file's row, file < n_files. As listing_task(). */
int listing_row(struct listing *l, uint32_t source, uint64_t file, const struct data_file **ret);

/* As data_missing(); ahead: how many groups behind the wanted one come along. */
bool listing_missing(struct listing *l, unsigned ahead, uint32_t *ret_source, uint64_t *ret_first,
                     uint32_t *ret_n);
int listing_filled(struct listing *l, uint32_t source, uint64_t first, const struct data_file *files,
                   size_t n);
size_t listing_memory(const struct listing *l);
