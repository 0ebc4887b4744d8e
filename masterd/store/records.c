/* SPDX-License-Identifier: Apache-2.0 */
/* The records as SQL sees them: fields in the order of parameters and columns, and the statements that write
 * them. Invariant: every statement may be run twice with the same outcome, so that a transaction can be tried
 * again. */
#include "masterd/store/table.h"

#define F(t, record, member)                                                                                 \
        { FIELD_##t, offsetof(struct record, member), sizeof(((struct record *)NULL)->member), NULL }
#define C(record, member, codec)                                                                             \
        { FIELD_STATE, offsetof(struct record, member), sizeof(((struct record *)NULL)->member), codec }

const struct field job_fields[] = {
        F(U32, job_record, number),
        F(FIXED, job_record, uid),
        F(U32, job_record, owner),
        F(TEXT, job_record, name),
        F(U8, job_record, state),
        F(U32, job_record, attempt),
        F(U64, job_record, submitted_real),
        F(U64, job_record, started_real),
        F(U64, job_record, ended_real),
        F(TEXT, job_record, reason),
        F(TEXT, job_record, first_error),
        C(job_record, machine, job_state_codec),
        F(U32, job_record, array),
        F(U32, job_record, index),
        {},
};

const struct field body_fields[] = {
        F(BYTES, job_body_record, config),   F(BYTES, job_body_record, cwd),   F(BYTES, job_body_record, env),
        F(BYTES, job_body_record, warnings), F(TEXT, job_body_record, bundle), {},
};

static const struct field body_row_fields[] = {
        F(BYTES, body_row, body.config),
        F(BYTES, body_row, body.cwd),
        F(BYTES, body_row, body.env),
        F(BYTES, body_row, body.warnings),
        F(TEXT, body_row, body.bundle),
        F(U32, body_row, number),
        {},
};

const struct field executor_fields[] = {
        F(U32, executor_record, job),
        F(TEXT, executor_record, role),
        F(U32, executor_record, index),
        F(U32, executor_record, attempt),
        F(U8, executor_record, state),
        F(TEXT, executor_record, node),
        F(U32, executor_record, rank),
        F(PORTS, executor_record, ports),
        F(TEXT, executor_record, gpus),
        F(FIXED, executor_record, invocation),
        F(U64, executor_record, epoch),
        F(U64, executor_record, placed_real),
        F(U64, executor_record, started_real),
        F(U64, executor_record, ended_real),
        F(TEXT, executor_record, result),
        F(I32, executor_record, status),
        F(BOOL, executor_record, stop_requested),
        F(U64, executor_record, memory_peak),
        F(U64, executor_record, cpu_usec),
        F(U64, executor_record, io_read),
        F(U64, executor_record, io_write),
        F(TEXT, executor_record, reason),
        F(TEXT, executor_record, cpus),
        F(U8, executor_record, fate),
        F(U64, executor_record, memory),
        {},
};

const struct field event_fields[] = {
        F(U32, event_record, job),       F(U64, event_record, seq),
        F(U64, event_record, time_real), F(TEXT, event_record, kind),
        F(TEXT, event_record, role),     F(U32, event_record, index),
        F(TEXT, event_record, text),     {},
};

const struct field element_fields[] = {
        F(U32, element_record, array),
        F(U32, element_record, index),
        F(U32, element_record, job),
        F(U8, element_record, state),
        {},
};

const struct field usage_fields[] = {
        F(U32, usage_record, day),          F(U32, usage_record, owner),
        F(TEXT, usage_record, pool),        F(U32, usage_record, job),
        F(TEXT, usage_record, role),        F(U64, usage_record, cpu_held),
        F(U64, usage_record, cpu_used),     F(U64, usage_record, memory_held),
        F(U64, usage_record, gpu_held),     F(U64, usage_record, attempts),
        F(U64, usage_record, unmeasured),   F(U64, usage_record, gpu_used),
        F(U64, usage_record, gpu_measured), {},
};

const struct field node_fields[] = {
        F(TEXT, node_record, name),
        F(TEXT, node_record, serial),
        F(U64, node_record, epoch),
        F(TEXT, node_record, boot_id),
        F(U8, node_record, state),
        F(TEXT, node_record, address),
        F(U32, node_record, cpus),
        F(U64, node_record, memory),
        F(U64, node_record, joined_real),
        F(U64, node_record, seen_real),
        F(TEXT, node_record, joined_from),
        F(U32, node_record, joined_by),
        F(BOOL, node_record, taken_over),
        F(U32, node_record, port_first),
        F(U32, node_record, port_last),
        F(TEXT, node_record, gpus),
        {},
};

const struct field hold_fields[] = {
        F(TEXT, hold_record, node),
        F(U8, hold_record, cause),
        F(BOOL, hold_record, drain),
        F(TEXT, hold_record, reason),
        F(U32, hold_record, uid),
        F(U64, hold_record, since_real),
        F(U64, hold_record, deadline_real),
        F(U64, hold_record, grace_usec),
        F(U8, hold_record, then),
        F(TEXT, hold_record, boot),
        {},
};

const struct field label_fields[] = {
        F(TEXT, label_record, node),
        F(TEXT, label_record, key),
        F(TEXT, label_record, value),
        {},
};

const struct field window_fields[] = {
        F(TEXT, window_record, node),   F(U64, window_record, from_real), F(U64, window_record, to_real),
        F(TEXT, window_record, reason), F(U32, window_record, uid),       {},
};

const struct field gpu_off_fields[] = {
        F(TEXT, gpu_off_record, node),      F(TEXT, gpu_off_record, uuid),   F(U32, gpu_off_record, uid),
        F(U64, gpu_off_record, since_real), F(TEXT, gpu_off_record, reason), {},
};

const struct field stuck_fields[] = {
        F(TEXT, stuck_record, node),
        F(U32, stuck_record, job),
        F(TEXT, stuck_record, role),
        F(U32, stuck_record, index),
        F(U32, stuck_record, attempt),
        F(FIXED, stuck_record, job_uid),
        F(U64, stuck_record, since_real),
        F(U64, stuck_record, cpu_milli),
        F(U64, stuck_record, memory),
        F(TEXT, stuck_record, gpus),
        F(PORTS, stuck_record, ports),
        F(TEXT, stuck_record, reason),
        F(U64, stuck_record, shm),
        F(BOOL, stuck_record, whole),
        F(TEXT, stuck_record, cpus),
        F(TEXT, stuck_record, amounts),
        {},
};

const struct field verdict_fields[] = {
        F(U32, verdict_record, job),
        F(TEXT, verdict_record, role),
        F(U32, verdict_record, index),
        F(U32, verdict_record, kind),
        F(U32, verdict_record, attempt),
        F(U64, verdict_record, since_real),
        F(U64, verdict_record, begun_real),
        F(U32, verdict_record, action),
        F(U64, verdict_record, acted_real),
        F(TEXT, verdict_record, text),
        {},
};

const struct field avoid_fields[] = { F(U32, avoid_record, job),
                                      F(TEXT, avoid_record, node),
                                      F(BOOL, avoid_record, avoided),
                                      F(U64, avoid_record, allowed_real),
                                      {} };

const struct field token_fields[] = {
        F(FIXED, token_record, id),
        F(FIXED, token_record, secret_hash),
        F(U32, token_record, uses_left),
        F(U64, token_record, expires_real),
        F(TEXT, token_record, from),
        F(U32, token_record, creator),
        F(TEXT, token_record, name),
        F(BOOL, token_record, replace),
        {},
};

const struct field revoked_fields[] = {
        F(TEXT, revoked_record, serial),
        F(TEXT, revoked_record, node),
        F(U64, revoked_record, revoked_real),
        F(U64, revoked_record, not_after_real),
        {},
};

const struct field secret_fields[] = {
        F(U32, secret_record, job),
        F(TEXT, secret_record, name),
        F(BYTES, secret_record, data),
        {},
};

const struct field data_file_fields[] = {
        F(U64, data_file_record, key),   F(U32, data_file_record, source),
        F(U64, data_file_record, file),  F(BYTES, data_file_record, path),
        F(U64, data_file_record, size),  F(U64, data_file_record, mtime_nsec),
        F(U64, data_file_record, inode), F(U64, data_file_record, first),
        F(U64, data_file_record, last),  F(U64, data_file_record, batch),
        F(U64, data_file_record, split), {},
};

const struct field data_source_fields[] = {
        F(U64, data_source_record, key),
        F(U32, data_source_record, source),
        F(BOOL, data_source_record, scanned),
        F(BYTES, data_source_record, cursor),
        F(U64, data_source_record, passed),
        F(TEXT, data_source_record, error),
        {},
};

const struct field data_block_fields[] = {
        F(U32, data_block_record, job),
        F(U64, data_block_record, block),
        F(BYTES, data_block_record, state),
        F(BYTES, data_block_record, over),
        {},
};

const struct field data_task_fields[] = {
        F(U32, data_task_record, job),
        F(U64, data_task_record, task),
        F(U32, data_task_record, source),
        F(U64, data_task_record, file),
        F(U32, data_task_record, epoch),
        F(U64, data_task_record, start),
        F(U64, data_task_record, end),
        F(U64, data_task_record, acked),
        F(U64, data_task_record, skip),
        F(U64, data_task_record, records),
        F(U64, data_task_record, records_before),
        F(U8, data_task_record, state),
        F(U32, data_task_record, failures),
        F(TEXT, data_task_record, error),
        {},
};

const struct field kept_task_fields[] = {
        F(U64, kept_task_record, task),     F(U32, kept_task_record, source),
        F(U32, kept_task_record, epoch),    F(U64, kept_task_record, file),
        F(U64, kept_task_record, start),    F(U64, kept_task_record, end),
        F(U64, kept_task_record, acked),    F(U64, kept_task_record, records),
        F(U32, kept_task_record, failures), F(TEXT, kept_task_record, error),
        F(BYTES, kept_task_record, path),   {},
};

const struct field data_state_fields[] = {
        F(U32, data_state_record, job),
        F(BYTES, data_state_record, state),
        {},
};

const struct field savepoint_fields[] = {
        F(TEXT, savepoint_record, name),
        F(U32, savepoint_record, owner),
        F(U32, savepoint_record, job),
        F(TEXT, savepoint_record, job_name),
        F(U64, savepoint_record, key),
        F(U64, savepoint_record, created_real),
        F(U64, savepoint_record, done),
        F(U64, savepoint_record, acked),
        F(U64, savepoint_record, records),
        F(U64, savepoint_record, partial),
        F(U64, savepoint_record, failed),
        F(TEXT, savepoint_record, bundle),
        F(BYTES, savepoint_record, manifest),
        F(BYTES, savepoint_record, config),
        {},
};

const struct field share_fields[] = {
        F(TEXT, share_record, pool),
        F(U32, share_record, user),
        F(U64, share_record, usage_micro),
        F(U64, share_record, at_real),
        {},
};

const struct field node_event_fields[] = {
        F(TEXT, node_event_record, node),     F(U64, node_event_record, seq),
        F(U64, node_event_record, time_real), F(TEXT, node_event_record, kind),
        F(TEXT, node_event_record, text),     {},
};

const struct field series_fields[] = {
        F(U32, series_record, job),
        F(TEXT, series_record, role),
        F(U64, series_record, at_real),
        F(BYTES, series_record, points),
        {},
};

const struct field trial_fields[] = {
        F(U32, trial_record, job),
        F(U64, trial_record, seq),
        F(U64, trial_record, time_real),
        F(U8, trial_record, kind),
        F(U32, trial_record, trial),
        F(U64, trial_record, step),
        F(U64, trial_record, metric),
        F(U8, trial_record, exit),
        F(U8, trial_record, verdict),
        F(TEXT, trial_record, given),
        {},
};

const struct field checkpoint_fields[] = {
        F(U64, checkpoint_record, id),         F(U32, checkpoint_record, owner),
        F(U32, checkpoint_record, job),        F(U32, checkpoint_record, run),
        F(U32, checkpoint_record, trial),      F(U64, checkpoint_record, step),
        F(U64, checkpoint_record, saved_real), F(U64, checkpoint_record, bytes),
        F(U32, checkpoint_record, files),      F(TEXT, checkpoint_record, path),
        F(TEXT, checkpoint_record, host),      F(TEXT, checkpoint_record, metrics),
        F(TEXT, checkpoint_record, metric),    F(U64, checkpoint_record, value),
        F(BOOL, checkpoint_record, smaller),   F(BOOL, checkpoint_record, pinned),
        F(BOOL, checkpoint_record, marked),    {},
};
const struct field model_fields[] = {
        F(U32, model_record, owner),     F(TEXT, model_record, name),
        F(U32, model_record, version),   F(U64, model_record, checkpoint),
        F(TEXT, model_record, path),     F(TEXT, model_record, host),
        F(TEXT, model_record, metric),   F(U64, model_record, value),
        F(U64, model_record, step),      F(U64, model_record, registered_real),
        F(TEXT, model_record, note),     F(TEXT, model_record, labels),
        F(BOOL, model_record, archived), {},
};
const struct field provider_fields[] = {
        F(TEXT, provider_record, name),
        F(U64, provider_record, last),
        F(BOOL, provider_record, held),
        {},
};
const struct field instance_fields[] = {
        F(TEXT, instance_record, token),
        F(TEXT, instance_record, provider),
        F(TEXT, instance_record, shape),
        F(TEXT, instance_record, node),
        F(TEXT, instance_record, id),
        F(U8, instance_record, state),
        F(U32, instance_record, job),
        F(U64, instance_record, made_real),
        F(U64, instance_record, since_real),
        F(U64, instance_record, ready_real),
        F(BOOL, instance_record, held),
        F(BOOL, instance_record, woken),
        F(BOOL, instance_record, leaves),
        F(TEXT, instance_record, reason),
        {},
};
/* Of a record of which the key alone counts. */
static const struct field checkpoint_id_fields[] = { F(U64, checkpoint_record, id), {} };

const struct field metric_fields[] = {
        F(U32, metric_record, job),   F(TEXT, metric_record, role),    F(U32, metric_record, index),
        F(U32, metric_record, local), F(BYTES, metric_record, points), {},
};

const struct field submit_key_fields[] = {
        F(U32, submit_key_record, user),     F(TEXT, submit_key_record, key),
        F(FIXED, submit_key_record, digest), F(U32, submit_key_record, job),
        F(U64, submit_key_record, at_real),  {},
};

const struct field change_fields[] = {
        F(U32, change_record, job),      F(U64, change_record, version),
        F(U32, change_record, uid),      F(U64, change_record, at_real),
        F(TEXT, change_record, text),    F(BYTES, change_record, before),
        F(BYTES, change_record, config), {},
};

const struct field cut_fields[] = {
        F(U32, cut_record, job),  F(U64, cut_record, version), F(TEXT, cut_record, role),
        F(U32, cut_record, from), F(U32, cut_record, attempt), {},
};

static const struct field data_key_fields[] = { F(U32, data_key_row, job), F(U64, data_key_row, id), {} };
static const struct field copy_fields[] = { F(U64, copy_row, from), F(U64, copy_row, to), {} };
const struct field scope_fields[] = {
        F(U32, scope_record, job),
        F(TEXT, scope_record, role),
        C(scope_record, state, scope_state_codec),
        {},
};

const struct field blame_fields[] = {
        F(TEXT, blame_record, node),
        C(blame_record, state, blame_state_codec),
        {},
};

static const struct field savepoint_key_fields[] = {
        F(U64, savepoint_key_row, key),
        F(TEXT, savepoint_key_row, name),
        {},
};
static const struct field meta_fields[] = { F(TEXT, meta_row, key), F(BYTES, meta_row, value), {} };
static const struct field key_job_fields[] = { F(U32, key_row, job), {} };
static const struct field key_name_fields[] = { F(TEXT, key_row, name), {} };
static const struct field key_id_fields[] = { F(FIXED, key_row, id), {} };
static const struct field prune_fields[] = {
        F(U64, prune_row, older_than_real),
        F(U32, prune_row, keep_newest),
        F(U64, prune_row, now_real),
        F(U64, prune_row, keep_bytes),
        {},
};

/* The jobs that one prune takes, in a table of the connection's own (sqlite.c). An array ends behind its
 * elements and goes with them, since its body is theirs. */
#define PRUNED_WHOLE "(SELECT number FROM temp.doomed)"
#define PRUNED                                                                                               \
        "(SELECT number FROM temp.doomed"                                                                    \
        " UNION ALL SELECT number FROM job WHERE array > 0 AND array IN temp.doomed)"

/* Ended before ?1, behind the ?2 newest, oldest first, at most 200. */
#define DOOM_OLD                                                                                             \
        "INSERT INTO temp.doomed SELECT number FROM job WHERE ended > 0 AND ended < ?1 AND array = 0"        \
        " AND number NOT IN (SELECT number FROM job WHERE array = 0 ORDER BY number DESC LIMIT ?2)"          \
        " ORDER BY number LIMIT 200"

/* That one, when it has ended; an element goes with its array. */
#define DOOM_ONE                                                                                             \
        "INSERT INTO temp.doomed SELECT number FROM job WHERE number = ?1 AND ended > 0 AND array = 0"

/* Where the database has more than ?4 bytes in use: of the owner whose ended jobs take most, so that nobody's
 * history gives way to another's, the oldest until it is enough, 32 MiB at a time. Not those that ended
 * within the last minute, of which something may still be recorded. */
#define OVER "job WHERE ended > 0 AND ended < ?3 - 60000000 AND array = 0 AND " STORE_BYTES_USED " > ?4"
#define BODY_SIZE                                                                                            \
        "((SELECT length(config) + length(env) + length(warnings) FROM job_body WHERE number = job.number)"  \
        " + ifnull((SELECT sum(length(points)) FROM series WHERE job = job.number), 0)"                      \
        " + ifnull((SELECT sum(length(points)) FROM metric WHERE job = job.number), 0)"                      \
        " + ifnull((SELECT 64 * max(seq) + sum(length(given)) FROM trial WHERE job = job.number), 0))"
#define DOOM_LARGE                                                                                           \
        "INSERT OR IGNORE INTO temp.doomed SELECT number FROM"                                               \
        " (SELECT number, sum(size) OVER (ORDER BY number) - size AS before FROM"                            \
        "  (SELECT number, 4096 + " BODY_SIZE " AS size FROM " OVER                                          \
        "   AND owner = (SELECT owner FROM " OVER "    GROUP BY owner ORDER BY sum(4096 + " BODY_SIZE        \
        ") DESC LIMIT 1)))"                                                                                  \
        " WHERE before < min(" STORE_BYTES_USED " - ?4, 33554432) ORDER BY number LIMIT 1000"

/* All of those jobs but their savepoints. Run again, it finds nothing more to add. */
#define FORGET_DOOMED                                                                                        \
        "INSERT INTO usage(day, owner, pool, job, role, cpu_held, cpu_used, memory_held,"                    \
        " gpu_held, attempts, unmeasured, gpu_used, gpu_measured)"                                           \
        " SELECT day, owner, pool, 0, '', sum(cpu_held), sum(cpu_used), sum(memory_held),"                   \
        " sum(gpu_held), sum(attempts), sum(unmeasured), sum(gpu_used),"                                     \
        " sum(gpu_measured) FROM usage WHERE job "                                                           \
        "IN " PRUNED_WHOLE " GROUP BY day, owner, pool ON CONFLICT DO UPDATE SET"                            \
        " cpu_held = cpu_held + excluded.cpu_held, cpu_used = cpu_used + excluded.cpu_used,"                 \
        " memory_held = memory_held + excluded.memory_held,"                                                 \
        " gpu_held = gpu_held + excluded.gpu_held, attempts = attempts + excluded.attempts,"                 \
        " unmeasured = unmeasured + excluded.unmeasured, gpu_used = gpu_used + "                             \
        "excluded.gpu_used,"                                                                                 \
        " gpu_measured = gpu_measured + excluded.gpu_measured",                                              \
                "DELETE FROM usage WHERE job IN " PRUNED_WHOLE,                                              \
                "DELETE FROM job_body WHERE number IN " PRUNED, "DELETE FROM executor WHERE job IN " PRUNED, \
                "DELETE FROM event WHERE job IN " PRUNED, "DELETE FROM source WHERE job IN " PRUNED,         \
                "DELETE FROM task WHERE job IN " PRUNED, "DELETE FROM secret WHERE job IN " PRUNED,          \
                "DELETE FROM file WHERE job IN " PRUNED, "DELETE FROM block WHERE job IN " PRUNED,           \
                "DELETE FROM data WHERE job IN " PRUNED, "DELETE FROM scope WHERE job IN " PRUNED,           \
                "DELETE FROM change WHERE job IN " PRUNED, "DELETE FROM change_cut WHERE job IN " PRUNED,    \
                "DELETE FROM job_avoid WHERE job IN " PRUNED, "DELETE FROM verdict WHERE job IN " PRUNED,    \
                "DELETE FROM series WHERE job IN " PRUNED, "DELETE FROM trial WHERE job IN " PRUNED,         \
                "DELETE FROM metric WHERE job IN " PRUNED, "DELETE FROM job WHERE number IN " PRUNED

const struct op_definition op_definitions[_OP_MAX] = {
        [OP_PUT_JOB] = { sizeof(struct job_record),
                         job_fields,
                         { "INSERT INTO job(number, uid, owner, name, state, attempt, submitted, started, "
                           "ended, reason,"
                           " first_error, state_data, array, idx)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
                           " ON CONFLICT(number) DO UPDATE SET uid = ?2, owner = ?3, name = ?4, state = ?5, "
                           "attempt = ?6,"
                           " submitted = ?7, started = ?8, ended = ?9, reason = ?10, first_error = ?11,"
                           " state_data = ?12, array = ?13, idx = ?14" } },
        [OP_PUT_JOB_BODY] = { sizeof(struct body_row),
                              body_row_fields,
                              { "INSERT OR REPLACE INTO job_body(config, cwd, env, warnings, bundle, number)"
                                " VALUES (?1, ?2, ?3, ?4, ?5, ?6)" } },
        [OP_LAST_JOB] = { sizeof(struct key_row),
                          key_job_fields,
                          { "INSERT INTO counter(name, value) VALUES ('last_job', ?1)"
                            " ON CONFLICT(name) DO UPDATE SET value = max(value, ?1)" } },
        [OP_PUT_EXECUTOR] = { sizeof(struct executor_record),
                              executor_fields,
                              { "INSERT OR REPLACE INTO executor(job, role, idx, attempt, state, node, rank, "
                                "ports, gpus,"
                                " invocation, epoch, placed, started, ended, result, status, "
                                "stop_requested,"
                                " memory_peak, cpu, io_read, io_write, reason, cpus, fate, memory)"
                                " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
                                "?16, ?17, ?18,"
                                " ?19, ?20, ?21, ?22, ?23, ?24, ?25)" } },
        [OP_PUT_EVENT] = { sizeof(struct event_record),
                           event_fields,
                           { "INSERT OR REPLACE INTO event(job, seq, time, kind, role, idx, text)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)" } },
        [OP_PUT_USAGE] = { sizeof(struct usage_record),
                           usage_fields,
                           { "INSERT OR REPLACE INTO usage(day, owner, pool, job, role, cpu_held, cpu_used, "
                             "memory_held, gpu_held, attempts, unmeasured, gpu_used, gpu_measured)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)" } },
        [OP_PUT_NODE] = { sizeof(struct node_record),
                          node_fields,
                          { "INSERT OR REPLACE INTO node(name, serial, epoch, boot_id, state, address, cpus, "
                            "memory,"
                            " joined, seen, joined_from, joined_by, taken_over, port_first, port_last, gpus)"
                            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)" } },
        [OP_PUT_HOLD] = { sizeof(struct hold_record),
                          hold_fields,
                          { "INSERT OR REPLACE INTO node_hold(node, cause, drain, reason, uid, since, "
                            "deadline, grace, behind, boot)"
                            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)" } },
        [OP_PUT_LABEL] = { sizeof(struct label_record),
                           label_fields,
                           { "INSERT OR REPLACE INTO node_label(node, key, value) VALUES (?1, ?2, ?3)" } },
        [OP_PUT_WINDOW] = { sizeof(struct window_record),
                            window_fields,
                            { "INSERT OR REPLACE INTO node_window(node, start, stop, reason, uid)"
                              " VALUES (?1, ?2, ?3, ?4, ?5)" } },
        [OP_PUT_GPU_OFF] = { sizeof(struct gpu_off_record),
                             gpu_off_fields,
                             { "INSERT OR REPLACE INTO gpu_off(node, uuid, uid, since, reason)"
                               " VALUES (?1, ?2, ?3, ?4, ?5)" } },
        [OP_PUT_STUCK] = { sizeof(struct stuck_record),
                           stuck_fields,
                           { "INSERT OR REPLACE INTO stuck(node, job, role, idx, attempt, uid, since, cpu, "
                             "memory, gpus, ports, reason, shm, whole, cpus, amounts)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
                             "?16)" } },
        [OP_PUT_AVOID] = { sizeof(struct avoid_record),
                           avoid_fields,
                           { "INSERT OR REPLACE INTO job_avoid(job, node, avoided, allowed) VALUES (?1, "
                             "?2, ?3, ?4)" } },
        [OP_PUT_VERDICT] = { sizeof(struct verdict_record),
                             verdict_fields,
                             { "INSERT OR REPLACE INTO verdict(job, role, idx, kind, attempt, since, begun, "
                               "action, acted, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)" } },
        [OP_DELETE_VERDICT] = { sizeof(struct verdict_record),
                                verdict_fields,
                                { "DELETE FROM verdict WHERE job = ?1 AND role = ?2 AND idx = ?3 AND kind = "
                                  "?4" } },
        [OP_DELETE_HOLD] = { sizeof(struct hold_record),
                             hold_fields,
                             { "DELETE FROM node_hold WHERE node = ?1 AND cause = ?2" } },
        [OP_DELETE_LABEL] = { sizeof(struct label_record),
                              label_fields,
                              { "DELETE FROM node_label WHERE node = ?1 AND key = ?2" } },
        [OP_DELETE_WINDOW] = { sizeof(struct window_record),
                               window_fields,
                               { "DELETE FROM node_window WHERE node = ?1 AND start = ?2" } },
        [OP_DELETE_GPU_OFF] = { sizeof(struct gpu_off_record),
                                gpu_off_fields,
                                { "DELETE FROM gpu_off WHERE node = ?1 AND uuid = ?2" } },
        [OP_DELETE_STUCK] = { sizeof(struct stuck_record),
                              stuck_fields,
                              { "DELETE FROM stuck WHERE node = ?1 AND job = ?2 AND role = ?3 AND idx = ?4"
                                " AND attempt = ?5" } },
        [OP_PUT_TOKEN] = { sizeof(struct token_record),
                           token_fields,
                           { "INSERT OR REPLACE INTO token(id, secret_hash, uses_left, expires, source, "
                             "creator, name, \"replace\")"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)" } },
        [OP_PUT_REVOKED] = { sizeof(struct revoked_record),
                             revoked_fields,
                             { "INSERT OR REPLACE INTO revoked(serial, node, revoked, not_after)"
                               " VALUES (?1, ?2, ?3, ?4)" } },
        [OP_PUT_SECRET] = { sizeof(struct secret_record),
                            secret_fields,
                            { "INSERT OR REPLACE INTO secret(job, name, data) VALUES (?1, ?2, ?3)" } },
        [OP_PUT_DATA_FILE] = { sizeof(struct data_file_record),
                               data_file_fields,
                               { "INSERT OR REPLACE INTO file(job, source, file, path, size, mtime, inode, "
                                 "first, last, batch, split)"
                                 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)" } },
        [OP_PUT_DATA_SOURCE] = { sizeof(struct data_source_record),
                                 data_source_fields,
                                 { "INSERT OR REPLACE INTO source(job, source, scanned, cursor, passed, "
                                   "error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)" } },
        [OP_PUT_DATA_BLOCK] = { sizeof(struct data_block_record),
                                data_block_fields,
                                { "INSERT OR REPLACE INTO block(job, block, state, finished)"
                                  " VALUES (?1, ?2, ?3, ?4)" } },
        [OP_PUT_DATA_TASK] = { sizeof(struct data_task_record),
                               data_task_fields,
                               { "INSERT OR REPLACE INTO task(job, task, source, file, epoch, start, stop, "
                                 "acked, skip, records, records_before, state, failures, error)"
                                 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)" } },
        [OP_PUT_DATA_STATE] = { sizeof(struct data_state_record),
                                data_state_fields,
                                { "INSERT OR REPLACE INTO data(job, state) VALUES (?1, ?2)" } },
        [OP_PUT_SAVEPOINT] = { sizeof(struct savepoint_record),
                               savepoint_fields,
                               { "INSERT OR REPLACE INTO savepoint(name, owner, job, job_name, key, created, "
                                 "done, acked, records, partial, failed, bundle, manifest, config)"
                                 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                                 "INSERT INTO counter(name, value) VALUES ('last_savepoint', ?5)"
                                 " ON CONFLICT(name) DO UPDATE SET value = max(value, ?5)" } },
        [OP_PUT_SCOPE] = { sizeof(struct scope_record),
                           scope_fields,
                           { "INSERT OR REPLACE INTO scope(job, role, state) VALUES (?1, ?2, ?3)" } },
        [OP_PUT_BLAME] = { sizeof(struct blame_record),
                           blame_fields,
                           { "INSERT OR REPLACE INTO blame(node, state) VALUES (?1, ?2)" } },
        [OP_PUT_SHARE] = { sizeof(struct share_record),
                           share_fields,
                           { "INSERT OR REPLACE INTO share(pool, user, usage, at) VALUES (?1, ?2, ?3, "
                             "?4)" } },
        [OP_PUT_NODE_EVENT] = { sizeof(struct node_event_record),
                                node_event_fields,
                                { "INSERT OR REPLACE INTO node_event(node, seq, time, kind, text)"
                                  " VALUES (?1, ?2, ?3, ?4, ?5)",
                                  "DELETE FROM node_event WHERE node = ?1 AND seq <= ?2 - 1000" } }, /* STORE_NODE_EVENTS
                                                                                                      */
        [OP_PUT_SERIES] = { sizeof(struct series_record),
                            series_fields,
                            { "INSERT OR REPLACE INTO series(job, role, at, points)"
                              " VALUES (?1, ?2, ?3, ?4)" } },
        [OP_PUT_TRIAL] = { sizeof(struct trial_record),
                           trial_fields,
                           { "INSERT OR REPLACE INTO trial(job, seq, time, kind, trial, step, metric, exit, verdict, given)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)" } },
        [OP_PUT_CHECKPOINT] = { sizeof(struct checkpoint_record),
                                checkpoint_fields,
                                { "INSERT OR REPLACE INTO checkpoint(id, owner, job, run, trial, step, saved, bytes, files,"
                                  " path, host, metrics, metric, value, smaller, pinned, marked)"
                                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)" } },
        [OP_DELETE_CHECKPOINT] = { sizeof(struct checkpoint_record),
                                   checkpoint_id_fields,
                                   { "DELETE FROM checkpoint WHERE id = ?1" } },
        [OP_PUT_MODEL] = { sizeof(struct model_record),
                           model_fields,
                           { "INSERT OR REPLACE INTO model(owner, name, version, checkpoint, path, host, metric, value, step,"
                             " registered, note, labels, archived)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)" } },
        [OP_PUT_PROVIDER] = { sizeof(struct provider_record),
                              provider_fields,
                              { "INSERT OR REPLACE INTO provider(name, last, held) VALUES (?1, ?2, ?3)" } },
        [OP_PUT_INSTANCE] = { sizeof(struct instance_record),
                              instance_fields,
                              { "INSERT OR REPLACE INTO instance(token, provider, shape, node, id, state, job, made, since,"
                                " ready, held, woken, leaves, reason)"
                                " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)" } },
        [OP_DELETE_INSTANCE] = { sizeof(struct instance_record),
                                 instance_fields,
                                 { "DELETE FROM instance WHERE token = ?1" } },
        [OP_PUT_METRIC] = { sizeof(struct metric_record),
                            metric_fields,
                            { "INSERT OR REPLACE INTO metric(job, role, idx, local, points)"
                              " VALUES (?1, ?2, ?3, ?4, ?5)" } },
        [OP_PUT_SUBMIT_KEY] = { sizeof(struct submit_key_record),
                                submit_key_fields,
                                { "INSERT OR REPLACE INTO submit_key(user, key, digest, job, at)"
                                  " VALUES (?1, ?2, ?3, ?4, ?5)" } },
        [OP_PUT_CHANGE] = { sizeof(struct change_record),
                            change_fields,
                            { "INSERT OR REPLACE INTO change(job, version, user, at, text, before)"
                              " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                              "UPDATE job_body SET config = ?7 WHERE number = ?1" } },
        [OP_PUT_CUT] = { sizeof(struct cut_record),
                         cut_fields,
                         { "INSERT OR REPLACE INTO change_cut(job, version, role, first, attempt)"
                           " VALUES (?1, ?2, ?3, ?4, ?5)" } },
        [OP_DELETE_DATA_BLOCK] = { sizeof(struct data_key_row),
                                   data_key_fields,
                                   { "DELETE FROM block WHERE job = ?1 AND block = ?2" } },
        [OP_DELETE_DATA_TASK] = { sizeof(struct data_key_row),
                                  data_key_fields,
                                  { "DELETE FROM task WHERE job = ?1 AND task = ?2" } },
        [OP_TRIM_DATA] = { sizeof(struct key_row),
                           key_job_fields,
                           { "DELETE FROM block WHERE job = ?1",
                             "DELETE FROM task WHERE job = ?1 AND error = ''",
                             "DELETE FROM file WHERE job = ?1 AND (source, file) NOT IN"
                             " (SELECT source, file FROM task WHERE job = ?1)" } },
        [OP_COPY_FILES] = { sizeof(struct copy_row),
                            copy_fields,
                            { "INSERT OR REPLACE INTO file(job, source, file, path, size, mtime, inode, "
                              "first, last, batch, split)"
                              " SELECT ?2, source, file, path, size, mtime, inode, first, last, batch, split"
                              " FROM file WHERE job = ?1",
                              "INSERT OR REPLACE INTO source(job, source, scanned, cursor, passed, error)"
                              " SELECT ?2, source, scanned, cursor, passed, error FROM source"
                              " WHERE job = ?1" } },
        [OP_DELETE_SAVEPOINT] = { sizeof(struct savepoint_key_row),
                                  savepoint_key_fields,
                                  { "DELETE FROM savepoint WHERE name = ?2",
                                    "DELETE FROM file WHERE job = ?1",
                                    "DELETE FROM source WHERE job = ?1" } },
        [OP_SET_META] = { sizeof(struct meta_row),
                          meta_fields,
                          { "INSERT OR REPLACE INTO meta(key, value) VALUES (?1, ?2)" } },
        [OP_DELETE_JOB] = { sizeof(struct key_row),
                            key_job_fields,
                            { "DELETE FROM job_body WHERE number = ?1", "DELETE FROM executor WHERE job = ?1",
                              "DELETE FROM event WHERE job = ?1", "DELETE FROM source WHERE job = ?1",
                              "DELETE FROM task WHERE job = ?1", "DELETE FROM secret WHERE job = ?1",
                              "DELETE FROM file WHERE job = ?1", "DELETE FROM block WHERE job = ?1",
                              "DELETE FROM data WHERE job = ?1", "DELETE FROM change WHERE job = ?1",
                              "DELETE FROM change_cut WHERE job = ?1", "DELETE FROM job_avoid WHERE job = ?1",
                              "DELETE FROM scope WHERE job = ?1", "DELETE FROM verdict WHERE job = ?1",
                              "DELETE FROM series WHERE job = ?1", "DELETE FROM trial WHERE job = ?1",
                              "DELETE FROM metric WHERE job = ?1", "DELETE FROM job WHERE number = ?1" } },
        [OP_DELETE_SECRETS] = { sizeof(struct key_row),
                                key_job_fields,
                                { "DELETE FROM secret WHERE job = ?1",
                                  "UPDATE job_body SET env = x'' WHERE number = ?1" } },
        [OP_DELETE_NODE] = { sizeof(struct key_row),
                             key_name_fields,
                             { "DELETE FROM node WHERE name = ?1", "DELETE FROM node_hold WHERE node = ?1",
                               "DELETE FROM node_label WHERE node = ?1",
                               "DELETE FROM node_window WHERE node = ?1", "DELETE FROM stuck WHERE node = ?1",
                               "DELETE FROM gpu_off WHERE node = ?1", "DELETE FROM blame WHERE node = ?1",
                               "DELETE FROM node_event WHERE node = ?1" } },
        [OP_DELETE_TOKEN] = { sizeof(struct key_row), key_id_fields, { "DELETE FROM token WHERE id = ?1" } },
        [OP_PRUNE] = { sizeof(struct prune_row),
                       prune_fields,
                       { "DELETE FROM revoked WHERE not_after < ?3", "DELETE FROM token WHERE expires < ?3",
                         "DELETE FROM submit_key WHERE at < ?3 - 86400000000", /* STORE_KEY_USEC */
                         "DELETE FROM temp.doomed", DOOM_OLD, DOOM_LARGE, FORGET_DOOMED } },
        [OP_FORGET_JOB] = { sizeof(struct key_row),
                            key_job_fields,
                            { "DELETE FROM temp.doomed", DOOM_ONE, FORGET_DOOMED } },
};
