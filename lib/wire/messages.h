/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd and agentd say to each other: the typed messages of interface org.primus.Link1 on object
 * /org/primus/Link1, as C structs with an append and a read function each (lib/wire/messages.c). The D-Bus
 * side of the contract is dbus/org.primus.Link1.xml. Rules:
 *   - every message ends in a{sv} for later additions; a reader ignores keys that it does not know (what else
 * holds between versions is in lib/wire/version.h);
 *   - readers bound everything they take (LINK_*_MAX) and answer -EBADMSG for a message outside the bounds;
 *   - strings that come from users and may not be UTF-8 (paths, argv, environment) travel as bytes (ay);
 *   - read functions fill a struct that X_done() releases; strings in it are owned by the struct.
 * Times are microseconds: *_real on CLOCK_REALTIME, *_usec durations. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>

#include "lib/base/addr.h"
#include "lib/wire/input.h" /* enum ack_mode */
#include "lib/wire/messages-limits.h"
#include "lib/wire/tasks.h"
#include "lib/wire/version.h"

#define LINK_PATH "/org/primus/Link1"
#define LINK_INTERFACE "org.primus.Link1"

/* Bounds of what a peer may send. */
#define LINK_UNITS_MAX 32768u /* units or exit records in one registration */
#define LINK_ARGV_MAX 4096u
#define LINK_ENV_MAX 8192u
#define LINK_BYTES_MAX (2u << 20)   /* argv, environment and secrets of one order together */
#define LINK_CREDITS_MAX 1024u      /* tasks that an executor asks for at once */
#define LINK_CHUNK_MAX (256u << 10) /* bytes of a file or log in one message */
#define LINK_GPUS_MAX 64u
#define LINK_PORTS_MAX 64u
#define LINK_WORK_MAX 4096u /* work directories in one registration; the rest come with the next */

/* D-Bus error names on the link. */
#define LINK_ERROR_VERSION "org.primus.Error.Version" /* the versions cannot work together */
#define LINK_ERROR_REFUSED                                                                                   \
        "org.primus.Error.Refused"                /* this node may not (revoked, unknown, root's job ...) */
#define LINK_ERROR_STALE "org.primus.Error.Stale" /* lower term, other cluster, or old node epoch */
#define LINK_ERROR_ALREADY_RAN "org.primus.Error.AlreadyRan" /* an exit record of that name exists */
#define LINK_ERROR_PORT_TAKEN "org.primus.Error.PortTaken"   /* a granted port is in use on the host */
#define LINK_ERROR_UNKNOWN "org.primus.Error.UnknownExecutor"
#define LINK_ERROR_START "org.primus.Error.StartFailed" /* systemd refused the unit; the message says why */
#define LINK_ERROR_NOT_SERVED "org.primus.Error.NotServed" /* the host runs nothing as that user */
#define LINK_ERROR_PROLOG "org.primus.Error.Prolog"      /* the site's prolog failed; the message says how */
#define LINK_ERROR_USER_FULL "org.primus.Error.UserFull" /* the host runs as many of his as it takes */
#define LINK_ERROR_NOT_FOUND "org.primus.Error.NotFound"
#define LINK_ERROR_BUSY "org.primus.Error.Busy"

/* Further bounds; the append functions keep them (-E2BIG, -EINVAL), the read functions insist on them. */
#define LINK_TEXT_MAX 1024u /* bytes of a line for people */
#define LINK_PATH_MAX 4095u /* bytes of a path */
#define LINK_GPU_NAME_MAX 128u
#define LINK_SECRETS_MAX 256u
#define LINK_IDENTITY_MAX 64u
#define LOG_IDENTIFIER_MAX 256u      /* bytes of a SYSLOG_IDENTIFIER that is asked for */
#define LINK_CSR_MAX 8192u           /* bytes of a certificate request */
#define LINK_MESSAGE_MAX (32u << 20) /* bytes of one message; the pump drops a node that claims more */

/* D-Bus signatures of the structs below: "a" LINK_EXIT_SIGNATURE is an array of exit reports. */
#define LINK_ID_SIGNATURE "(ayusuu)"
#define LINK_WELCOME_SIGNATURE "(qqsayttttt)"
#define LINK_INVENTORY_SIGNATURE "(sssuta(ssts)qqbb(yayq))"
#define LINK_UNIT_SIGNATURE "(" LINK_ID_SIGNATURE "saytb)"
#define LINK_EXIT_SIGNATURE "(" LINK_ID_SIGNATURE "ayssibbttttttts)"
#define LINK_COUNTERS_SIGNATURE "(tttt)"
#define LINK_ORDER_SIGNATURE "(" LINK_ID_SIGNATURE "yuaayayaayasa(say)tttuasasaqttsssuayb)"

/* Conventions. X_append: 0 or negative errno; lines for people (detail, error, model ...) are made valid,
 * single-line and short enough on the way. X_read: 1 when *ret was filled, 0 at the end of the array it is
 * called in (nothing written), -EBADMSG or -ENOMEM. So an array is read by sd_bus_message_enter_container(m,
 * 'a', LINK_EXIT_SIGNATURE); while ((r = exit_report_read(m, &e)) > 0) ... sd_bus_message_exit_container(m);
 */

/* ---- parts of messages ---- */

/* The trailing a{sv}: an empty one, and passing over one of whatever content. The latter also insists that
 * the message ends there. */
int link_append_extra_empty(sd_bus_message *m);
int link_skip_extra(sd_bus_message *m);

/* The same, or one within a message: f reads the value behind each key, or passes it over. 1; -EBADMSG or
 * -ENOMEM, also where f returns less than 0. */
typedef int (*link_entry_reader)(sd_bus_message *m, const char *key, void *userdata);
int link_read_entries(sd_bus_message *m, link_entry_reader f, void *userdata);

/* ay of 16 bytes. A null id is refused on reading. */
int link_append_id128(sd_bus_message *m, sd_id128_t id);
int link_read_id128(sd_bus_message *m, sd_id128_t *ret);

/* ay of at most max bytes; the pointer is into the message. */
int link_read_bytes(sd_bus_message *m, size_t max, const void **ret, size_t *ret_size);

/* s of at most max bytes without control characters; allocated. */
int link_read_text(sd_bus_message *m, size_t max, char **ret);
/* s, made valid UTF-8 in one line and cut at max bytes (at most LINK_TEXT_MAX); NULL is "". */
int link_append_text(sd_bus_message *m, const char *s, size_t max);

/* ---- identity ---- */

/* Which attempt of which executor. role is "" in no valid id; job_uid is not null. */
struct executor_id {
        sd_id128_t job_uid;
        uint32_t job;
        char role[33];
        uint32_t index;
        uint32_t attempt; /* counts up from 1, also over job attempts; never reused */
};

int executor_id_append(sd_bus_message *m, const struct executor_id *id);
int executor_id_read(sd_bus_message *m, struct executor_id *ret);
bool executor_id_equal(const struct executor_id *a, const struct executor_id *b);

/* ---- agent -> master: Hello(q major, q minor, s build, as features, a{sv}) -> struct welcome ---- */
/* One-way messages are method calls with NO_REPLY_EXPECTED: a vtable marks them
 * SD_BUS_VTABLE_METHOD_NO_REPLY, a sender uses sd_bus_message_set_expect_reply(m, false). */
/* a{sv} of Hello: "bulk" b (this is the second connection, for files and logs), "calls" b (the third, for
 * calls of the host's people; only to a master whose welcome has it), "node" s (must equal the certificate's
 * name).
 */
enum link_channel {
        LINK_MAIN,
        LINK_BULK,
        LINK_CALLS,
        _LINK_CHANNEL_MAX
};

struct welcome {
        uint16_t major, minor;
        char *build;
        sd_id128_t cluster;
        uint64_t term;
        uint64_t epoch;          /* of this node; rises with each registration */
        uint64_t heartbeat_usec; /* how often the agent sends Heartbeat */
        uint64_t lost_usec;      /* silence after which masterd counts the node LOST */
        uint64_t spread_usec;    /* random delay an agent waits before it dials again after losing a master */
};
int welcome_append(sd_bus_message *m, const struct welcome *w);
int welcome_read(sd_bus_message *m, struct welcome *ret);
/* The a{sv} behind it: "calls" b, the master takes calls of this host's people. */
int welcome_append_extra(sd_bus_message *m, bool calls);
int welcome_read_extra(sd_bus_message *m, bool *ret_calls);
void welcome_done(struct welcome *w);

/* Behind the text of an error Version: who refuses. An agent that knows master and cluster by these takes the
 * refusal as an answer to a heartbeat, and masterd takes such a Hello as one: the host is there, only its
 * agent cannot talk. */
struct link_refusal {
        sd_id128_t cluster;
        uint64_t term;
};
int link_refusal_append(sd_bus_message *error, const struct link_refusal *r);
/* From the start of the error: 1; 0: it does not say. */
int link_refusal_read(sd_bus_message *error, struct link_refusal *ret);

/* ---- agent -> master: Register(s boot_id, inventory, a(unit), a(exit), a{sv}) -> () ---- */

struct gpu_info {
        char *uuid; /* stable name: NVML's "GPU-...", or "pci-0000:3b:00.0" without NVML */
        char *model;
        uint64_t memory; /* bytes, 0: unknown */
        char *nodes;     /* device nodes it needs, space-separated: "/dev/nvidia0" */
        uint32_t numa;   /* index into inventory.numa */
        char pci[16];    /* "0000:3b:00.0"; the agent's alone */

        /* Of the registration's a{sv}. */
        char *mig;      /* profile, "1g.10gb", of a part of a GPU; NULL: it is a whole one */
        char *parent;   /* of a part: uuid of the GPU that it is of, which is not listed itself; or NULL */
        uint64_t links; /* bit N: joined to GPU N of the inventory by something faster than the host's bridges
                         */
};

/* A network that a host is in, over a link that is up. */
struct network_info {
        char name[17]; /* of the interface */
        struct addr address;
        uint8_t bits;
        uint32_t mbps; /* of the link */
};

/* Whom the host serves, as far as it can be told beforehand: what refuses early. The host itself decides. */
struct serves_info {
        bool known;
        uint32_t min_uid;
        bool listed; /* only the users of allow, and those of groups */
        bool groups; /* also members of groups that only the host knows */
        uint32_t *allow, *deny;
        size_t n_allow, n_deny;
};
#define LINK_SERVES_MAX 256u /* uids in each list */

struct inventory {
        char *hostname;
        char *kernel;
        char *os;        /* PRETTY_NAME */
        uint32_t cpus;   /* online */
        uint64_t memory; /* bytes that may be given to jobs */
        struct gpu_info *gpus;
        size_t n_gpus;
        uint16_t port_first, port_last; /* range from which masterd may grant ports; 0,0: none */
        bool allow_root;                /* jobs of uid 0 accepted */
        bool controllers;               /* cgroup v2 cpu and memory controllers: limits are enforced */
        struct addr address;            /* what other hosts reach this one at; port 0 */

        /* Of the registration's a{sv}; what older agents do not say is NULL or 0. */
        char **labels; /* NULL-ended KEY=VALUE */
        char **numa;   /* NULL-ended lists of CPUs, "0-15,32-47", of each NUMA node */
        uint64_t shm;  /* bytes of /dev/shm */
        struct network_info *networks;
        size_t n_networks;
        struct serves_info serves;
};
#define LINK_LABELS_MAX 128u
#define LINK_NUMA_MAX 64u
#define LINK_NETWORKS_MAX 16u
/* Entries of an open a{sv}: labels, numa, gpuNuma, gpuMig, gpuParents, gpuLinks, shm, networks, serves. */
int inventory_append_extra(sd_bus_message *m, const struct inventory *i);
/* The value of an entry, if it is one of these: 1; 0: it is not, and is still to be read. */
int inventory_read_extra(sd_bus_message *m, const char *key, struct inventory *i);
int inventory_append(sd_bus_message *m, const struct inventory *i);
int inventory_read(sd_bus_message *m, struct inventory *ret);
void inventory_done(struct inventory *i);

/* A unit that exists on the host. */
enum unit_state {
        UNIT_STARTING,
        UNIT_RUNNING,
        UNIT_STOPPING,
        _UNIT_STATE_MAX,
        _UNIT_STATE_INVALID = -22
};
const char *unit_state_to_string(enum unit_state s);
enum unit_state unit_state_from_string(const char *s);

struct unit_report {
        struct executor_id id;
        enum unit_state state;
        sd_id128_t invocation;
        uint64_t started_real;
        bool stop_requested; /* by masterd's order */
};
int unit_report_append(sd_bus_message *m, const struct unit_report *u);
int unit_report_read(sd_bus_message *m, struct unit_report *ret);

/* How an executor ended. result is systemd's $SERVICE_RESULT: "success", "exit-code", "signal", "core-dump",
 * "oom-kill", "timeout", "watchdog", "resources", ..., or "no-record" when the unit vanished without a
 * record. */
struct exit_report {
        struct executor_id id;
        sd_id128_t invocation;
        char result[32];
        char code[16];       /* "exited", "killed", "dumped", or "" */
        int32_t status;      /* exit status, or signal number where code is killed or dumped */
        bool stop_requested; /* by masterd's order */
        bool stop_local;     /* by somebody on the host: systemctl stop, shutdown */
        uint64_t started_real, ended_real;
        /* UINT64_MAX: not known. io: of read(), write() and their kin; where no probe counted that, what
         * block devices did for it. */
        uint64_t memory_peak, cpu_usec, io_read, io_write;
        uint64_t oom_kills;
        char *detail; /* one line for people: "bash: line 1: foo: command not found"; may be "" */

        uint64_t cgroup_id; /* the agent's alone; 0: not known */
        /* The agent's alone: which process was killed for want of memory, and at whose limit; "": not known.
         */
        struct {
                char task[64], at[8];
                uint32_t pid;
                uint64_t held;
        } oom;
};
int exit_report_append(sd_bus_message *m, const struct exit_report *e);
int exit_report_read(sd_bus_message *m, struct exit_report *ret);
void exit_report_done(struct exit_report *e);

/* ---- agent -> master, one-way ---- */
/* Heartbeat(t seq, a{sv})                  answered by HeartbeatAck(t seq, a{sv})
 * Exited(exit, a{sv})                      answered by ExitCommitted(id, a{sv}) once it is on masterd's disk
 * FeedOpen(id, u credits, a{sv} {"sources" t})   the executor is ready for that many tasks
 * FeedReport(id, ay progress, u credits, (tttt) counters, a{sv} {"sync" t})
 * Ready(id, b ready, s why, a{sv})         it is ready, or why not in time; again with every registration
 * ScanBatch(id, ay entries, b last, s error, a{sv} {"waitingFor" s, "passed" t})   error "" = fine
 * TrialReport(id, t step, d metric, b invalid, a{sv})   a call: answered (a{sv}) once it is on masterd's disk
 *
 * AskSearch(id, s question, a{sv}) -> (s answer, a{sv})   a call of a search's searcher; answered once what
 * it asks for is on disk, and for events when there are some; and of any executor about checkpoints
 *
 * Metrics(t seq, a(id, u local, ay points), a{sv})   lib/wire/metrics.h; answered by MetricsKept(t seq,
 * a{sv})
 *
 * Tail(id, t offset, ay bytes, a{sv})   log bytes [offset, offset + n) of the executor since its start */

/* The arrays are packed (lib/wire/tasks.h) and bounded by TASKS_WIRE_MAX; agentd passes them on as they are.
 * What read functions hand out points into the message. Each of these functions is for what follows the id,
 * to the end of the message. */
struct feed_report {
        const uint8_t *progress; /* array of task_progress */
        size_t size;
        uint32_t credits; /* tasks it is ready for beyond those granted */
        struct feed_counters counters;
        bool has_sync;
        uint64_t sync;   /* of FEED_CONTROL_SYNC: this report is behind all acknowledgements up to then */
        bool has_hungry; /* it is of a release that says the following two */
        uint64_t hungry, unserved; /* processes of the trainer that wait for data; of these, so many for which
                                      nothing is at hand. At most LINK_CREDITS_MAX */
};
int feed_report_append(sd_bus_message *m, const struct feed_report *f);
int feed_report_read(sd_bus_message *m, struct feed_report *ret);

struct feed_opened {
        uint32_t credits;
        uint64_t sources; /* it knows so many; 0: it cannot be told of more (FeedSource) */
};
int feed_opened_append(sd_bus_message *m, const struct feed_opened *f);
int feed_opened_read(sd_bus_message *m, struct feed_opened *ret);

/* What a trial of a search says: a result at that many units of training, or that its parameters make no
 * sense. */
struct trial_report {
        struct executor_id id;
        uint64_t step;
        double metric; /* NaN: no number */
        bool invalid;
};
int trial_report_append(sd_bus_message *m, const struct trial_report *t);
int trial_report_read(sd_bus_message *m, struct trial_report *ret);

/* What the searcher of a search asks: JSON that agentd does not look into (masterd/job/trial-talk.h). */
struct search_question {
        struct executor_id id;
        const char *text; /* at most LINK_QUESTION_MAX bytes; the message's */
};
#define LINK_QUESTION_MAX (60u << 10) /* of an answer, too */
int search_question_append(sd_bus_message *m, const struct search_question *q);
int search_question_read(sd_bus_message *m, struct search_question *ret);

struct scan_batch {
        const uint8_t *entries; /* array of scan_entry */
        size_t size;
        bool last;
        char error[LINK_TEXT_MAX + 1];       /* "": fine */
        char waiting_for[LINK_TEXT_MAX + 1]; /* what is not there yet; "": nothing */
        uint64_t passed; /* what is still to come is of this batch (scan_entry.batch) or later; 0: not said */
};
int scan_batch_append(sd_bus_message *m, const struct scan_batch *b);
int scan_batch_read(sd_bus_message *m, struct scan_batch *ret);

/* ---- agent -> master: Renew(ay csr, a{sv}) -> (ay cert, a{sv}) ---- */
/* PEM texts; csr at most LINK_CSR_MAX bytes. A new certificate of the same name, asked for with the old one.
 */

/* ---- agent -> master, calls on the bulk connection ---- */
/* GetBundle(u uid, s sha256, t offset, u max, a{sv}) -> (t size, ay chunk, a{sv}) */

/* ---- master -> agent ---- */
/* Start(t term, t epoch, order, a{sv}) -> (ay invocation, t started_real, a{sv}), or a LINK_ERROR_*
 * Stop(t term, t epoch, id, t grace_usec, s reason, a{sv}) -> (); idempotent; returns when the stop is under
 * way DropJob(t term, ay job_uid, u job, a{sv})  one-way: no executor of the job will come back to this host
 * ExitCommitted(id, a{sv})                   one-way
 * MetricsKept(t seq, a{sv})                  one-way
 * HeartbeatAck(t seq, a{sv})                 one-way
 * Grant(id, ay grants, b last, a{sv})        one-way; last: no further task will come, end of file after
 * these
 * FeedControl(id, u op, t task, t value, a{sv})  one-way, to a feeder that is connected; masterd says it
 * again when a feeder opens
 * SetLimits(t term, t epoch, id, b check, t cpu_usec_per_sec, t memory_max, t job_memory_max, a{sv}
 *     {"memoryHigh" t, "cpuWeight" u, "tasksMax" u, "jobCpu" t, "jobTasks" t, "jobWeight" u}) -> ()
 * SetRendezvous(t term, t epoch, id, t rendezvous_epoch, u signal, aay env, a{sv})  one-way
 * ReadLog(id, ay cursor, u max, t wait_usec, a{sv}) -> (ay data, ay cursor, b end, a{sv}): journal
 * lines of the executor behind cursor ("" = from its start), each ended by \n; waits up to wait_usec for the
 * first byte; end: the executor has ended and nothing is left */

/* As above: for what follows the id. */
struct grant_batch {
        const uint8_t *grants; /* array of task_grant */
        size_t size;
        bool last;
};
int grant_batch_append(sd_bus_message *m, const struct grant_batch *b);
int grant_batch_read(sd_bus_message *m, struct grant_batch *ret);

struct feed_order {
        enum feed_control op;
        uint64_t task, value;
};
int feed_order_append(sd_bus_message *m, const struct feed_order *o);
int feed_order_read(sd_bus_message *m, struct feed_order *ret);

/* A source that its job has more, for the feeder of an executor. Only for one that said how many it knows. */
struct feed_source_order {
        uint32_t source;  /* its number: one that it has is passed over */
        const char *text; /* as input.json, with this source alone; at most INPUT_SOURCE_BYTES_MAX bytes */
};
int feed_source_append(sd_bus_message *m, const struct feed_source_order *o);
int feed_source_read(sd_bus_message *m, struct feed_source_order *ret);

/* Who else is in the job now, for an executor that runs. */
struct rendezvous_order {
        uint64_t epoch;  /* of the job; rises with each change of its membership */
        uint32_t signal; /* that its trainer gets; 0: none */
        char **env;      /* NULL-ended NAME=VALUE: the rendezvous variables */
};
int rendezvous_order_append(sd_bus_message *m, const struct rendezvous_order *o);
int rendezvous_order_read(sd_bus_message *m, struct rendezvous_order *ret);
void rendezvous_order_done(struct rendezvous_order *o);

enum on_partition {
        ON_PARTITION_REPLACE,
        ON_PARTITION_STOP,
        ON_PARTITION_WAIT,
        _ON_PARTITION_MAX,
        _ON_PARTITION_INVALID = -22
};
const char *on_partition_to_string(enum on_partition p);
enum on_partition on_partition_from_string(const char *s);

enum order_kind {
        ORDER_TRAINER,
        ORDER_FEED,
        ORDER_SCAN,
        _ORDER_KIND_MAX
}; /* FEED: trainer with data on stdin */

struct secret {
        char *name;
        void *data;
        size_t size;
};

/* What an order says in its a{sv}, which older agents ignore: keys that are not there are zero. */
struct start_extra {
        char ready[8];               /* "tcp", "notify", "file"; "": its process runs */
        uint32_t ready_port;         /* tcp */
        char *ready_file;            /* file: a pattern as output is, or NULL */
        uint64_t ready_timeout_usec; /* 0: none */
        char *cpus;                  /* CPUs of its own, "0-3,8", or NULL */
        uint64_t epoch;              /* of the job's rendezvous; 0: it has none */
        uint64_t watchdog_usec;      /* WATCHDOG=1 has to come so often; 0: not asked for */
        uint32_t n_rendezvous;       /* so many entries at the end of env are its variables */
        char *gpus;             /* uuids of its own of the GPUs that it may open, by spaces; NULL: none */
        uint32_t rdma;          /* not 0: it may open the host's RDMA devices, and lock memory */
        uint32_t stack_signal;  /* that has a program say where it is; 0: none */
        uint64_t memory_high;   /* bytes */
        uint64_t locked_memory; /* bytes */
        uint64_t job_cpu;       /* of the job's slice on this host, microseconds in a second; 0: none */
        uint64_t job_tasks;     /* of the same */
        uint64_t job_shm;       /* bytes of the /dev/shm that the job's executors here share; 0: the host's */
        uint32_t cpu_weight;
        uint32_t job_weight; /* of the job's slice */
        uint32_t open_files;
        uint32_t delegate; /* not 0: its cgroup is its user's to divide */
        char numa[8];      /* "require", "prefer": memory of the NUMA nodes of its CPUs; "" */
        struct io_limit *io;
        size_t n_io;
};
/* The whole a{sv}. */
int start_extra_append(sd_bus_message *m, const struct start_extra *x);
int start_extra_read(sd_bus_message *m, struct start_extra *ret);
void start_extra_done(struct start_extra *x);

/* Everything agentd needs to make one unit. */
struct start_order {
        struct executor_id id;
        enum order_kind kind;
        uint32_t uid;
        char **argv; /* NULL-ended; for ORDER_SCAN: the arguments behind "primus-executor --scan" */
        char *cwd;   /* absolute path on the host, or "": the job's work directory there */
        char **env;  /* NULL-ended NAME=VALUE: user's and rendezvous variables, delivered in a private file */
        char **identity; /* NULL-ended PRIMUS_*=...: public, in the unit's Environment= */
        struct secret *secrets;
        size_t n_secrets;
        uint64_t cpu_usec_per_sec; /* CPUQuotaPerSecUSec; 0: none, share by weight */
        uint64_t memory_max;       /* 0: none */
        uint64_t job_memory_max;   /* of the job's slice on this host; 0: none */
        uint32_t tasks_max;        /* processes and threads; 0: the host's default */
        char **gpus;               /* NULL-ended uuids this executor may open */
        char **visible_gpus;       /* NULL-ended uuids for CUDA_VISIBLE_DEVICES, in order */
        uint16_t *ports;
        size_t n_ports;
        uint64_t runtime_max_usec; /* 0: none */
        uint64_t grace_usec;       /* SIGTERM ... SIGKILL */
        enum on_partition on_partition;
        char bundle[65]; /* sha256 of the job's files in hex, or "" */
        enum ack_mode ack;
        uint32_t pipe_size; /* bytes, ORDER_FEED */
        char *output;       /* path pattern for stdout and stderr with %j %r %i %a %n, relative to the working
                               directory or not; "": the journal */
        bool new_privileges;      /* NoNewPrivileges=no */
        struct start_extra extra; /* travels beside the order */
};
/* Which of an order's texts has what could end a line (or, of cwd, what text_is_setting() refuses), static;
 * NULL: none. Not of argv, env and secrets, which may have any. What is sent was checked where it came from,
 * and is checked once more by who makes a unit of it. */
const char *start_order_bad_text(const struct start_order *o);
int start_order_append(sd_bus_message *m, const struct start_order *o);
int start_order_read(sd_bus_message *m, struct start_order *ret);
void start_order_done(struct start_order *o);
