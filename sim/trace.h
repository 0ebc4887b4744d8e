/* SPDX-License-Identifier: Apache-2.0 */
/* What is replayed: hosts, pools, jobs and failures, from CSV or JSON, or made up. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "masterd/search/search.h"
#include "sim/world.h"

#define TRACE_NAME_MAX 64u
#define TRACE_JOBS_MAX 1000000u
#define TRACE_HOSTS_MAX 100000u

struct trace_search {
        struct search_settings settings; /* max_trials 0: it is none */
        uint64_t seed;
};

struct trace_job {
        char name[TRACE_NAME_MAX];
        struct world_job
                job; /* what it is; pool and user are indices; of a search's trial that trains to the end */
        struct trace_search search;
};

struct trace_failure {
        uint32_t host;
        uint64_t from, to;
};

struct trace {
        struct sched_capacity *hosts;
        size_t n_hosts, hosts_allocated;
        struct policy_pool *pools; /* the first one is "default" */
        size_t n_pools, pools_allocated;
        char (*users)[TRACE_NAME_MAX];
        size_t n_users, users_allocated;
        struct trace_job *jobs;
        size_t n_jobs, jobs_allocated;
        struct trace_failure *failures;
        size_t n_failures, failures_allocated;
        char error[256]; /* what was wrong, and where */
};

int trace_init(struct trace *t);
void trace_done(struct trace *t);

/* Functions that fail with -EINVAL say why in t->error. */
/* "8x64/512G/8,2x32/128G": so many hosts of so many CPUs, memory and GPUs. */
int trace_add_hosts(struct trace *t, const char *spec);
/* "prod:3": its weight. */
int trace_set_pool(struct trace *t, const char *spec);
/* .json: all of it; else CSV: jobs. */
int trace_load(struct trace *t, const char *path);
static inline bool trace_is_search(const struct trace_job *j) {
        return j->search.settings.max_trials > 0;
}
/* -EINVAL, -ENOENT: *ret_key has no value that it may have, or is none. */
int trace_read_search(const json_t *object, struct trace_search *ret, const char **ret_key);
/* The name of a job of the world's: NAME, or NAME[TRIAL]. */
void trace_name(const struct trace *t, const struct world_job *j, char ret[static TRACE_NAME_MAX + 16]);
/* CSV: host,from,to. */
int trace_load_failures(struct trace *t, const char *path);
/* Jobs as published traces of GPU clusters have them: arrivals by day and night, sizes that are powers of
 * two, run times with a long tail; as many as load the hosts by so much (1: to their capacity). */
int trace_generate(struct trace *t, size_t n, double load, uint64_t seed);
/* Writes the jobs as CSV. */
int trace_write(const struct trace *t, FILE *f);
