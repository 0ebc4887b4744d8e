/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share. Three threads: the loop's, which queues items and delivers their
 * outcomes; the writer, which owns the connection that writes once it runs; the reader with a connection of
 * its own, so that what is asked holds up nothing that is to be written. An item belongs to the loop until it
 * is queued, to a thread until it is done, and to the loop again. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "masterd/store/sqlite.h"
#include "masterd/store/table.h"

/* One record to write; the copy of the record and of what it points to lie behind it. */
struct op {
        struct op *next;
        enum op_kind kind;
        size_t size; /* of all of it */
        _Alignas(max_align_t) unsigned char record[];
};

enum item_kind {
        ITEM_BATCH,
        ITEM_QUERY_JOBS,
        ITEM_QUERY_EXECUTORS,
        ITEM_QUERY_EVENTS,
        ITEM_QUERY_SERIES,
        ITEM_QUERY_METRICS,
        ITEM_QUERY_TRIALS,
        ITEM_QUERY_NODE_EVENTS,
        ITEM_QUERY_ELEMENTS,
        ITEM_QUERY_USAGE,
        ITEM_QUERY_FILES,
        ITEM_QUERY_SOURCES,
        ITEM_QUERY_SAVEPOINTS,
        ITEM_QUERY_DATA_STATES,
        ITEM_QUERY_KEPT_TASKS,
};

/* Jobs with their bodies: an element of an array has its array's. */
#define JOB_BODY_COLUMNS                                                                                     \
        ", coalesce((SELECT max(seq) FROM event WHERE event.job = job.number), 0),"                          \
        " config, cwd, env, warnings, bundle"
#define FROM_JOB_WITH_BODY                                                                                   \
        " FROM job JOIN job_body ON job_body.number ="                                                       \
        " CASE job.array WHEN 0 THEN job.number ELSE job.array END"

/* What a query asks. */
struct query {
        const char *sql;
        int64_t parameters[8];
        int n_parameters;
        char *text;  /* one more parameter behind them, or NULL; owned */
        bool bodies; /* of jobs */
        union {
                store_jobs_t jobs;
                store_executors_t executors;
                store_events_t events;
                store_series_t series;
                store_metrics_t metrics;
                store_trials_t trials;
                store_node_events_t node_events;
                store_elements_t elements;
                store_usage_t usage;
                store_files_t files;
                store_sources_t sources;
                store_savepoints_t savepoints;
                store_data_states_t data_states;
                store_kept_tasks_t kept_tasks;
        } callback;
        void *rows; /* array of the records */
        size_t n, allocated;
        struct extra *extras; /* what they point to */
        size_t bytes;
};

/* A batch or a query. */
struct item {
        struct item *next;
        enum item_kind kind;
        int error;
        void *userdata;
        size_t bytes;
        uint32_t records;
        uint32_t asker;  /* for whom; STORE_NOBODY */
        uint64_t serial; /* of a batch; of a question: the batch that it is answered behind */
        /* ITEM_BATCH */
        struct op *first, *last;
        store_effect effect;
        /* ITEM_QUERY_... */
        struct query query;
};

struct item_list {
        struct item *first, *last;
};

struct copy;
struct asker;

struct store {
        sqlite3 *db;
        int lock_fd;     /* one master at a time */
        sqlite3 *reader; /* the other connection */
        sqlite3_stmt *statements[_OP_MAX][OP_STATEMENTS_MAX];
        struct store_limits limits;

        /* the loop's */
        sd_event_source *source;
        struct item *open; /* the batch being put together */
        int open_error;
        struct item_list ready; /* outcomes to deliver */
        size_t queue_bytes;     /* in items that were not delivered */
        uint32_t queue_records;
        uint32_t last_job, last_job_put;
        uint64_t last_savepoint;
        uint64_t serial; /* of the last batch that was queued */
        bool running, closing;
        struct asker *askers; /* who has questions under way */
        uint32_t asker;       /* for whom is asked now */
        bool asker_waits;     /* and he had one under way already */
        store_answered_t answered;
        void *answered_userdata;

        /* the thread's */
        int failed;               /* the error after which nothing is written any more */
        size_t transaction_bytes; /* of the last one */
        size_t unmeasured;        /* bytes written since used was looked up */
        int wal_pages;            /* not yet in the database file */
        uint64_t rest_until;      /* the reader need not rest longer for that */
        uint64_t wipe_at;         /* when the log has to be emptied of deleted secrets; 0: it has none */

        /* both */
        pthread_t thread, reading_thread;
        pthread_mutex_t lock;
        pthread_cond_t work;    /* queue or stop changed, or the reader rests */
        pthread_cond_t reading; /* something that the reader waits for changed */
        struct item_list queue, done;
        struct item_list questions;
        uint64_t written;    /* serial of the last batch that was written, or could not be */
        size_t answer_bytes; /* in answers that were not delivered */
        bool reads;          /* the reader is at a question */
        bool rest;           /* it is to begin no other: the writer has to have the log for itself */
        atomic_bool stop;
        struct copy *copy; /* the one under way; the thread's once it is set */
        uint64_t transactions, records, commit_usec_max;
        int event_fd;
        atomic_int trouble;
        _Atomic uint64_t used; /* bytes of the database */
};

void item_list_append(struct item_list *l, struct item_list *more); /* and empties more */
void item_free(struct item *i);

/* Hands an item to the thread, which is started if need be; frees it on error. Counts it against the limits.
 */
int store_enqueue(struct store *s, struct item *i);

/* Starts the thread, once. */
int store_start_thread(struct store *s);

/* The thread's part of store_copy() (copy.c): goes on with it, or gives it up. */
void copy_step(struct store *s, struct copy *c);
void copy_cancel(struct store *s, struct copy *c);

/* Looks up how many bytes are in use. */
void store_measure(struct store *s);

/* The threads (writer.c, reader.c). */
void *writer_main(void *store);
void *reader_main(void *store);

/* Reads what a query asks into it (query.c). 0 or negative errno. */
int query_run(sqlite3 *db, enum item_kind kind, struct query *q);
void query_done(enum item_kind kind, struct query *q);
void query_deliver(struct store *s, struct item *i);
void query_askers_free(struct store *s);
