/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd keeps on disk, in domain records. Rule of use: record, then act.
 *
 *     store_put_executor(s, &executor);          // any number of records of one step
 *     store_put_event(s, &event);
 *     r = store_commit(s, send_start_order, order);   // ends the batch
 *
 * Nothing here blocks: a thread of the store owns the database; what gathers while it waits for the disk is
 * its next transaction. The effect is called from the event loop once the batch (and all before it) is
 * durable, in the order of store_commit(). A batch is written entirely or not at all.
 *
 * Records passed in are copied, also everything they point to. Records passed to callbacks are valid during
 * the call only. A string that is NULL is stored as "". Times are CLOCK_REALTIME microseconds, 0: not yet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#define STORE_PORTS_MAX 64u
#define STORE_FAILURES_MAX 12u
#define STORE_STRIKES_MAX 32u
#define STORE_SHUNS_MAX 16u
#define STORE_JOB_NONE 0u /* as the job of an event: one of the cluster */

struct store;

/* Bytes that need not be text. */
struct store_bytes {
        const void *data;
        size_t size;
};

/* A copy with a NUL behind it, allocated; NULL: no memory. (No NUL need follow what the store hands out, so
 * strndup() may look behind its end.) */
char *store_bytes_text(const struct store_bytes *b);

/* The large part of a job, written once. */
struct job_body_record {
        struct store_bytes config;   /* effective configuration, JSON */
        struct store_bytes cwd;      /* path, or empty */
        struct store_bytes env;      /* NAME=VALUE, each ended by NUL */
        struct store_bytes warnings; /* one line each, ended by \n */
        const char *bundle;          /* sha256 in hex, or "" */
};

/* What the machine of a job needs beyond its columns. Stored by its table in states.c: a new field is one
 * more member here, and a row there. */
struct job_state_record {
        uint8_t verdict; /* enum job_event */
        bool saving, requeueing;
        bool had_env, had_secrets;
        uint8_t leave_why; /* enum requeue_cause */
        uint32_t order_step;
        uint32_t requeues, asked;
        uint32_t leave_for;
        uint32_t array_since;
        uint64_t attempt_real;
        uint64_t slot_real, waits_real, not_before_real, leave_real;
        uint64_t placeable_real; /* masterd/queue/start-within.h */
        uint64_t after_met;
        /* changes while it runs */
        uint64_t limits_real;
        uint64_t epoch, membership; /* masterd/life/epochs.h */
        uint64_t rolling_real;      /* masterd/life/rolling.h */
        uint32_t rolling_batch, rolling_index;
        char rolling_role[33];
        uint8_t held_mode; /* masterd/life/suspension.h */
        uint32_t held_by;
        uint64_t held_real, froze_real;
        uint64_t kill_grace;
        uint8_t kill_status;
        uint32_t parent;
        bool with_parent;
};

struct job_record {
        uint32_t number;
        sd_id128_t uid;
        uint32_t owner; /* uid of the submitter */
        const char *name;
        uint8_t state; /* the job machine's enum */
        uint32_t attempt;
        uint64_t submitted_real, started_real;
        uint64_t ended_real; /* 0: the job is active */
        const char *reason;
        const char *first_error;
        struct job_state_record machine;
        uint32_t array; /* it is an element of that job, whose body is its own too; 0: of none */
        uint32_t index; /* in the array */
        /* put: NULL leaves what is stored; loaded: NULL where not asked for */
        const struct job_body_record *body;
        uint64_t last_event; /* loaded only: highest event number, 0: none */
};

struct executor_record {
        uint32_t job;
        const char *role;
        uint32_t index, attempt;
        uint8_t state; /* the executor machine's enum */
        const char *node;
        uint32_t rank;
        uint16_t ports[STORE_PORTS_MAX];
        uint32_t n_ports;
        const char *gpus; /* uuids, space-separated */
        const char *cpus; /* its own, "0-3,8" */
        sd_id128_t invocation;
        uint64_t epoch; /* of the host, under which it was ordered */
        uint64_t placed_real, started_real, ended_real;
        const char *result; /* as struct exit_report */
        int32_t status;
        bool stop_requested;
        uint64_t memory_peak, cpu_usec, io_read, io_write; /* UINT64_MAX: not known */
        const char *reason;                                /* one line for people: why it ended */
        uint8_t fate;    /* what its end counts as, where its exit does not say it; enum fate */
        uint64_t memory; /* bytes it had, where that was not what its role says; else 0 */
};

struct event_record {
        uint32_t job;
        uint64_t seq; /* counts up from 1 within the job; the caller counts */
        uint64_t time_real;
        const char *kind; /* "executor-failed" ... */
        const char *role; /* "": the job */
        uint32_t index;
        const char *text;
};

/* An element of an array that was made. One index may have been made several times; the latest counts. */
struct element_record {
        uint32_t array, index, job;
        uint8_t state;
};

/* What executors of a role that have ended held and used on one day (UTC). */
struct usage_record {
        uint32_t day; /* since 1970 */
        uint32_t owner;
        const char *pool;
        uint32_t job; /* 0: jobs that were deleted since */
        const char *role;
        uint64_t cpu_held;     /* microseconds of a core */
        uint64_t cpu_used;     /* the same; of attempts that ended on that day */
        uint64_t memory_held;  /* MiB times milliseconds */
        uint64_t gpu_held;     /* microseconds of a GPU */
        uint64_t attempts;     /* that ended on that day */
        uint64_t unmeasured;   /* of these: what they used is not known */
        uint64_t gpu_used;     /* microseconds of a GPU, busy; of attempts that ended on that day */
        uint64_t gpu_measured; /* attempts of which that is known */
};

struct node_record {
        const char *name;
        const char *serial; /* of its certificate, hex */
        uint64_t epoch;
        const char *boot_id;
        uint8_t state;       /* the registry's enum */
        const char *address; /* addr_format() */
        uint32_t cpus;
        uint64_t memory;
        uint64_t joined_real, seen_real;
        const char *joined_from; /* addr_format(), or "" */
        uint32_t joined_by;      /* uid of the token's creator */
        bool taken_over;         /* by that join, from one whose certificate was good */
        /* So that what executors hold can be told before the agent registers again. */
        uint32_t port_first, port_last;
        const char *gpus; /* uuids, space-separated, in the order of the inventory */
};

/* What happened to a host. */
#define STORE_NODE_EVENTS 1000u /* of one that are kept */
struct node_event_record {
        const char *node;
        uint64_t seq; /* counts up from 1; the caller counts */
        uint64_t time_real;
        const char *kind, *text;
};

/* Why a host takes nothing new; masterd/node/hold.h says what the fields mean. */
struct hold_record {
        const char *node;
        uint8_t cause;
        bool drain;
        const char *reason;
        uint32_t uid;
        uint64_t since_real, deadline_real, grace_usec;
        uint8_t then;
        const char *boot;
};

struct label_record {
        const char *node, *key, *value;
};

struct window_record {
        const char *node;
        uint64_t from_real, to_real;
        const char *reason;
        uint32_t uid;
};

/* A GPU that a person took out of use. */
struct gpu_off_record {
        const char *node, *uuid;
        uint32_t uid;
        uint64_t since_real;
        const char *reason;
};

/* An attempt that is over for its job, but holds its place, because its processes do not die. */
struct stuck_record {
        const char *node;
        uint32_t job;
        const char *role;
        uint32_t index, attempt;
        sd_id128_t job_uid;
        uint64_t since_real;
        uint64_t cpu_milli, memory;
        const char *gpus; /* uuids, space-separated */
        uint16_t ports[STORE_PORTS_MAX];
        uint32_t n_ports;
        const char *reason;
        uint64_t shm;
        bool whole;
        const char *cpus;    /* its own, "0-3,8" */
        const char *amounts; /* of licences, "NAME=N NAME=N" */
};

/* The job is not placed on the host; or it may be again, whatever happened there until then. */
struct avoid_record {
        uint32_t job;
        const char *node;
        bool avoided;
        uint64_t allowed_real; /* 0: nothing is forgotten */
};

/* A verdict about an executor (or, role "", all of the job) that stands. */
struct verdict_record {
        uint32_t job;
        const char *role;
        uint32_t index, kind; /* enum verdict_kind */
        uint32_t attempt;     /* of the executor, or the job, that it is about */
        uint64_t since_real;  /* that what it is about began */
        uint64_t begun_real;  /* that it was found */
        uint32_t action;      /* enum health_action */
        uint64_t acted_real;  /* 0: not yet, or there is nothing to do */
        const char *text;
};

/* Of executors that are started again together, or whose failures are counted together. */
struct failure_record {
        uint64_t real;
        uint32_t n; /* failures that this time stands for */
};
struct history_record {
        struct failure_record failures[STORE_FAILURES_MAX]; /* oldest first */
        uint32_t n_failures, consecutive;
};
struct scope_state_record {
        uint32_t restarts;
        uint64_t real, due_real, regroup_real;
        struct history_record history, budget;
};
struct scope_record {
        uint32_t job;
        const char *role; /* "": the job's */
        struct scope_state_record state;
};

/* What a host is blamed for; masterd/node/blame.h says what the fields mean. */
struct strike_record {
        uint64_t real;
        uint32_t job, user;
        uint8_t kind; /* enum strike_kind */
        bool alone;
};
struct shun_record {
        uint32_t user, times;
        uint64_t until_real;
};
struct blame_state_record {
        uint32_t state; /* enum blame_state */
        uint32_t times;
        uint64_t since_real, until_real;
        struct strike_record strikes[STORE_STRIKES_MAX]; /* oldest first */
        struct shun_record shuns[STORE_SHUNS_MAX];
        uint32_t n_strikes, n_shuns;
};
struct blame_record {
        const char *node;
        struct blame_state_record state;
};

struct token_record {
        uint8_t id[8];
        uint8_t secret_hash[32];
        uint32_t uses_left;
        uint64_t expires_real;
        const char *from; /* CIDR, or "" */
        uint32_t creator; /* uid */
        const char *name; /* of the one node that it is for, or "" */
        bool replace;     /* that one may be there already */
};

struct revoked_record {
        const char *serial; /* hex */
        const char *node;
        uint64_t revoked_real,
                not_after_real; /* forgotten by store_prune() when the certificate has expired */
};

/* ---- data of a job; what the fields mean: masterd/data/data.h ---- */

/* A file as listed. Files belong to a job, or to a savepoint (store_next_savepoint()). */
struct data_file_record {
        uint64_t key; /* number of the job, or key of the savepoint */
        uint32_t source;
        uint64_t file; /* counts up from 0 within the source, in the order of listing */
        struct store_bytes path;
        uint64_t size, mtime_nsec, inode, first, last, batch, split;
};

/* How far a source is listed. */
struct data_source_record {
        uint64_t key; /* as a file's */
        uint32_t source;
        bool scanned;              /* complete */
        struct store_bytes cursor; /* of the scan */
        uint64_t passed;           /* what is still to come is of this batch or later */
        const char *error;
};

/* A block of tasks that is not over. */
struct data_block_record {
        uint32_t job;
        uint64_t block;
        struct store_bytes state, over;
};

/* A task that is neither done nor untouched. */
struct data_task_record {
        uint32_t job;
        uint64_t task;
        uint32_t source;
        uint64_t file;
        uint32_t epoch;
        uint64_t start, end, acked, skip, records, records_before;
        uint8_t state; /* the data's enum */
        uint32_t failures;
        const char *error;
};

/* The same, with the path of its file; what cannot be told of a task that is over is left out. */
struct kept_task_record {
        uint64_t task;
        uint32_t source, epoch;
        uint64_t file, start, end, acked, records;
        uint32_t failures;
        const char *error;
        struct store_bytes path;
};

struct data_state_record {
        uint32_t job;
        struct store_bytes state;
};

struct savepoint_record {
        const char *name;
        uint32_t owner; /* uid */
        uint32_t job;
        const char *job_name;
        uint64_t key; /* of its files and sources */
        uint64_t created_real;
        uint64_t done, acked, records, partial, failed;
        const char *bundle;                  /* files of the job: sha256 in hex, or "" */
        struct store_bytes manifest, config; /* both JSON; empty where not asked for */
};

/* What a user has used of the cluster in a pool, decayed. */
struct share_record {
        const char *pool;
        uint32_t user;        /* UINT32_MAX: all of the pool */
        uint64_t usage_micro; /* millionths of the policy's unit */
        uint64_t at_real;     /* as of then */
};

/* What a user submitted under a key of his own. */
#define STORE_DIGEST_BYTES 32u
#define STORE_KEY_USEC UINT64_C(86400000000) /* so long it is kept */
struct submit_key_record {
        uint32_t user;
        const char *key;
        uint8_t digest[STORE_DIGEST_BYTES]; /* SHA-256 of what was submitted */
        uint32_t job;
        uint64_t at_real;
};

/* How a role did, up to the end of its job's latest attempt. */
struct series_record {
        uint32_t job;
        const char *role;
        uint64_t at_real;          /* the end of the last point */
        struct store_bytes points; /* masterd/job/kept-series.h */
};

/* What a process of an executor has said of its training, so far. */
struct metric_record {
        uint32_t job;
        const char *role;
        uint32_t index, local;
        struct store_bytes points; /* masterd/metric/metrics.h */
};

/* What happened to a trial of a search, in order; masterd/job/trials.h says what the fields mean. */
struct trial_record {
        uint32_t job;
        uint64_t seq; /* counts up from 1 within the job; the caller counts */
        uint64_t time_real;
        uint8_t kind; /* enum trial_event_kind */
        uint32_t trial;
        uint64_t step;
        uint64_t metric;   /* the bits of a double */
        uint8_t exit;      /* enum search_exit */
        uint8_t verdict;   /* enum search_verdict: what was decided */
        const char *given; /* what its searcher gave a trial that was created; else "" */
};

/* A checkpoint that a trainer has told of (masterd/checkpoint/registry.h). */
struct checkpoint_record {
        uint64_t id;
        uint32_t owner, job, run, trial;
        uint64_t step, saved_real, bytes;
        uint32_t files;
        const char *path, *host, *metrics, *metric;
        uint64_t value; /* the bits of a double */
        bool smaller, pinned, marked;
};

/* A version of a model (masterd/checkpoint/models.h). */
struct model_record {
        uint32_t owner;
        const char *name;
        uint32_t version;
        uint64_t checkpoint;
        const char *path, *host, *metric;
        uint64_t value; /* the bits of a double */
        uint64_t step, registered_real;
        const char *note, *labels;
        bool archived;
};

/* A provider of hosts (masterd/providers). */
struct provider_record {
        const char *name;
        uint64_t last; /* number of the latest instance */
        bool held;     /* by a person: it makes none and takes none away */
};

/* A host that it made, or was asked for. */
struct instance_record {
        const char *token, *provider, *shape;
        const char *node; /* name of its host */
        const char *id;   /* the provider's; "": not said yet */
        uint8_t state;    /* enum instance_state */
        uint32_t job;     /* for which it was asked for; 0: for none */
        uint64_t made_real, since_real, ready_real;
        bool held;
        bool woken;         /* its host was a node before, and stays one */
        bool leaves;        /* a person gives it back: nothing keeps it */
        const char *reason; /* one line: why it is in this state */
};

/* A job was given another configuration. */
struct change_record {
        uint32_t job;
        uint64_t version; /* counts up from 1 */
        uint32_t uid;     /* who asked for it */
        uint64_t at_real;
        const char *text;          /* what was changed, one line */
        struct store_bytes before; /* the configuration that it was of, where a role has gone; else empty */
        struct store_bytes config; /* put only: the one from then on */
};

/* Who has left by a change: executors of the role from that index on, up to that attempt. */
struct cut_record {
        uint32_t job;
        uint64_t version; /* of the change */
        const char *role;
        uint32_t from, attempt;
};

struct secret_record {
        uint32_t job;
        const char *name;
        struct store_bytes data;
};

/* ---- opening and closing ---- */

struct store_limits {
        size_t queue_bytes; /* store_full() from here on; store_commit() refuses at four times as much */
        uint32_t queue_records;
        uint64_t retry_usec; /* how long a full disk is waited for before commits fail */
};

/* Opens or creates the database (mode 0600) and brings it to this version: each migration is one transaction
 * behind a backup
 * ("PATH.vN.bak"). limits may be NULL for the defaults (64 MiB, 100,000 records, 30 s). Errors are logged
 * with what to do: -EBUSY another masterd has it open, -EPROTONOSUPPORT it is newer than this program,
 * -EUCLEAN it is damaged, -EMEDIUMTYPE it is no store of Primus, or what the file system says. */
int store_open(const char *path, sd_event *event, const struct store_limits *limits, struct store **ret);

/* Writes what was committed, calls the effects and answers that are still due, closes. A batch that was not
 * committed is dropped. NULL is fine; not to be called from an effect. */
void store_close(struct store *s);
void store_close_p(struct store **s);

/* ---- reading before the loop runs ---- */

/* Only until the first store_commit() or store_query_...(), then -EBUSY. */
/* A callback returns 0 to go on, or a negative errno, which ends the load and is returned. Rows come in the
 * order of their keys. */

typedef int (*store_load_job_t)(void *userdata, const struct job_record *r);
typedef int (*store_load_executor_t)(void *userdata, const struct executor_record *r);
typedef int (*store_load_element_t)(void *userdata, const struct element_record *r);
typedef int (*store_load_usage_t)(void *userdata, const struct usage_record *r);
typedef int (*store_load_metric_t)(void *userdata, const struct metric_record *r);
typedef int (*store_load_trial_t)(void *userdata, const struct trial_record *r);
typedef int (*store_load_checkpoint_t)(void *userdata, const struct checkpoint_record *r);
typedef int (*store_load_model_t)(void *userdata, const struct model_record *r);
typedef int (*store_load_provider_t)(void *userdata, const struct provider_record *r);
typedef int (*store_load_instance_t)(void *userdata, const struct instance_record *r);
typedef int (*store_load_node_t)(void *userdata, const struct node_record *r);
typedef int (*store_load_hold_t)(void *userdata, const struct hold_record *r);
typedef int (*store_load_node_event_t)(void *userdata, const struct node_event_record *r);
typedef int (*store_load_label_t)(void *userdata, const struct label_record *r);
typedef int (*store_load_window_t)(void *userdata, const struct window_record *r);
typedef int (*store_load_gpu_off_t)(void *userdata, const struct gpu_off_record *r);
typedef int (*store_load_stuck_t)(void *userdata, const struct stuck_record *r);
typedef int (*store_load_avoid_t)(void *userdata, const struct avoid_record *r);
typedef int (*store_load_verdict_t)(void *userdata, const struct verdict_record *r);
typedef int (*store_load_token_t)(void *userdata, const struct token_record *r);
typedef int (*store_load_share_t)(void *userdata, const struct share_record *r);
typedef int (*store_load_submit_key_t)(void *userdata, const struct submit_key_record *r);
typedef int (*store_load_revoked_t)(void *userdata, const struct revoked_record *r);
typedef int (*store_load_secret_t)(void *userdata, const struct secret_record *r);
typedef int (*store_load_data_file_t)(void *userdata, const struct data_file_record *r);
typedef int (*store_load_data_source_t)(void *userdata, const struct data_source_record *r);
typedef int (*store_load_data_block_t)(void *userdata, const struct data_block_record *r);
typedef int (*store_load_data_task_t)(void *userdata, const struct data_task_record *r);
typedef int (*store_load_data_state_t)(void *userdata, const struct data_state_record *r);
typedef int (*store_load_scope_t)(void *userdata, const struct scope_record *r);
typedef int (*store_load_blame_t)(void *userdata, const struct blame_record *r);
typedef int (*store_load_change_t)(void *userdata, const struct change_record *r);
typedef int (*store_load_cut_t)(void *userdata, const struct cut_record *r);
typedef int (*store_load_savepoint_t)(void *userdata, const struct savepoint_record *r);

int store_load_jobs(struct store *s, bool active_only, store_load_job_t callback,
                    void *userdata); /* with body */
/* The next two: of active jobs only; all attempts of an executor. */
int store_load_executors(struct store *s, store_load_executor_t callback, void *userdata);
int store_load_secrets(struct store *s, store_load_secret_t callback, void *userdata);
int store_load_scopes(struct store *s, store_load_scope_t callback, void *userdata); /* of active jobs */
int store_load_blames(struct store *s, store_load_blame_t callback, void *userdata);
/* Elements of active arrays, also those that have ended: by array, index, and number. */
int store_load_elements(struct store *s, store_load_element_t callback, void *userdata);
/* Usage of active jobs. */
int store_load_usage(struct store *s, store_load_usage_t callback, void *userdata);
int store_load_trials(struct store *s, store_load_trial_t callback,
                      void *userdata); /* of active jobs, in order */
int store_load_metrics(struct store *s, store_load_metric_t callback, void *userdata); /* of active jobs */
/* Data of active jobs. Files come one at a time from the disk, so there may be any number; tasks that were
 * split off come behind the others of their job. */
int store_load_data_files(struct store *s, store_load_data_file_t callback, void *userdata);
/* Some of one source, as store_query_files(). */
int store_load_data_file_range(struct store *s, uint64_t key, uint32_t source, uint64_t first, uint32_t n,
                               store_load_data_file_t callback, void *userdata);
int store_load_data_sources(struct store *s, store_load_data_source_t callback, void *userdata);
int store_load_data_blocks(struct store *s, store_load_data_block_t callback, void *userdata);
int store_load_data_tasks(struct store *s, store_load_data_task_t callback, void *userdata);
int store_load_data_states(struct store *s, store_load_data_state_t callback, void *userdata);
/* Of active jobs, in the order of their versions. */
int store_load_changes(struct store *s, store_load_change_t callback, void *userdata);
int store_load_cuts(struct store *s, store_load_cut_t callback, void *userdata);
/* All of them, oldest first, without manifest and configuration. */
int store_load_savepoints(struct store *s, store_load_savepoint_t callback, void *userdata);
int store_load_nodes(struct store *s, store_load_node_t callback, void *userdata);
int store_load_holds(struct store *s, store_load_hold_t callback, void *userdata);
/* The number of the latest of each host, 0: none; the rest is not filled in. */
int store_load_last_node_events(struct store *s, store_load_node_event_t callback, void *userdata);
int store_load_labels(struct store *s, store_load_label_t callback, void *userdata);
int store_load_windows(struct store *s, store_load_window_t callback, void *userdata);
int store_load_gpus_off(struct store *s, store_load_gpu_off_t callback, void *userdata);
int store_load_stuck(struct store *s, store_load_stuck_t callback, void *userdata);
int store_load_verdicts(struct store *s, store_load_verdict_t callback, void *userdata); /* of active jobs */
int store_load_avoided(struct store *s, store_load_avoid_t callback, void *userdata);    /* of active jobs */
int store_load_tokens(struct store *s, store_load_token_t callback, void *userdata);
int store_load_shares(struct store *s, store_load_share_t callback, void *userdata);
int store_load_checkpoints(struct store *s, store_load_checkpoint_t callback, void *userdata);
int store_load_models(struct store *s, store_load_model_t callback, void *userdata);
int store_load_providers(struct store *s, store_load_provider_t callback, void *userdata);
/* In the order in which they were made. */
int store_load_instances(struct store *s, store_load_instance_t callback, void *userdata);
/* The oldest first. */
int store_load_submit_keys(struct store *s, store_load_submit_key_t callback, void *userdata);
int store_load_revoked(struct store *s, store_load_revoked_t callback, void *userdata);

/* A small named value (cluster id, term ...), allocated with a NUL behind it. -ENOENT: never set. */
int store_load_meta(struct store *s, const char *key, void **ret, size_t *ret_size);
/* Highest event number of a job (or STORE_JOB_NONE), 0: none. */
int store_load_last_event(struct store *s, uint32_t job, uint64_t *ret);

/* ---- writing ---- */

/* The next job's number. Counts up, never reused once store_put_job() of it is durable. 0: there are no more.
 */
uint32_t store_next_job(struct store *s);

/* A key for the files of the next savepoint: never that of a job, never reused once store_put_savepoint() of
 * it is durable. */
uint64_t store_next_savepoint(struct store *s);

/* Each adds to the open batch; the record replaces the one of the same key. Running out of memory is
 * remembered and reported by store_commit(). */
void store_put_job(struct store *s, const struct job_record *r); /* key: number */
void store_put_executor(struct store *s,
                        const struct executor_record *r);            /* key: job, role, index, attempt */
void store_put_event(struct store *s, const struct event_record *r); /* key: job, seq */
void store_put_usage(struct store *s, const struct usage_record *r); /* key: day, job, role (job not 0) */
void store_put_node(struct store *s, const struct node_record *r);   /* key: name */
void store_put_hold(struct store *s, const struct hold_record *r);   /* key: node, cause */
void store_put_node_event(struct store *s, const struct node_event_record *r); /* key: node, seq */
void store_put_label(struct store *s, const struct label_record *r);           /* key: node, key */
void store_put_window(struct store *s, const struct window_record *r);         /* key: node, from */
void store_put_gpu_off(struct store *s, const struct gpu_off_record *r);       /* key: node, uuid */
void store_put_stuck(struct store *s,
                     const struct stuck_record *r); /* key: node, job, role, index, attempt */
void store_put_avoid(struct store *s, const struct avoid_record *r);        /* key: job, node */
void store_put_verdict(struct store *s, const struct verdict_record *r);    /* key: job, role, index, kind */
void store_delete_verdict(struct store *s, const struct verdict_record *r); /* the same */
void store_put_scope(struct store *s, const struct scope_record *r);        /* key: job, role */
void store_put_blame(struct store *s, const struct blame_record *r);        /* key: node */
void store_put_token(struct store *s, const struct token_record *r);        /* key: id */
void store_put_share(struct store *s, const struct share_record *r);        /* key: pool, user */
void store_put_submit_key(struct store *s, const struct submit_key_record *r); /* key: user, key */
void store_put_series(struct store *s, const struct series_record *r);         /* key: job, role */
void store_put_metric(struct store *s, const struct metric_record *r); /* key: job, role, index, local */
void store_put_trial(struct store *s, const struct trial_record *r);   /* key: job, seq */
void store_put_checkpoint(struct store *s, const struct checkpoint_record *r); /* key: id */
void store_put_model(struct store *s, const struct model_record *r);           /* key: owner, name, version */
void store_put_provider(struct store *s, const struct provider_record *r);     /* key: name */
void store_put_instance(struct store *s, const struct instance_record *r);     /* key: token */
void store_delete_instance(struct store *s, const char *token);
void store_put_revoked(struct store *s, const struct revoked_record *r);         /* key: serial */
void store_put_secret(struct store *s, const struct secret_record *r);           /* key: job, name */
void store_put_data_file(struct store *s, const struct data_file_record *r);     /* key: key, source, file */
void store_put_data_source(struct store *s, const struct data_source_record *r); /* key: key, source */
void store_put_data_block(struct store *s, const struct data_block_record *r);   /* key: job, block */
void store_put_data_task(struct store *s, const struct data_task_record *r);     /* key: job, task */
void store_put_data_state(struct store *s, const struct data_state_record *r);   /* key: job */
void store_put_savepoint(struct store *s, const struct savepoint_record *r);     /* key: name */
/* The job's configuration becomes this one as well. Key: job, version. */
void store_put_change(struct store *s, const struct change_record *r);
void store_put_cut(struct store *s, const struct cut_record *r);
void store_set_meta(struct store *s, const char *key, const void *data, size_t size);

void store_delete_job(struct store *s, uint32_t number); /* and all that belongs to it */
/* The secrets and the submitter's environment: overwritten with zeros on disk, a few seconds later in the log
 * too. */
void store_delete_secrets(struct store *s, uint32_t job);
void store_delete_data_block(struct store *s, uint32_t job, uint64_t block);
void store_delete_data_task(struct store *s, uint32_t job, uint64_t task);
/* The job is over: what is left of its data is its state, and the tasks that failed with their files. */
void store_trim_data(struct store *s, uint32_t job);
/* Copies all files and sources that key from has by then to key to, inside the store. */
void store_copy_files(struct store *s, uint64_t from, uint64_t to);
void store_delete_savepoint(struct store *s, const char *name, uint64_t key); /* and its files */
void store_delete_node(struct store *s, const char *name);                    /* and all that belongs to it */
/* Of the records only the key counts. */
void store_delete_hold(struct store *s, const struct hold_record *r);
void store_delete_label(struct store *s, const struct label_record *r);
void store_delete_window(struct store *s, const struct window_record *r);
void store_delete_gpu_off(struct store *s, const struct gpu_off_record *r);
void store_delete_stuck(struct store *s, const struct stuck_record *r);
void store_delete_token(struct store *s, const uint8_t id[static 8]);
void store_delete_checkpoint(struct store *s, uint64_t id);

/* Deletes up to 200 jobs, oldest first, that ended before older_than_real and are not among the keep_newest
 * newest, an array with its elements as one; their usage is added to that of deleted jobs. Where the store
 * has more than keep_bytes also some of the owner whose ended jobs take most, however young. And revocations
 * and tokens that expired before now_real. To be called now and then, and soon again while the store has more
 * than that. */
struct store_keep {
        uint64_t older_than_real, now_real, bytes;
        uint32_t newest;
};
void store_prune(struct store *s, const struct store_keep *keep);
/* The same of one job that has ended, whatever is kept: an array with its elements, not an element alone. */
void store_forget_job(struct store *s, uint32_t number);
/* Bytes in use, as of one of the last transactions. */
uint64_t store_bytes_used(const struct store *s);

/* error 0: the batch is durable. Negative: it is not, and neither will be anything committed later (-ENOSPC,
 * -EIO ...): what is in memory is ahead of the disk, so the daemon should stop and begin again from what is
 * stored. */
typedef void (*store_effect)(void *userdata, int error);

/* Ends the batch; also an empty one (a barrier). effect may be NULL. 0; or, with the batch dropped and the
 * effect not called: -ENOMEM (out of memory here or in a put), -ENOBUFS (the queue is at four times its
 * limit), -ESHUTDOWN (closing). */
int store_commit(struct store *s, store_effect effect, void *userdata);

/* Copies the whole database, with everything that is durable by now, to a file that is not there yet (mode
 * 0600, one file, not synced), while the store is in use; then calls effect. On an error (-ENOSPC ...;
 * -ESHUTDOWN: closed meanwhile) nothing is left of the file. 0, -EBUSY (a copy is being made), -ENOMEM,
 * -ESHUTDOWN. */
int store_copy(struct store *s, const char *path, store_effect effect, void *userdata);

/* Bytes that the open batch has to write so far. */
size_t store_open_bytes(const struct store *s);
/* Drops the open batch. */
void store_abandon(struct store *s);

/* Whether new work should be refused: the queue is over its limits, or the disk is full. */
bool store_full(const struct store *s);

struct store_stats {
        size_t queue_bytes;
        uint32_t queue_records;
        uint64_t transactions, records; /* durable since opening */
        uint64_t commit_usec_max;       /* longest transaction since the last call */
        int trouble;                    /* negative errno while the disk refuses, or 0 */
};
void store_get_stats(struct store *s, struct store_stats *ret);

/* ---- history: read by the store's thread behind everything committed before, answered in the loop ---- */
/* error 0, or negative with n = 0. Return values: 0, -ENOMEM, -ENOBUFS, -ESHUTDOWN. */

struct store_job_filter {
        bool all;         /* also ended ones */
        bool elements;    /* also those of arrays */
        uint32_t array;   /* only elements of this one; 0: any */
        uint64_t since;   /* submitted then or later */
        const char *name; /* part of the name; NULL: any */
        bool by_owner;
        uint32_t owner;
        int state;       /* -1: any */
        uint32_t before; /* only numbers below; 0: any */
        uint32_t limit;  /* 0: 1000; at most 10,000 */
};

/* On whose behalf questions are asked from here on, those that follow from their answers too. Who has one
 * under way is refused another (-EBUSY). */
#define STORE_NOBODY UINT32_MAX
void store_ask_for(struct store *s, uint32_t uid);
/* Called behind each callback of a question of somebody: how long the callback took, and the answer's bytes.
 */
typedef void (*store_answered_t)(void *userdata, uint32_t uid, uint64_t usec, size_t bytes);
void store_on_answer(struct store *s, store_answered_t f, void *userdata);

typedef void (*store_jobs_t)(void *userdata, int error, const struct job_record *jobs, size_t n);
typedef void (*store_executors_t)(void *userdata, int error, const struct executor_record *executors,
                                  size_t n);
typedef void (*store_events_t)(void *userdata, int error, const struct event_record *events, size_t n);

/* One job with its body; n = 0 where there is none of that number. */
int store_query_job(struct store *s, uint32_t number, store_jobs_t callback, void *userdata);
/* Newest first, without bodies. */
int store_query_jobs(struct store *s, const struct store_job_filter *filter, store_jobs_t callback,
                     void *userdata);
typedef void (*store_elements_t)(void *userdata, int error, const struct element_record *elements, size_t n);
typedef void (*store_usage_t)(void *userdata, int error, const struct usage_record *rows, size_t n);
/* Elements of an array that were made, by index and number; index UINT32_MAX: all, else that one, the latest
 * number first. */
int store_query_elements(struct store *s, uint32_t array, uint32_t index, store_elements_t callback,
                         void *userdata);
/* Usage of days first ... last; of one owner or (UINT32_MAX) all. -E2BIG to the callback when there is too
 * much of it. */
int store_query_usage(struct store *s, uint32_t first, uint32_t last, uint32_t owner, store_usage_t callback,
                      void *userdata);
/* All usage of one job. */
int store_query_job_usage(struct store *s, uint32_t job, store_usage_t callback, void *userdata);
/* Executors of a job, the latest attempt of each or all, at most limit (0: 100,000). */
int store_query_executors(struct store *s, uint32_t job, bool all_attempts, uint32_t limit,
                          store_executors_t callback, void *userdata);
/* Events behind number after, at most limit (0: 10,000). */
int store_query_events(struct store *s, uint32_t job, uint64_t after, uint32_t limit, store_events_t callback,
                       void *userdata);

typedef void (*store_node_events_t)(void *userdata, int error, const struct node_event_record *events,
                                    size_t n);
/* Events of a host behind number after, in order. */
int store_query_node_events(struct store *s, const char *node, uint64_t after, store_node_events_t callback,
                            void *userdata);

typedef void (*store_series_t)(void *userdata, int error, const struct series_record *series, size_t n);
/* What is kept of a job's roles. */
int store_query_series(struct store *s, uint32_t job, store_series_t callback, void *userdata);

typedef void (*store_metrics_t)(void *userdata, int error, const struct metric_record *metrics, size_t n);
/* What is kept of a job's training. */
int store_query_metrics(struct store *s, uint32_t job, store_metrics_t callback, void *userdata);

typedef void (*store_trials_t)(void *userdata, int error, const struct trial_record *trials, size_t n);
/* All that happened to the trials of a search, in order. */
int store_query_trials(struct store *s, uint32_t job, store_trials_t callback, void *userdata);

typedef void (*store_files_t)(void *userdata, int error, const struct data_file_record *files, size_t n);
typedef void (*store_sources_t)(void *userdata, int error, const struct data_source_record *sources,
                                size_t n);
typedef void (*store_savepoints_t)(void *userdata, int error, const struct savepoint_record *savepoints,
                                   size_t n);

/* Files first ... first + limit - 1 of a source, in order, as far as they exist; limit at most 10,000. */
int store_query_files(struct store *s, uint64_t key, uint32_t source, uint64_t first, uint32_t limit,
                      store_files_t callback, void *userdata);
typedef void (*store_data_states_t)(void *userdata, int error, const struct data_state_record *states,
                                    size_t n);
/* How the data of a job stands, also of one that is over; n = 0: it has none. */
int store_query_data_state(struct store *s, uint32_t job, store_data_states_t callback, void *userdata);
typedef void (*store_kept_tasks_t)(void *userdata, int error, const struct kept_task_record *tasks, size_t n);
/* Tasks with a row of their own that are in this state (the data's enum), behind number after, at most limit
 * of them: of a job that is over, those that failed. In the order of their numbers, which are unsigned. */
int store_query_kept_tasks(struct store *s, uint32_t job, uint8_t state, uint64_t after, uint32_t limit,
                           store_kept_tasks_t callback, void *userdata);
/* All sources of a job or savepoint, in order. */
int store_query_sources(struct store *s, uint64_t key, store_sources_t callback, void *userdata);
/* One savepoint with manifest and configuration; n = 0 where there is none of that name. */
int store_query_savepoint(struct store *s, const char *name, store_savepoints_t callback, void *userdata);
