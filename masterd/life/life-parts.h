/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of life share: what is known beside the jobs themselves. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct life {
        struct job *ended; /* history.c: finished jobs that are in memory still, oldest first */
        uint32_t n_ended, n_ended_executors;
        uint64_t ended_bytes;
        uint64_t n_deleted; /* history.c: what was read from the store before may be of one of these */
        struct dependents *dependents; /* depend.c: by the job that is waited for */
        struct job *settling; /* depend.c: have ended, and those that wait for them are not told yet */
        struct job **settling_end;
        struct array_owner *array_owners;   /* arrays.c */
        struct waiting_searcher *searchers; /* searcher.c: by number of the search */
        struct savepoint *savepoints;       /* savepoints.c: by name, oldest first */
        struct kept_progress *kept;         /* kept-progress.c: by name of the savepoint */
};
