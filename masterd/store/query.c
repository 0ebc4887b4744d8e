/* SPDX-License-Identifier: Apache-2.0 */
/* History: asked in the loop, read by the reader behind what was committed before, answered in the
 * loop. Invariant: an answer holds copies; nothing of the database is seen by the loop. */
#include <string.h>

#include <uthash.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "masterd/store/internal.h"

#define ANSWER_BYTES_MAX (64u << 20)
#define JOBS_DEFAULT 1000u
#define JOBS_MAX 10000u
#define EXECUTORS_MAX 100000u
#define EVENTS_MAX 10000u
#define FILES_MAX 10000u
#define TASKS_MAX 10000u

/* What the texts and bytes of one row point to. */
struct extra {
        struct extra *next;
        char bytes[];
};

static const size_t record_sizes[] = {
        [ITEM_QUERY_JOBS] = sizeof(struct job_record),
        [ITEM_QUERY_EXECUTORS] = sizeof(struct executor_record),
        [ITEM_QUERY_EVENTS] = sizeof(struct event_record),
        [ITEM_QUERY_SERIES] = sizeof(struct series_record),
        [ITEM_QUERY_METRICS] = sizeof(struct metric_record),
        [ITEM_QUERY_TRIALS] = sizeof(struct trial_record),
        [ITEM_QUERY_NODE_EVENTS] = sizeof(struct node_event_record),
        [ITEM_QUERY_ELEMENTS] = sizeof(struct element_record),
        [ITEM_QUERY_USAGE] = sizeof(struct usage_record),
        [ITEM_QUERY_FILES] = sizeof(struct data_file_record),
        [ITEM_QUERY_SOURCES] = sizeof(struct data_source_record),
        [ITEM_QUERY_SAVEPOINTS] = sizeof(struct savepoint_record),
        [ITEM_QUERY_DATA_STATES] = sizeof(struct data_state_record),
        [ITEM_QUERY_KEPT_TASKS] = sizeof(struct kept_task_record),
};

static const struct field *const record_fields[] = {
        [ITEM_QUERY_JOBS] = job_fields,
        [ITEM_QUERY_EXECUTORS] = executor_fields,
        [ITEM_QUERY_EVENTS] = event_fields,
        [ITEM_QUERY_SERIES] = series_fields,
        [ITEM_QUERY_METRICS] = metric_fields,
        [ITEM_QUERY_TRIALS] = trial_fields,
        [ITEM_QUERY_NODE_EVENTS] = node_event_fields,
        [ITEM_QUERY_ELEMENTS] = element_fields,
        [ITEM_QUERY_USAGE] = usage_fields,
        [ITEM_QUERY_FILES] = data_file_fields,
        [ITEM_QUERY_SOURCES] = data_source_fields,
        [ITEM_QUERY_SAVEPOINTS] = savepoint_fields,
        [ITEM_QUERY_DATA_STATES] = data_state_fields,
        [ITEM_QUERY_KEPT_TASKS] = kept_task_fields,
};

/* Room for one more row, zeroed. */
static void *add_row(struct query *q, size_t size) {
        void *row;

        if (q->n == q->allocated) {
                size_t n = q->allocated ? q->allocated * 2 : 16;
                void *rows = realloc(q->rows, n * size);
                if (!rows)
                        return NULL;
                q->rows = rows;
                q->allocated = n;
        }
        row = (char *)q->rows + q->n * size;
        memset(row, 0, size);
        q->n++;
        return row;
}

/* Gives a record that points into a row of the database copies of its own. */
static int keep(struct query *q, const struct field *fields, void *record) {
        size_t n = fields_extra(fields, record);
        struct extra *e;

        q->bytes += n;
        if (q->bytes > ANSWER_BYTES_MAX)
                return -E2BIG;
        e = malloc(sizeof(*e) + n);
        if (!e)
                return -ENOMEM;
        e->next = q->extras;
        q->extras = e;
        fields_move(fields, record, e->bytes);
        return 0;
}

/* The body comes in the columns behind the job's. */
static int read_body(struct query *q, struct job_record *job, sqlite3_stmt *statement, int *column) {
        struct job_body_record body = {}, *copy;
        struct extra *e;
        int r;

        job->last_event = (uint64_t)sqlite3_column_int64(statement, (*column)++);
        r = fields_read(body_fields, &body, statement, column);
        if (r >= 0)
                r = keep(q, body_fields, &body);
        if (r < 0)
                return r;
        e = malloc(sizeof(*e) + sizeof(body) + _Alignof(struct job_body_record));
        if (!e)
                return -ENOMEM;
        e->next = q->extras;
        q->extras = e;
        copy = (struct job_body_record *)(((uintptr_t)e->bytes + _Alignof(struct job_body_record) - 1) &
                                          ~(uintptr_t)(_Alignof(struct job_body_record) - 1));
        *copy = body;
        job->body = copy;
        return 0;
}

static int read_row(enum item_kind kind, struct query *q, sqlite3_stmt *statement) {
        void *record = add_row(q, record_sizes[kind]);
        int column = 0, r;

        if (!record)
                return -ENOMEM;
        r = fields_read(record_fields[kind], record, statement, &column);
        if (r >= 0)
                r = keep(q, record_fields[kind], record);
        if (r >= 0 && q->bodies)
                r = read_body(q, record, statement, &column);
        return r;
}

int query_run(sqlite3 *db, enum item_kind kind, struct query *q) {
        sqlite3_stmt *statement = NULL;
        int r = sqlite3_prepare_v2(db, q->sql, -1, &statement, NULL);

        for (int i = 0; i < q->n_parameters && r == SQLITE_OK; i++)
                r = sqlite3_bind_int64(statement, i + 1, q->parameters[i]);
        if (r == SQLITE_OK && q->text)
                r = sqlite3_bind_text(statement, q->n_parameters + 1, q->text, -1, SQLITE_STATIC);
        if (r != SQLITE_OK)
                r = sqlite_error(db, r);
        else
                do {
                        r = sqlite3_step(statement);
                        r = r == SQLITE_ROW    ? read_row(kind, q, statement)
                            : r == SQLITE_DONE ? 1
                                               : sqlite_error(db, r);
                } while (r == 0);
        (void)sqlite3_finalize(statement);
        if (r < 0)
                query_done(kind, q);
        return MIN(r, 0);
}

void query_done(enum item_kind kind, struct query *q) {
        struct extra *next;

        for (struct extra *e = q->extras; e; e = next) {
                next = e->next;
                free(e);
        }
        free(q->rows);
        free(q->text);
        q->text = NULL;
        q->extras = NULL;
        q->rows = NULL;
        q->n = q->allocated = 0;
}

static void answer(struct item *i) {
        struct query *q = &i->query;

        switch (i->kind) {
        case ITEM_BATCH:
                break;
        case ITEM_QUERY_JOBS:
                q->callback.jobs(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_EXECUTORS:
                q->callback.executors(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_EVENTS:
                q->callback.events(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_METRICS:
                q->callback.metrics(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_SERIES:
                q->callback.series(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_TRIALS:
                q->callback.trials(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_NODE_EVENTS:
                q->callback.node_events(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_ELEMENTS:
                q->callback.elements(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_USAGE:
                q->callback.usage(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_FILES:
                q->callback.files(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_SOURCES:
                q->callback.sources(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_SAVEPOINTS:
                q->callback.savepoints(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_DATA_STATES:
                q->callback.data_states(i->userdata, i->error, q->rows, q->n);
                break;
        case ITEM_QUERY_KEPT_TASKS:
                q->callback.kept_tasks(i->userdata, i->error, q->rows, q->n);
                break;
        }
}

/* ---- for whom ---- */

struct asker {
        uint32_t uid, n;
        UT_hash_handle hh;
};

static struct asker *asker_find(const struct store *s, uint32_t uid) {
        struct asker *a;

        HASH_FIND(hh, s->askers, &uid, sizeof(uid), a);
        return a;
}

static int asker_begins(struct store *s, uint32_t uid) {
        struct asker *a = asker_find(s, uid);

        if (!a) {
                a = calloc(1, sizeof(*a));
                if (!a)
                        return -ENOMEM;
                a->uid = uid;
                HASH_ADD(hh, s->askers, uid, sizeof(a->uid), a);
        }
        a->n++;
        return 0;
}

static void asker_ended(struct store *s, uint32_t uid) {
        struct asker *a = asker_find(s, uid);

        if (--a->n > 0)
                return;
        HASH_DEL(s->askers, a);
        free(a);
}

void query_askers_free(struct store *s) {
        struct asker *a, *next;

        HASH_ITER (hh, s->askers, a, next) {
                HASH_DEL(s->askers, a);
                free(a);
        }
}

void store_ask_for(struct store *s, uint32_t uid) {
        s->asker = uid;
        s->asker_waits = uid != STORE_NOBODY && asker_find(s, uid);
}

void store_on_answer(struct store *s, store_answered_t f, void *userdata) {
        s->answered = f;
        s->answered_userdata = userdata;
}

/* What is asked on behalf of people. The rest is masterd's own affair, also when a call has led to it. */
static bool of_people(enum item_kind kind) {
        return kind != ITEM_QUERY_FILES && kind != ITEM_QUERY_SOURCES && kind != ITEM_QUERY_DATA_STATES;
}

void query_deliver(struct store *s, struct item *i) {
        uint64_t before;

        if (i->asker == STORE_NOBODY) {
                answer(i);
                return;
        }
        asker_ended(s, i->asker);
        store_ask_for(s, i->asker); /* one answer may lead to the next question */
        s->asker_waits = false;
        before = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        answer(i);
        store_ask_for(s, STORE_NOBODY);
        if (s->answered)
                s->answered(s->answered_userdata, i->asker, clock_usec(CLOCK_THREAD_CPUTIME_ID) - before,
                            i->query.bytes + i->query.n * record_sizes[i->kind]);
}

static int ask(struct store *s, enum item_kind kind, const struct query *q, void *userdata) {
        struct item *i = s->asker_waits && of_people(kind) ? NULL : calloc(1, sizeof(*i));
        int r;

        if (!i) {
                free(q->text);
                return s->asker_waits && of_people(kind) ? -EBUSY : -ENOMEM;
        }
        i->kind = kind;
        i->query = *q;
        i->userdata = userdata;
        i->asker = of_people(kind) ? s->asker : STORE_NOBODY;
        if (i->asker == STORE_NOBODY)
                return store_enqueue(s, i);
        r = asker_begins(s, i->asker);
        if (r < 0) {
                item_free(i);
                return r;
        }
        r = store_enqueue(s, i);
        if (r < 0)
                asker_ended(s, s->asker);
        return r;
}

#define JOB_COLUMNS                                                                                          \
        "SELECT job.number, uid, owner, name, state, attempt, submitted, started, ended, reason,"            \
        " first_error, state_data, array, idx"

int store_query_job(struct store *s, uint32_t number, store_jobs_t callback, void *userdata) {
        return ask(s, ITEM_QUERY_JOBS,
                   &(struct query){
                           .sql = JOB_COLUMNS JOB_BODY_COLUMNS FROM_JOB_WITH_BODY " WHERE job.number = ?1",
                           .parameters = { number },
                           .n_parameters = 1,
                           .bodies = true,
                           .callback.jobs = callback,
                   },
                   userdata);
}

int store_query_jobs(struct store *s, const struct store_job_filter *f, store_jobs_t callback,
                     void *userdata) {
        char *name = strdup(f->name ? f->name : "");

        if (!name)
                return -ENOMEM;
        return ask(s, ITEM_QUERY_JOBS,
                   &(struct query){
                           .sql = JOB_COLUMNS " FROM job WHERE (?1 OR ended = 0) AND (?2 < 0 OR owner = ?2)"
                                              " AND (?3 < 0 OR state = ?3) AND number < ?4"
                                              " AND (?6 OR array = 0) AND (?7 = 0 OR array = ?7)"
                                              " AND submitted >= ?8 AND (?9 = '' OR instr(name, ?9) > 0)"
                                              " ORDER BY number DESC LIMIT ?5",
                           .parameters = { f->all, f->by_owner ? (int64_t)f->owner : -1, f->state,
                                           f->before > 0 ? (int64_t)f->before : INT64_MAX,
                                           f->limit > 0 ? MIN(f->limit, JOBS_MAX) : JOBS_DEFAULT,
                                           f->elements || f->array > 0, f->array,
                                           f->since > INT64_MAX ? INT64_MAX : (int64_t)f->since },
                           .n_parameters = 8,
                           .text = name,
                           .callback.jobs = callback,
                   },
                   userdata);
}

int store_query_elements(struct store *s, uint32_t array, uint32_t index, store_elements_t callback,
                         void *userdata) {
        bool all = index == UINT32_MAX;

        return ask(s, ITEM_QUERY_ELEMENTS,
                   &(struct query){
                           .sql = all ? "SELECT array, idx, number, state FROM job WHERE array > 0"
                                        " AND array = ?1 ORDER BY idx, number"
                                      : "SELECT array, idx, number, state FROM job WHERE array > 0"
                                        " AND array = ?1 AND idx = ?2 ORDER BY number DESC",
                           .parameters = { array, index },
                           .n_parameters = all ? 1 : 2,
                           .callback.elements = callback,
                   },
                   userdata);
}

int store_query_usage(struct store *s, uint32_t first, uint32_t last, uint32_t owner, store_usage_t callback,
                      void *userdata) {
        return ask(s, ITEM_QUERY_USAGE,
                   &(struct query){
                           .sql = "SELECT day, owner, pool, job, role, cpu_held, cpu_used, memory_held,"
                                  " gpu_held, attempts, unmeasured, gpu_used, gpu_measured FROM usage WHERE "
                                  "day BETWEEN ?1 AND ?2"
                                  " AND (?3 < 0 OR owner = ?3)",
                           .parameters = { first, last, owner == UINT32_MAX ? -1 : (int64_t)owner },
                           .n_parameters = 3,
                           .callback.usage = callback,
                   },
                   userdata);
}

int store_query_job_usage(struct store *s, uint32_t job, store_usage_t callback, void *userdata) {
        return ask(s, ITEM_QUERY_USAGE,
                   &(struct query){
                           .sql = "SELECT day, owner, pool, job, role, cpu_held, cpu_used, memory_held,"
                                  " gpu_held, attempts, unmeasured, gpu_used, gpu_measured FROM usage WHERE "
                                  "job > 0 AND job = ?1",
                           .parameters = { job },
                           .n_parameters = 1,
                           .callback.usage = callback,
                   },
                   userdata);
}

int store_query_executors(struct store *s, uint32_t job, bool all_attempts, uint32_t limit,
                          store_executors_t callback, void *userdata) {
        return ask(s, ITEM_QUERY_EXECUTORS,
                   &(struct query){
                           .sql = "SELECT job, role, idx, attempt, state, node, rank, ports, gpus, "
                                  "invocation, epoch,"
                                  " placed, started, ended, result, status, stop_requested, "
                                  "memory_peak, cpu,"
                                  " io_read, io_write, reason, cpus, fate, memory FROM executor AS e WHERE "
                                  "job = ?1 AND (?2 OR "
                                  "attempt ="
                                  " (SELECT max(attempt) FROM executor WHERE job = e.job AND role = e.role"
                                  " AND idx = e.idx)) ORDER BY role, idx, attempt LIMIT ?3",
                           .parameters = { job, all_attempts,
                                           limit > 0 ? MIN(limit, EXECUTORS_MAX) : EXECUTORS_MAX },
                           .n_parameters = 3,
                           .callback.executors = callback,
                   },
                   userdata);
}

int store_query_events(struct store *s, uint32_t job, uint64_t after, uint32_t limit, store_events_t callback,
                       void *userdata) {
        return ask(s, ITEM_QUERY_EVENTS,
                   &(struct query){
                           .sql = "SELECT job, seq, time, kind, role, idx, text FROM event WHERE job = ?1 "
                                  "AND seq > ?2"
                                  " ORDER BY seq LIMIT ?3",
                           .parameters = { job, after > INT64_MAX ? INT64_MAX : (int64_t)after,
                                           limit > 0 ? MIN(limit, EVENTS_MAX) : EVENTS_MAX },
                           .n_parameters = 3,
                           .callback.events = callback,
                   },
                   userdata);
}

int store_query_series(struct store *s, uint32_t job, store_series_t callback, void *userdata) {
        return ask(s, ITEM_QUERY_SERIES,
                   &(struct query){
                           .sql = "SELECT job, role, at, points FROM series WHERE job = ?1 ORDER BY role",
                           .parameters = { job },
                           .n_parameters = 1,
                           .callback.series = callback,
                   },
                   userdata);
}

int store_query_metrics(struct store *s, uint32_t job, store_metrics_t callback, void *userdata) {
        return ask(s, ITEM_QUERY_METRICS,
                   &(struct query){
                           .sql = "SELECT job, role, idx, local, points FROM metric WHERE job = ?1",
                           .parameters = { job },
                           .n_parameters = 1,
                           .callback.metrics = callback,
                   },
                   userdata);
}

int store_query_trials(struct store *s, uint32_t job, store_trials_t callback, void *userdata) {
        return ask(
                s, ITEM_QUERY_TRIALS,
                &(struct query){
                        .sql = "SELECT job, seq, time, kind, trial, step, metric, exit, verdict, given FROM trial"
                               " WHERE job = ?1 ORDER BY seq",
                        .parameters = { job },
                        .n_parameters = 1,
                        .callback.trials = callback,
                },
                userdata);
}

int store_query_files(struct store *s, uint64_t key, uint32_t source, uint64_t first, uint32_t limit,
                      store_files_t callback, void *userdata) {
        return ask(
                s, ITEM_QUERY_FILES,
                &(struct query){
                        .sql = "SELECT job, source, file, path, size, mtime, inode, first, last, batch, "
                               "split FROM file WHERE job = ?1 AND source = ?2 AND file >= ?3"
                               " ORDER BY file LIMIT ?4",
                        .parameters = { (int64_t)key, source, first > INT64_MAX ? INT64_MAX : (int64_t)first,
                                        MIN(limit, FILES_MAX) },
                        .n_parameters = 4,
                        .callback.files = callback,
                },
                userdata);
}

int store_query_sources(struct store *s, uint64_t key, store_sources_t callback, void *userdata) {
        return ask(s, ITEM_QUERY_SOURCES,
                   &(struct query){
                           .sql = "SELECT job, source, scanned, cursor, passed, error FROM source"
                                  " WHERE job = ?1 ORDER BY source",
                           .parameters = { (int64_t)key },
                           .n_parameters = 1,
                           .callback.sources = callback,
                   },
                   userdata);
}

int store_query_savepoint(struct store *s, const char *name, store_savepoints_t callback, void *userdata) {
        char *text = strdup(name);

        if (!text)
                return -ENOMEM;
        return ask(s, ITEM_QUERY_SAVEPOINTS,
                   &(struct query){
                           .sql = "SELECT name, owner, job, job_name, key, created, done, acked, records, "
                                  "partial, failed, bundle, manifest, config FROM savepoint WHERE name = ?1",
                           .text = text,
                           .callback.savepoints = callback,
                   },
                   userdata);
}

int store_query_node_events(struct store *s, const char *node, uint64_t after, store_node_events_t callback,
                            void *userdata) {
        char *text = strdup(node);

        if (!text)
                return -ENOMEM;
        return ask(
                s, ITEM_QUERY_NODE_EVENTS,
                &(struct query){
                        .sql = "SELECT node, seq, time, kind, text FROM node_event WHERE seq > ?1 AND node = ?2"
                               " ORDER BY seq",
                        .parameters = { after > INT64_MAX ? INT64_MAX : (int64_t)after },
                        .n_parameters = 1,
                        .text = text,
                        .callback.node_events = callback,
                },
                userdata);
}

int store_query_data_state(struct store *s, uint32_t job, store_data_states_t callback, void *userdata) {
        return ask(s, ITEM_QUERY_DATA_STATES,
                   &(struct query){
                           .sql = "SELECT job, state FROM data WHERE job = ?1",
                           .parameters = { job },
                           .n_parameters = 1,
                           .callback.data_states = callback,
                   },
                   userdata);
}

int store_query_kept_tasks(struct store *s, uint32_t job, uint8_t state, uint64_t after, uint32_t limit,
                           store_kept_tasks_t callback, void *userdata) {
        /* SQLite's integers have a sign: numbers from 2^63 on come first to it. */
        return ask(s, ITEM_QUERY_KEPT_TASKS,
                   &(struct query){
                           .sql = "SELECT task, source, epoch, file, start, stop, acked, task.records, "
                                  "failures, error, path FROM task JOIN file USING (job, source, file)"
                                  " WHERE job = ?1 AND state = ?2 AND (task < 0) >= ?3"
                                  " AND ((task < 0) > ?3 OR task > ?4) ORDER BY task < 0, task LIMIT ?5",
                           .parameters = { job, state, after > INT64_MAX, (int64_t)after,
                                           MIN(limit, TASKS_MAX) },
                           .n_parameters = 5,
                           .callback.kept_tasks = callback,
                   },
                   userdata);
}
