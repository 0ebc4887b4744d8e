/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs held and used, by day, pool, user and role. A row is recorded with the end of each executor it
 * counts; those of jobs that are deleted are added up under the number 0. */
#pragma once

#include "masterd/job/job.h"
#include "masterd/store/store.h"

struct manager;

/* An attempt has ended: it is counted. In the same batch as its record. */
void usage_count(struct manager *m, const struct executor *e);

/* A row of the store, of a job in memory. */
int usage_loaded(struct job *j, const struct usage_record *r);

enum usage_key {
        USAGE_DAY = 1 << 0,
        USAGE_USER = 1 << 1,
        USAGE_POOL = 1 << 2,
        USAGE_JOB = 1 << 3,
        USAGE_ROLE = 1 << 4
};

struct usage_question {
        uint32_t by;          /* enum usage_key */
        uint32_t first, last; /* days */
        uint32_t owner;       /* UINT32_MAX: all */
};

/* What is not in by is 0 or "". running: executors that are not over, counted up to now. */
struct usage_row {
        struct usage_record sum;
        uint64_t running;
};

/* Answers with the rows, sorted; or a negative error (-E2BIG: too much to add up). Rows are valid during the
 * call. */
typedef void (*usage_answer_t)(void *userdata, int error, const struct usage_row *rows, size_t n);
int usage_ask(struct manager *m, const struct usage_question *q, usage_answer_t answer, void *userdata);
