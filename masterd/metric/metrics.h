/* SPDX-License-Identifier: Apache-2.0 */
/* What the trainers of a job have said of their training: series by role, index, process and name. Pure:
 * points have their times. Bounded: a job has a number of bytes, and the more series there are, the fewer
 * points each keeps; then two neighbours become one, with their lowest, highest, mean and the last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "lib/wire/metrics.h"

/* What all together may take, all of a user, and (its own) a job. */
struct metric_budget {
        struct metric_budget *above; /* NULL: this is the highest */
        uint64_t bytes, max;
};

#define METRIC_JOB_BYTES (UINT64_C(64) << 20)
#define METRIC_CAP_MAX 1024u /* points of a series at the most */
#define METRIC_CAP_MIN 32u   /* where that cannot be kept there are too many series */
#define METRIC_JOB_NAMES_MAX 255u
#define METRIC_ROLE_MAX 33u

struct metric_series {
        struct metric_point *points;
        uint32_t n, room;
        uint32_t width;  /* so many reported points are one, */
        uint32_t filled; /* but so many the last of them */
        uint32_t attempt;
        uint8_t name; /* of the job's names */
};

/* A process of an executor: role (of the job's names of roles), index and local rank. */
struct metric_key {
        uint32_t role, index, local;
};

struct metrics;

struct metric_source {
        struct metrics *metrics;
        struct metric_key key;
        const char *role; /* of the job's roles */
        struct metric_series *series;
        uint32_t n;
        uint8_t at[METRIC_JOB_NAMES_MAX + 1]; /* by name: which of the series, + 1 */
        /* For who keeps them: when it was first changed behind what is kept; 0: it was not. */
        uint64_t dirty_boot;
        struct metric_source *prev, *next;
        UT_hash_handle hh;
};

/* budget: borrowed, stays; owner: what metrics_owner() gives back. -ENOMEM, -ENOBUFS. */
int metrics_new(struct metric_budget *budget, void *owner, struct metrics **ret);
void *metrics_owner(const struct metrics *m);
void metrics_free(struct metrics *m);

/* The process, made where it is not there yet. -ENOMEM, -ENOBUFS: too many, or the budget is used up. */
int metrics_source(struct metrics *m, const char *role, uint32_t index, uint32_t local,
                   struct metric_source **ret);
/* One point of it, O(1) over many. 1: taken; 0: it was known already, or is of an attempt that is over;
 * -ENOBUFS: left out (too many names, no room); -ENOMEM. A step below the one before it, said later, is of a
 * trainer that went back: what was beyond it is forgotten. */
int metrics_add(struct metrics *m, struct metric_source *s, uint32_t attempt, const char *name,
                const struct metric_point *p);

/* All processes, in any order: the one behind s, or (NULL) the first; NULL: no more. */
struct metric_source *metrics_next(const struct metrics *m, const struct metric_source *s);
/* The same, by role, index and local rank. Sorted when asked: valid until one is made. */
int metrics_sorted(struct metrics *m, struct metric_source *const **ret, size_t *ret_n);
const char *metrics_name(const struct metrics *m, uint8_t name);
/* NULL: there is none. */
const struct metric_series *metric_series_of(const struct metrics *m, const struct metric_source *s,
                                             const char *name);
/* At most so many points of it (1 or more), neighbours joined. Returns how many. */
size_t metric_series_read(const struct metric_series *s, size_t max, struct metric_point *ret);

/* A process' series as bytes, allocated, and back into a job that has none of that process. -EBADMSG, with
 * nothing added but what stood before the fault. */
int metric_source_write(const struct metrics *m, const struct metric_source *s, uint8_t **ret,
                        size_t *ret_size);
int metric_source_read(struct metrics *m, struct metric_source *s, const uint8_t *data, size_t size);
