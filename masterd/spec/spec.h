/* SPDX-License-Identifier: Apache-2.0 */
/* A job's configuration: JSON with upstream's names -> struct job_spec. Pure: no files, no clock, no bus.
 * Strict: a key that nobody defined is an error; a key that means nothing here is a warning; a key of the
 * schema that is not built yet is an error that says so. What comes out is complete (every default filled in)
 * and within the bounds below, so whoever works from a job_spec checks nothing again.
 * docs/man/primus-job.5.scd has every key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/wire/input.h"
#include "masterd/spec/diagnostics.h"
#include "masterd/spec/spec-failure.h"
#include "masterd/spec/spec-health.h"
#include "masterd/spec/spec-limits.h"
#include "masterd/spec/spec-placement.h"
#include "masterd/spec/spec-search.h"

#define SPEC_TEXT_MAX (4u << 20) /* bytes of configuration */
#define SPEC_DEPTH_MAX 32u       /* nested objects and arrays */
#define SPEC_ROLES_MAX 64u
#define SPEC_EXECUTORS_MAX 100000u  /* of a job, all roles together */
#define SPEC_STRING_MAX (64u << 10) /* bytes of one string: command, value of a variable */
#define SPEC_NAME_MAX 128u          /* bytes of the job's name */
#define SPEC_PATH_MAX 4095u
#define SPEC_FILES_MAX 1024u
#define SPEC_ENV_MAX 2048u            /* variables of the job, and of each role */
#define SPEC_ENV_BYTES_MAX (1u << 20) /* names, values, argv of a role together with the job's */
#define SPEC_ARGV_MAX 4096u
#define SPEC_ACTORS_MAX (1u << 16) /* slots of one executor */
#define SPEC_INPUTS_MAX INPUT_SOURCES_MAX
#define SPEC_INPUT_BYTES_MAX (1u << 20) /* of spec_input_json(): it goes with every order for an executor */
#define SPEC_MARKERS_MAX 64u
#define SPEC_PROPERTIES_MAX 256u /* of a topic's config */
#define SPEC_EPOCHS_MAX 1000000u
#define SPEC_WINDOW_MAX (1u << 20)
#define SPEC_SPLIT_MAX (UINT64_C(1) << 50)
#define SPEC_SLOTS_MAX 4096u
#define SPEC_SLOT_MIN (64u << 10)
#define SPEC_SLOT_MAX (64u << 20)
#define SPEC_RING_MAX (UINT64_C(1) << 30)
#define SPEC_NODES_MAX 10000u
#define SPEC_NODES_TOTAL_MAX                                                                                 \
        65536u /* names in the lists of the job and all roles; a role without has the job's */
#define SPEC_PORTS_MAX 64u
#define SPEC_GPUS_MAX 64u
#define SPEC_VCORES_MAX 4096u
#define SPEC_MEMORY_MB_MAX (64u << 20)
#define SPEC_FAILURES_MAX 1000000u
#define SPEC_PIPE_MIN (4u << 10)
#define SPEC_PIPE_MAX (1u << 20)

/* Enums: zero is the default. X_to_string() gives the configuration's word (NULL outside the enum). */
enum schedule_type {
        SCHEDULE_GANG,
        SCHEDULE_DYNAMIC,
        _SCHEDULE_TYPE_MAX,
        _SCHEDULE_TYPE_INVALID = -22
};
enum schedule_policy {
        SCHEDULE_POLICY_GANG,    /* all roles start together or none */
        SCHEDULE_POLICY_DYNAMIC, /* each executor as it fits; RUNNING once every role has min_num */
        SCHEDULE_POLICY_ORDER,   /* role after role, see job_spec.order */
        _SCHEDULE_POLICY_MAX,
};
enum lockstep {        /* input.lockstep: who of a role with data reads what */
        LOCKSTEP_OFF,  /* tasks, handed out on demand */
        LOCKSTEP_DROP, /* ranks read the files themselves, in step; what makes no whole batch is left out */
        LOCKSTEP_PAD,  /* the same; the last batch is made up with samples from the beginning */
        _LOCKSTEP_MAX,
        _LOCKSTEP_INVALID = -22
};
enum input_policy {
        INPUT_ENV,
        INPUT_STREAMING,
        _INPUT_POLICY_MAX,
        _INPUT_POLICY_INVALID = -22
};
enum restart_type {
        RESTART_ON_FAILURE,
        RESTART_NEVER,
        RESTART_ALWAYS,
        _RESTART_TYPE_MAX,
        _RESTART_TYPE_INVALID = -22
};
enum failure_policy {
        FAILURE_FAIL_APP,     /* the job fails */
        FAILURE_FAIL_ATTEMPT, /* this attempt of the job fails; the next of max_app_attempts begins */
        FAILURE_NONE,         /* the executor stays failed, the job goes on */
        _FAILURE_POLICY_MAX,
        _FAILURE_POLICY_INVALID = -22,
};
enum failover_form {
        FAILOVER_COMMON,
        FAILOVER_HYBRID,
        _FAILOVER_FORM_MAX
};
enum role_category {
        ROLE_CATEGORY_UNKNOWN,
        ROLE_CATEGORY_PS,
        ROLE_CATEGORY_WORKER,
        _ROLE_CATEGORY_MAX,
        _ROLE_CATEGORY_INVALID = -22
};
/* The same order as enum on_partition of lib/wire/messages.h. */
enum spec_on_partition {
        SPEC_PARTITION_REPLACE,
        SPEC_PARTITION_STOP,
        SPEC_PARTITION_WAIT,
        _SPEC_PARTITION_MAX,
        _SPEC_PARTITION_INVALID = -22
};
/* Who may look at a job (masterd/core/sight.h), from the fewest to the most. */
enum visible {
        VISIBLE_OWNER,
        VISIBLE_GROUP, /* of its pool, or the owner's own */
        VISIBLE_POOL,  /* whoever may submit to its pool */
        VISIBLE_ALL,
        _VISIBLE_MAX,
        _VISIBLE_INVALID = -22
};
enum gpu_visibility {
        GPU_VISIBILITY_JOB,
        GPU_VISIBILITY_EXECUTOR,
        _GPU_VISIBILITY_MAX,
        _GPU_VISIBILITY_INVALID = -22
};

const char *schedule_type_to_string(enum schedule_type t);
const char *schedule_policy_to_string(enum schedule_policy p); /* "gang", "dynamic", "order" */
const char *input_policy_to_string(enum input_policy p);
const char *restart_type_to_string(enum restart_type t);
const char *failure_policy_to_string(enum failure_policy p);
const char *lockstep_to_string(enum lockstep l);
const char *role_category_to_string(enum role_category c);
const char *spec_on_partition_to_string(enum spec_on_partition p);
const char *gpu_visibility_to_string(enum gpu_visibility v);
const char *visible_to_string(enum visible v);
enum visible visible_from_string(const char *s);

/* When an executor of a role ends. Only failures count (not successes, not stops that somebody asked for, not
 * the loss of a host). The failure that brings the count of that (role, index) within failure_window to
 * max_failure_times makes max_failure_policy apply; before that it is restarted as restart_type says. So 1
 * means no restart. */
struct failover_spec {
        uint32_t form;               /* enum failover_form; the same to us: evictions never count anyway */
        uint32_t restart_type;       /* enum restart_type */
        uint32_t max_failure_times;  /* >= 1; default 1 */
        uint32_t max_failure_policy; /* enum failure_policy */
        uint32_t max_role_failures;  /* of all executors of the role together; 0: the job's, or no limit */
};

/* Delay before the n-th restart in a row: n = 1 at once, then initial, doubling to max. Reset when the
 * executor ran longer than max. */
struct backoff_spec {
        uint64_t initial_usec; /* default 1 s */
        uint64_t max_usec;     /* default 60 s, >= initial */
};

struct role_spec {
        char *name;         /* role_name_valid() */
        uint32_t num;       /* >= 1 */
        uint32_t min_num;   /* 1..num; default num */
        uint32_t cpu_milli; /* thousandths of a core, default 1000; 0: no reservation or quota, a share by
                               weight */
        uint64_t memory;    /* bytes; 0: no reservation, no limit; default 1 GiB */
        uint32_t gpus;
        uint32_t ports; /* to grant, >= 1; default 1 */
        char *command;  /* run by bash -c; NULL where the configuration gave argv */
        char **argv; /* NULL-ended, never empty: what is executed; {"/bin/bash", "-c", command} for a command
                      */
        size_t n_argv;
        uint32_t actors; /* slots of a host of a pool of actors, in place of a command; 0: it is none */
        char **env;      /* NULL-ended NAME=VALUE, over the job's; never NULL */
        size_t n_env;
        char **nodes; /* NULL-ended: only on these hosts; empty: any. The job's where the role gives none. */
        size_t n_nodes;
        uint32_t input_policy;    /* enum input_policy */
        uint32_t success_percent; /* of num, rounded up, that must succeed; default 100; 0: the role is
                                     optional */
        uint32_t max_per_node;    /* executors of the role on one host at most; 0: any number */
        uint32_t per_node; /* exactly so many on each host used (num is a multiple); 0: not asked for */
        uint32_t hosts;    /* while it is read: num is so many times per_node; 0 in a spec that is complete */
        uint32_t category; /* enum role_category */
        uint64_t time_limit_usec; /* of one executor; UINT64_MAX: none */
        struct failover_spec failover;
        struct placement_spec placement;
        struct limits_spec limits;
        struct role_failure_spec failure;
        struct health_spec health;
};

/* An end of a time range. */
struct spec_time {
        struct time_point at;
        bool given, now;
};

/* One place that data comes from: an entry of fileConfig.inputs. The keys' meaning is that of struct
 * input_source (lib/wire/input.h). */
struct input_spec {
        char *name;             /* for people; default: its index */
        char *path_pattern;     /* absolute path or URL; NULL: a command without files */
        char *name_pattern;     /* glob of file names below it; default "*" */
        char **success_markers; /* NULL-ended, never NULL */
        size_t n_success_markers;
        struct spec_time from, to; /* timeRange: both given or neither */
        uint32_t format;           /* enum record_format */
        uint64_t block_size;       /* FORMAT_RAW */
        uint64_t record_size;      /* FORMAT_FIXED */
        bool multiline;            /* FORMAT_CSV */
        char *command;             /* commandInput, or NULL */
        uint32_t compression;      /* enum compression */
        uint64_t split;            /* bytes; default the job's */
        uint32_t weight;           /* all sources of a job have one, or none has */
        uint32_t rewind_skip;
        char *s3_endpoint, *s3_region; /* or NULL */
        char *hdfs_endpoint, *hdfs_user;
        /* customizedInput: becomes a command (complete_data()), and is NULL then */
        char *reader, **reader_params; /* NULL-ended NAME=VALUE */
        size_t n_reader_params;
};

/* An entry of kafkaConfig.topics. */
struct topic_spec {
        char *topic, *group;
        char **config; /* NULL-ended NAME=VALUE; what only the Java client knows is left out; never NULL */
        size_t n_config;
        uint32_t start;           /* enum kafka_start */
        uint64_t start_timestamp; /* milliseconds */
        uint32_t weight;
};

/* How a job waits, and how it gives way. */
#define SPEC_PRIORITY_MAX 1000 /* -1000 ... 1000 */
#define SPEC_PRIORITY_NONE INT32_MIN
struct queue_spec {
        int32_t priority;           /* SPEC_PRIORITY_NONE: that of its pool */
        bool preemptible;           /* also where the pool's jobs are not */
        bool for_hosts;             /* also when no host of the cluster is what it needs: one may come */
        uint64_t start_within_usec; /* it fails when it has had no place for so long; UINT64_MAX: never */
        bool requeue; /* at its time limit the job is not failed but begins again, as often as it takes */
        char *signal; /* "USR1@60s", or NULL */
        int32_t signal_number;       /* of it; 0: none */
        uint64_t signal_before_usec; /* so long before SIGTERM */
};

struct order_spec {
        char *role;             /* name of a role, each at most once */
        uint32_t schedule_type; /* enum schedule_type */
};

/* When the job starts, and as how many (masterd/spec/array.h reads the texts). */
struct array_spec {
        char **after; /* NULL-ended; never NULL */
        size_t n_after;
        char *array; /* or NULL */
        char *begin; /* RFC 3339, or NULL */
};

/* What trainers are told of changes of the job's membership. */
/* What of its checkpoints stays when it has ended: so many of each; 0 all: everything. */
struct checkpoints_spec {
        uint32_t best, trial_best, trial_latest;
};
static inline bool checkpoints_spec_given(const struct checkpoints_spec *s) {
        return s->best > 0 || s->trial_best > 0 || s->trial_latest > 0;
}

struct rendezvous_spec {
        char *signal;          /* "USR1", or NULL */
        int32_t signal_number; /* of it; 0: none */
};

struct job_spec {
        uint32_t refs;    /* others who have it beside the first, see spec_ref() */
        char *name;       /* default "job" */
        uint32_t visible; /* enum visible; _VISIBLE_MAX: not said, which its pool fills in at submit */
        char *queue; /* the pool, "default" without a word; whether there is one of that name masterd knows */
        struct queue_spec waits;
        char **files; /* NULL-ended; paths relative to the configuration's folder, or absolute; never NULL */
        size_t n_files;
        char **env; /* NULL-ended NAME=VALUE for every executor; never NULL */
        size_t n_env;
        uint32_t max_app_attempts; /* >= 1; default 1 */
        uint32_t schedule_policy;  /* enum schedule_policy */
        struct order_spec *order;  /* for SCHEDULE_POLICY_ORDER: every role exactly once */
        size_t n_order;
        struct role_spec *roles;
        size_t n_roles; /* 1..SPEC_ROLES_MAX */

        struct rendezvous_spec rendezvous;
        struct checkpoints_spec checkpoints;
        char *stack_signal;          /* "USR2", "none", or NULL */
        int32_t stack_signal_number; /* of it; 0: none */
        char *cwd;                   /* absolute directory on every host, or NULL: the job's work directory */
        char *output; /* file pattern for stdout and stderr (%j %r %i %a %n %%); NULL: the journal */
        char **nodes; /* NULL-ended; empty: any; never NULL */
        size_t n_nodes;
        uint32_t on_partition;        /* enum spec_on_partition */
        uint32_t gpu_visibility;      /* enum gpu_visibility */
        bool new_privileges;          /* false: NoNewPrivileges=yes */
        uint64_t time_limit_usec;     /* of the job from its first start; UINT64_MAX: none */
        uint64_t stop_grace_usec;     /* SIGTERM ... SIGKILL, also gracefulShutdownTimeoutMin; default 10 s */
        uint64_t failure_window_usec; /* older failures are forgotten; UINT64_MAX (default): never */
        struct backoff_spec backoff;
        struct topology_spec topology;
        bool whole_hosts; /* on no host with anybody else */
        struct job_failure_spec failure;
        struct health_spec health;
        struct array_spec array;
        struct search_spec search;

        /* Data: sources are numbered files first, then topics. Neither: the job has none. */
        struct input_spec *inputs;
        size_t n_inputs;
        struct topic_spec *topics;
        size_t n_topics;
        uint32_t message_type; /* enum kafka_message_type */
        uint32_t sample_ppm;   /* share of the tasks that are made at all; default 1000000 */
        /* stopPolicy, in thousandths of a per cent of the tasks (upstream's are fractional): */
        uint32_t task_success_milli; /* data is finished when so many are done, and the job fails with fewer;
                                        0: not given */
        uint32_t task_failed_milli;  /* the job fails when so many have failed; default 50000 */
        uint32_t max_task_attempts;  /* default 2; the loss of a task's executor does not count */
        /* What the end of the data means. true: nothing, all roles' own ends decide; false: when those that
         * were fed have ended after it, the job has succeeded. */
        bool graceful_shutdown;
        uint64_t end_wait_usec; /* so long behind the end of the data executors may go on; 0: no limit */
        char *staging_dir;      /* names the progress that the next job goes on from; NULL: nobody does */
        uint32_t input_mode;    /* enum input_delivery */
        uint32_t input_ack;     /* enum ack_mode; default LAG with stdin, RELEASE else */
        uint64_t pipe_size;     /* bytes, default 1 MiB */
        uint32_t input_order;   /* enum input_order */
        uint32_t lockstep; /* enum lockstep; not off: the job has no data of its own (job.data is NULL) */
        uint64_t input_seed;
        uint32_t epochs; /* >= 1 */
        uint32_t window; /* records; 0, 1: not shuffled within a task */
        uint64_t split;  /* bytes, of sources that do not say; 0: a file is one task */
        uint64_t max_record;
        uint32_t slots;
        uint64_t slot_size;
        uint64_t poll_usec;
};

/* Reads a configuration. 0: *ret is the job (free with spec_free), d may hold warnings. -EBADMSG: d holds at
 * least one error. -ENOMEM. d must be initialised ({}); it is added to. */
int spec_parse(const char *text, size_t size, struct job_spec **ret, struct diagnostics *d);

struct layers;
/* The same with what a site says of all jobs (masterd/spec/layers.h) under and over it; pool NULL: the text's
 * own. Forced values that the text has otherwise are found by layers_check(). */
int spec_parse_layered(const char *text, size_t size, const struct layers *layers, const char *pool,
                       struct job_spec **ret, struct diagnostics *d);

/* The same for what spec_effective() wrote, which may be larger than what a person may hand us. */
int spec_load(const char *text, size_t size, struct job_spec **ret, struct diagnostics *d);
/* One more who has it, and frees it: a spec that several have is not changed any more. */
struct job_spec *spec_ref(struct job_spec *s);
/* Frees it, when nobody else has it. */
struct job_spec *spec_free(struct job_spec *s);
static inline void spec_free_p(struct job_spec **s) {
        spec_free(*s);
}

/* The effective configuration: canonical JSON with every default written out, which spec_parse() reads back
 * to an equal spec. Allocated. */
int spec_effective(const struct job_spec *s, char **ret_json);

/* Makes it the configuration of one trial: without the search, and without its searcher. */
void spec_make_trial(struct job_spec *s);
/* Makes it that of the searcher: without search, other roles, and data. */
void spec_make_searcher(struct job_spec *s);

/* The same for somebody else than its owner: without the values of env and of a topic's config, which may be
 * secrets, but with their names. Not to be read back. Allocated. */
int spec_masked(const struct job_spec *s, char **ret_json);
#define SPEC_MASK "***"

/* What executors are told of a job's data: {"inputManager": ..., "input": ...} of the effective
 * configuration, which input_read() of lib/wire/input.h reads. Allocated. "{}" of a job without data. */
int spec_input_json(const struct job_spec *s, char **ret_json);
/* The same, with one source alone in each: n of them from the first on. */
int spec_source_jsons(const struct job_spec *s, size_t first, size_t n, char **ret_jsons);

/* Sources of data: files first, then topics. 0: the job has no data. */
size_t spec_n_sources(const struct job_spec *s);

/* One of them, in words for people; the strings are s's. */
struct spec_source {
        const char *name;
        enum source_kind kind;
        const char *pattern; /* path, URL or topic; of a command without files the command */
        uint32_t weight;
};
void spec_source(const struct job_spec *s, size_t i, struct spec_source *ret);

/* "USR1@60s", "SIGTERM@5min", "10": a signal and how long before the end it comes (60 s where it is not
 * said). -EINVAL: not of that form, a signal that cannot be caught, or longer than a day. */
/* One that programs do not use for anything else: real-time, and named by its number. */
#define SPEC_STACK_SIGNAL_DEFAULT 42
/* What a stackSignal= says; 0: "none". -EINVAL. */
int spec_stack_signal_parse(const char *text, int32_t *ret_number);
int spec_signal_parse(const char *text, int32_t *ret_number, uint64_t *ret_before_usec);

/* The role of that name, or NULL. */
const struct role_spec *spec_role(const struct job_spec *s, const char *name);

/* Who is started again with an executor of the role. */
static inline enum restart_scope spec_restart_scope(const struct job_spec *s, const struct role_spec *role) {
        uint32_t own = role->failure.restart_scope;

        return (enum restart_scope)(own < _RESTART_SCOPE_MAX ? own : s->failure.restart_scope);
}
/* How many failures of the role's executors together are too many; 0: no such limit. */
static inline uint32_t spec_role_budget(const struct job_spec *s, const struct role_spec *role) {
        return role->failover.max_role_failures ?: s->failure.max_role_failures;
}

/* Bytes of memory that it takes. */
size_t spec_bytes(const struct job_spec *s);

/* Executors of all roles together. */
uint32_t spec_executors(const struct job_spec *s);
