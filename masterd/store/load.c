/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd reads back when it starts, in the loop's thread before the other one runs. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/store/internal.h"

#define OF_ACTIVE " WHERE job IN (SELECT number FROM job WHERE ended = 0)"

struct load {
        int (*row)(sqlite3_stmt *statement, const struct load *l);
        union {
                store_load_job_t job;
                store_load_executor_t executor;
                store_load_element_t element;
                store_load_usage_t usage;
                store_load_trial_t trial;
                store_load_metric_t metric;
                store_load_node_t node;
                store_load_node_event_t node_event;
                store_load_hold_t hold;
                store_load_label_t label;
                store_load_window_t window;
                store_load_gpu_off_t gpu_off;
                store_load_stuck_t stuck;
                store_load_avoid_t avoid;
                store_load_verdict_t verdict;
                store_load_token_t token;
                store_load_revoked_t revoked;
                store_load_share_t share;
                store_load_submit_key_t submit_key;
                store_load_checkpoint_t checkpoint;
                store_load_model_t model;
                store_load_provider_t provider;
                store_load_instance_t instance;
                store_load_secret_t secret;
                store_load_data_file_t data_file;
                store_load_data_source_t data_source;
                store_load_data_block_t data_block;
                store_load_data_task_t data_task;
                store_load_data_state_t data_state;
                store_load_savepoint_t savepoint;
                store_load_scope_t scope;
                store_load_blame_t blame;
                store_load_change_t change;
                store_load_cut_t cut;
        } callback;
        void *userdata;
};

static int load_rows(struct store *s, sqlite3_stmt *statement, const struct load *l) {
        int r;

        do {
                r = sqlite3_step(statement);
                r = r == SQLITE_ROW ? l->row(statement, l) : r == SQLITE_DONE ? 1 : sqlite_error(s->db, r);
        } while (r == 0);
        return MIN(r, 0);
}

static int load(struct store *s, const char *sql, const struct load *l) {
        sqlite3_stmt *statement = NULL;
        int r;

        if (s->running)
                return -EBUSY;
        r = sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL);
        r = r == SQLITE_OK ? load_rows(s, statement, l) : sqlite_error(s->db, r);
        (void)sqlite3_finalize(statement);
        return r;
}

static int row_job(sqlite3_stmt *statement, const struct load *l) {
        struct job_record job = {};
        struct job_body_record body = {};
        int column = 0, r = fields_read(job_fields, &job, statement, &column);

        if (r < 0)
                return r;
        job.last_event = (uint64_t)sqlite3_column_int64(statement, column++);
        r = fields_read(body_fields, &body, statement, &column);
        if (r < 0)
                return r;
        job.body = &body;
        return MIN(l->callback.job(l->userdata, &job), 0);
}

/* The same for every record that is no more than its fields. */
#define DEFINE_ROW(name)                                                                                     \
        static int row_##name(sqlite3_stmt *statement, const struct load *l) {                               \
                struct name##_record record = {};                                                            \
                int column = 0, r = fields_read(name##_fields, &record, statement, &column);                 \
                return r < 0 ? r : MIN(l->callback.name(l->userdata, &record), 0);                           \
        }

DEFINE_ROW(executor)
DEFINE_ROW(element)
DEFINE_ROW(usage)
DEFINE_ROW(trial)
DEFINE_ROW(metric)
DEFINE_ROW(node)
DEFINE_ROW(node_event)
DEFINE_ROW(hold)
DEFINE_ROW(label)
DEFINE_ROW(window)
DEFINE_ROW(gpu_off)
DEFINE_ROW(stuck)
DEFINE_ROW(avoid)
DEFINE_ROW(verdict)
DEFINE_ROW(token)
DEFINE_ROW(revoked)
DEFINE_ROW(share)
DEFINE_ROW(submit_key)
DEFINE_ROW(checkpoint)
DEFINE_ROW(model)
DEFINE_ROW(provider)
DEFINE_ROW(instance)
DEFINE_ROW(secret)
DEFINE_ROW(data_file)
DEFINE_ROW(data_source)
DEFINE_ROW(data_block)
DEFINE_ROW(data_task)
DEFINE_ROW(data_state)
DEFINE_ROW(savepoint)
DEFINE_ROW(scope)
DEFINE_ROW(blame)
DEFINE_ROW(change)
DEFINE_ROW(cut)

#define JOB_COLUMNS                                                                                          \
        "SELECT job.number, uid, owner, name, state, attempt, submitted, started, ended, reason,"            \
        " first_error, state_data, array, idx" JOB_BODY_COLUMNS FROM_JOB_WITH_BODY

int store_load_jobs(struct store *s, bool active_only, store_load_job_t callback, void *userdata) {
        return load(s,
                    active_only ? JOB_COLUMNS " WHERE ended = 0 ORDER BY job.number"
                                : JOB_COLUMNS " ORDER BY job.number",
                    &(struct load){ row_job, { .job = callback }, userdata });
}

int store_load_executors(struct store *s, store_load_executor_t callback, void *userdata) {
        return load(s,
                    "SELECT job, role, idx, attempt, state, node, rank, ports, gpus, invocation, epoch, "
                    "placed,"
                    " started, ended, result, status, stop_requested, memory_peak, cpu, io_read, io_write,"
                    " reason, cpus, fate, memory FROM executor" OF_ACTIVE " ORDER BY job, role, idx, attempt",
                    &(struct load){ row_executor, { .executor = callback }, userdata });
}

int store_load_elements(struct store *s, store_load_element_t callback, void *userdata) {
        return load(s,
                    "SELECT array, idx, number, state FROM job WHERE array > 0 AND array IN"
                    " (SELECT number FROM job WHERE ended = 0) ORDER BY array, idx, number",
                    &(struct load){ row_element, { .element = callback }, userdata });
}

int store_load_usage(struct store *s, store_load_usage_t callback, void *userdata) {
        return load(s,
                    "SELECT day, owner, pool, job, role, cpu_held, cpu_used, memory_held, gpu_held, attempts,"
                    " unmeasured, gpu_used, gpu_measured FROM usage" OF_ACTIVE " ORDER BY job, day, role",
                    &(struct load){ row_usage, { .usage = callback }, userdata });
}

int store_load_trials(struct store *s, store_load_trial_t callback, void *userdata) {
        return load(
                s,
                "SELECT job, seq, time, kind, trial, step, metric, exit, verdict, given FROM trial" OF_ACTIVE
                " ORDER BY job, seq",
                &(struct load){ row_trial, { .trial = callback }, userdata });
}

int store_load_metrics(struct store *s, store_load_metric_t callback, void *userdata) {
        return load(s, "SELECT job, role, idx, local, points FROM metric" OF_ACTIVE,
                    &(struct load){ row_metric, { .metric = callback }, userdata });
}

int store_load_changes(struct store *s, store_load_change_t callback, void *userdata) {
        return load(s,
                    "SELECT job, version, user, at, text, before, x'' FROM change" OF_ACTIVE
                    " ORDER BY job, version",
                    &(struct load){ row_change, { .change = callback }, userdata });
}

int store_load_cuts(struct store *s, store_load_cut_t callback, void *userdata) {
        return load(s,
                    "SELECT job, version, role, first, attempt FROM change_cut" OF_ACTIVE
                    " ORDER BY job, version, role",
                    &(struct load){ row_cut, { .cut = callback }, userdata });
}

int store_load_secrets(struct store *s, store_load_secret_t callback, void *userdata) {
        return load(s, "SELECT job, name, data FROM secret" OF_ACTIVE " ORDER BY job, name",
                    &(struct load){ row_secret, { .secret = callback }, userdata });
}

int store_load_scopes(struct store *s, store_load_scope_t callback, void *userdata) {
        return load(s, "SELECT job, role, state FROM scope" OF_ACTIVE " ORDER BY job, role",
                    &(struct load){ row_scope, { .scope = callback }, userdata });
}

int store_load_blames(struct store *s, store_load_blame_t callback, void *userdata) {
        return load(s, "SELECT node, state FROM blame ORDER BY node",
                    &(struct load){ row_blame, { .blame = callback }, userdata });
}

/* The job first, so that the rows come in order without being sorted: there may be millions. */
#define JOINED(table) " FROM job CROSS JOIN " table " AS t ON t.job = job.number WHERE job.ended = 0"

int store_load_data_files(struct store *s, store_load_data_file_t callback, void *userdata) {
        return load(s,
                    "SELECT t.job, t.source, t.file, t.path, t.size, t.mtime, t.inode, t.first, t.last, "
                    "t.batch, t.split" JOINED("file") " ORDER BY job.number, t.source, t.file",
                    &(struct load){ row_data_file, { .data_file = callback }, userdata });
}

int store_load_data_file_range(struct store *s, uint64_t key, uint32_t source, uint64_t first, uint32_t n,
                               store_load_data_file_t callback, void *userdata) {
        sqlite3_stmt *statement = NULL;
        int r;

        if (s->running)
                return -EBUSY;
        r = sqlite3_prepare_v2(s->db,
                               "SELECT job, source, file, path, size, mtime, inode, first, last, batch, split"
                               " FROM file WHERE job = ?1 AND source = ?2 AND file >= ?3 ORDER BY file"
                               " LIMIT ?4",
                               -1, &statement, NULL);
        if (r == SQLITE_OK)
                r = sqlite3_bind_int64(statement, 1, (int64_t)key);
        if (r == SQLITE_OK)
                r = sqlite3_bind_int64(statement, 2, source);
        if (r == SQLITE_OK)
                r = sqlite3_bind_int64(statement, 3, first > INT64_MAX ? INT64_MAX : (int64_t)first);
        if (r == SQLITE_OK)
                r = sqlite3_bind_int64(statement, 4, n);
        r = r == SQLITE_OK ? load_rows(s, statement,
                                       &(struct load){ row_data_file, { .data_file = callback }, userdata })
                           : sqlite_error(s->db, r);
        (void)sqlite3_finalize(statement);
        return r;
}

int store_load_data_sources(struct store *s, store_load_data_source_t callback, void *userdata) {
        return load(s,
                    "SELECT t.job, t.source, t.scanned, t.cursor, t.passed, t.error" JOINED(
                            "source") " ORDER BY job.number, t.source",
                    &(struct load){ row_data_source, { .data_source = callback }, userdata });
}

int store_load_data_blocks(struct store *s, store_load_data_block_t callback, void *userdata) {
        return load(
                s,
                "SELECT t.job, t.block, t.state, t.finished" JOINED("block") " ORDER BY job.number, t.block",
                &(struct load){ row_data_block, { .data_block = callback }, userdata });
}

int store_load_data_tasks(struct store *s, store_load_data_task_t callback, void *userdata) {
        return load(s,
                    "SELECT t.job, t.task, t.source, t.file, t.epoch, t.start, t.stop, t.acked, t.skip, "
                    "t.records, t.records_before, t.state, t.failures, t.error" JOINED(
                            "task") " ORDER BY job.number, t.task < 0, t.task",
                    &(struct load){ row_data_task, { .data_task = callback }, userdata });
}

int store_load_data_states(struct store *s, store_load_data_state_t callback, void *userdata) {
        return load(s, "SELECT t.job, t.state" JOINED("data") " ORDER BY job.number",
                    &(struct load){ row_data_state, { .data_state = callback }, userdata });
}

int store_load_savepoints(struct store *s, store_load_savepoint_t callback, void *userdata) {
        return load(s,
                    "SELECT name, owner, job, job_name, key, created, done, acked, records, partial, failed,"
                    " bundle, x'', x'' FROM savepoint ORDER BY created, name",
                    &(struct load){ row_savepoint, { .savepoint = callback }, userdata });
}

int store_load_nodes(struct store *s, store_load_node_t callback, void *userdata) {
        return load(s,
                    "SELECT name, serial, epoch, boot_id, state, address, cpus, memory, joined, seen,"
                    " joined_from, joined_by, taken_over, port_first, port_last, gpus"
                    " FROM node ORDER BY name",
                    &(struct load){ row_node, { .node = callback }, userdata });
}

int store_load_last_node_events(struct store *s, store_load_node_event_t callback, void *userdata) {
        /* A look into the index for each host, not at each event. */
        return load(
                s,
                "SELECT name, ifnull((SELECT max(seq) FROM node_event WHERE node = node.name), 0), 0, '', ''"
                " FROM node ORDER BY name",
                &(struct load){ row_node_event, { .node_event = callback }, userdata });
}

int store_load_holds(struct store *s, store_load_hold_t callback, void *userdata) {
        return load(s,
                    "SELECT node, cause, drain, reason, uid, since, deadline, grace, behind, boot"
                    " FROM node_hold ORDER BY node, cause",
                    &(struct load){ row_hold, { .hold = callback }, userdata });
}

int store_load_labels(struct store *s, store_load_label_t callback, void *userdata) {
        return load(s, "SELECT node, key, value FROM node_label ORDER BY node, key",
                    &(struct load){ row_label, { .label = callback }, userdata });
}

int store_load_windows(struct store *s, store_load_window_t callback, void *userdata) {
        return load(s, "SELECT node, start, stop, reason, uid FROM node_window ORDER BY node, start",
                    &(struct load){ row_window, { .window = callback }, userdata });
}

int store_load_gpus_off(struct store *s, store_load_gpu_off_t callback, void *userdata) {
        return load(s, "SELECT node, uuid, uid, since, reason FROM gpu_off ORDER BY node, since, uuid",
                    &(struct load){ row_gpu_off, { .gpu_off = callback }, userdata });
}

int store_load_stuck(struct store *s, store_load_stuck_t callback, void *userdata) {
        return load(s,
                    "SELECT node, job, role, idx, attempt, uid, since, cpu, memory, gpus, ports, reason, "
                    "shm, whole, cpus,"
                    " amounts FROM stuck ORDER BY node, job, role, idx, attempt",
                    &(struct load){ row_stuck, { .stuck = callback }, userdata });
}

int store_load_avoided(struct store *s, store_load_avoid_t callback, void *userdata) {
        return load(s, "SELECT job, node, avoided, allowed FROM job_avoid" OF_ACTIVE " ORDER BY job, node",
                    &(struct load){ row_avoid, { .avoid = callback }, userdata });
}

int store_load_verdicts(struct store *s, store_load_verdict_t callback, void *userdata) {
        return load(s,
                    "SELECT job, role, idx, kind, attempt, since, begun, action, acted, text FROM "
                    "verdict" OF_ACTIVE " ORDER BY job, role, idx, kind",
                    &(struct load){ row_verdict, { .verdict = callback }, userdata });
}

int store_load_tokens(struct store *s, store_load_token_t callback, void *userdata) {
        return load(
                s,
                "SELECT id, secret_hash, uses_left, expires, source, creator, name, \"replace\" FROM token"
                " ORDER BY id",
                &(struct load){ row_token, { .token = callback }, userdata });
}

int store_load_submit_keys(struct store *s, store_load_submit_key_t callback, void *userdata) {
        return load(s, "SELECT user, key, digest, job, at FROM submit_key ORDER BY at, job",
                    &(struct load){ row_submit_key, { .submit_key = callback }, userdata });
}

int store_load_checkpoints(struct store *s, store_load_checkpoint_t callback, void *userdata) {
        return load(
                s,
                "SELECT id, owner, job, run, trial, step, saved, bytes, files, path, host, metrics, metric, value,"
                " smaller, pinned, marked FROM checkpoint ORDER BY id",
                &(struct load){ row_checkpoint, { .checkpoint = callback }, userdata });
}

int store_load_models(struct store *s, store_load_model_t callback, void *userdata) {
        return load(
                s,
                "SELECT owner, name, version, checkpoint, path, host, metric, value, step, registered, note, labels,"
                " archived FROM model ORDER BY registered, owner, name, version",
                &(struct load){ row_model, { .model = callback }, userdata });
}

int store_load_providers(struct store *s, store_load_provider_t callback, void *userdata) {
        return load(s, "SELECT name, last, held FROM provider ORDER BY name",
                    &(struct load){ row_provider, { .provider = callback }, userdata });
}

int store_load_instances(struct store *s, store_load_instance_t callback, void *userdata) {
        return load(
                s,
                "SELECT token, provider, shape, node, id, state, job, made, since, ready, held, woken, leaves, reason"
                " FROM instance ORDER BY made, token",
                &(struct load){ row_instance, { .instance = callback }, userdata });
}

int store_load_shares(struct store *s, store_load_share_t callback, void *userdata) {
        return load(s, "SELECT pool, user, usage, at FROM share ORDER BY pool, user",
                    &(struct load){ row_share, { .share = callback }, userdata });
}

int store_load_revoked(struct store *s, store_load_revoked_t callback, void *userdata) {
        return load(s, "SELECT serial, node, revoked, not_after FROM revoked ORDER BY serial",
                    &(struct load){ row_revoked, { .revoked = callback }, userdata });
}

int store_load_meta(struct store *s, const char *key, void **ret, size_t *ret_size) {
        sqlite3_stmt *statement = NULL;
        char *copy;
        size_t size;
        int r;

        if (s->running)
                return -EBUSY;
        r = sqlite3_prepare_v2(s->db, "SELECT value FROM meta WHERE key = ?1", -1, &statement, NULL);
        if (r == SQLITE_OK)
                r = sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        if (r == SQLITE_ROW) {
                const void *data = sqlite3_column_blob(statement, 0);
                size = (size_t)sqlite3_column_bytes(statement, 0);
                copy = malloc(size + 1);
                if (copy) {
                        if (size > 0)
                                memcpy(copy, data, size);
                        copy[size] = 0;
                        *ret = copy;
                        if (ret_size)
                                *ret_size = size;
                }
                r = copy ? 0 : -ENOMEM;
        } else
                r = r == SQLITE_DONE ? -ENOENT : sqlite_error(s->db, r);
        (void)sqlite3_finalize(statement);
        return r;
}

int store_load_last_event(struct store *s, uint32_t job, uint64_t *ret) {
        sqlite3_stmt *statement = NULL;
        int r;

        if (s->running)
                return -EBUSY;
        r = sqlite3_prepare_v2(s->db, "SELECT coalesce(max(seq), 0) FROM event WHERE job = ?1", -1,
                               &statement, NULL);
        if (r == SQLITE_OK)
                r = sqlite3_bind_int64(statement, 1, job);
        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        if (r == SQLITE_ROW) {
                *ret = (uint64_t)sqlite3_column_int64(statement, 0);
                r = 0;
        } else
                r = sqlite_error(s->db, r);
        (void)sqlite3_finalize(statement);
        return r;
}
