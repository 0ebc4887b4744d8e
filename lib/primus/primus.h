/* SPDX-License-Identifier: Apache-2.0 */
/* libprimus: data for a trainer that wants more than standard input. Link with -lprimus (pkg-config primus);
 * see primus(3).
 *
 *     struct primus *p;
 *     struct primus_record r;
 *     if (primus_open(NULL, &p) < 0) ...
 *     while (primus_next(p, &r) > 0)
 *             train(r.data, r.size);
 *     primus_close(p);
 *
 * Works the same whatever the job's input.mode is: stdin (the library reads descriptor 0), ring (shared
 * memory, no copy) or descriptor (the library preads). A struct primus is used by one thread; several
 * processes of a trainer (DataLoader workers) each open their own, and the executor's tasks are shared out
 * among them.
 *
 * Functions return 0 or more, or a negative errno; primus_error() then has a line for people. Strings and
 * records belong to the library unless said otherwise.
 *
 * What counts as acknowledged is the job's input.ack:
 *   release (default in ring and descriptor mode): a record, when the next one is asked for;
 *   explicit: what primus_ack() was called for;
 *   checkpoint: what the last primus_checkpoint_commit() covers; tasks stay with this executor (role and
 * index) over restarts; exit: everything, when the trainer exits 0;   lag, read: stdin mode alone. Whatever
 * was delivered and not acknowledged when the trainer ends is delivered again. */
#ifndef PRIMUS_H
#define PRIMUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRIMUS_API_VERSION 1

struct primus;

enum primus_mode {
        PRIMUS_STDIN,
        PRIMUS_RING,
        PRIMUS_DESCRIPTOR
};

/* One record. Valid until the next call of primus_next(), primus_next_block(), primus_next_range() or
 * primus_close(). */
struct primus_record {
        const void *data; /* read-only. text: the line without its newline; tfrecord: the payload; tar: the
                           * members, see primus_tar_next(); message: the value */
        size_t size;
        uint64_t task;     /* which task it is of */
        uint32_t source;   /* index of the job's sources */
        uint64_t position; /* where it begins, see primus(3) */
        const void *key;   /* message: its key, or NULL */
        size_t key_size;
        int64_t timestamp_msec;
};

/* Whole records one behind another, in their format's framing (text: lines with their newlines). */
struct primus_block {
        const void *data;
        size_t size;
        uint64_t task;
        uint32_t source;
        uint64_t position;
};

/* A range of a local file (descriptor mode alone). The descriptor is the library's and closed with the next
 * range. */
struct primus_range {
        int fd;
        const char *path;
        uint64_t offset,
                length; /* aligned to records; offset: where to go on, what lies before it was acknowledged */
        uint64_t task;
        uint32_t source;
};

/* Connects to the executor's feed ($PRIMUS_FEED). options: NULL. -ENOENT: not an executor with data
 * (primus_error() says so). */
#define PRIMUS_INTERRUPTIBLE 1u /* what waits returns -EINTR when a signal's handler has run */
struct primus_options {
        uint32_t size;          /* sizeof(struct primus_options), for later additions */
        uint32_t flags;         /* PRIMUS_INTERRUPTIBLE */
        const void *checkpoint; /* input.ack checkpoint: the state that the trainer went on from, or NULL for
                                   none */
        size_t checkpoint_size;
};
int primus_open(const struct primus_options *options, struct primus **ret);
void primus_close(struct primus *p);

/* 1: *ret is the next record. 0: there is no more data. -EBADMSG: a record is broken; its task has been
 * reported as failed, and the next call goes on with another. Blocks until there is one. */
int primus_next(struct primus *p, struct primus_record *ret);
/* The same for all the records that are at hand, at most max_bytes of them (0: as many as there are). */
int primus_next_block(struct primus *p, size_t max_bytes, struct primus_block *ret);
/* The records of the latest block, one after another: *iterator begins as 0. 1; 0: no more; -EBADMSG: the
 * bytes are no record. */
int primus_block_next(struct primus *p, const struct primus_block *block, size_t *iterator,
                      struct primus_record *ret);
/* The same for ranges. Report where you are with primus_ack_position(). -EOPNOTSUPP: not in descriptor mode.
 */
int primus_next_range(struct primus *p, struct primus_range *ret);

/* Acknowledging does nothing, and returns 0, where the job's input.ack is another: a trainer need not know.
 * explicit: everything that was delivered up to and including the latest record (or block) counts. */
int primus_ack(struct primus *p);
/* The first n records of the latest block count (a block that is read record by record, as Python does). With
 * checkpoint, primus_checkpoint() describes what lies up to there. -EINVAL: the block has not so many. */
int primus_ack_records(struct primus *p, uint64_t n);
/* Descriptor mode: the file's bytes below position count; at offset + length the task is done. */
int primus_ack_position(struct primus *p, uint64_t task, uint64_t position);
/* The latest record's task cannot be used; why is one line. Another task follows. */
int primus_fail(struct primus *p, const char *why);

/* The file (URL, topic and partition) that the latest record is of, for messages. 1: *ret, valid until the
 * next call with this handle; 0: not known (plain standard input, a primus-executor of a release before this
 * one). May ask the executor, so it is nothing for every record. */
int primus_task_path(struct primus *p, const char **ret);

/* Exactly once, with a trainer that keeps checkpoints. primus_checkpoint() describes everything delivered so
 * far: keep those bytes in your own checkpoint, and call primus_checkpoint_commit() once that is durable. A
 * restarted trainer passes the bytes of the checkpoint that it goes on from to primus_open(): exactly the
 * records behind it follow, once each, even when it ended between writing its checkpoint and the commit.
 * *ret: allocated, for free(). */
int primus_checkpoint(struct primus *p, void **ret, size_t *ret_size);
int primus_checkpoint_commit(struct primus *p, const void *checkpoint, size_t size);

/* Walks the members of a tar record: name and contents point into the record. *iterator begins as 0. 1, 0: no
 * more, -EBADMSG. */
int primus_tar_next(const struct primus_record *r, size_t *iterator, const char **ret_name,
                    size_t *ret_name_size, const void **ret_data, size_t *ret_size);

/* The same for the records of the latest block, many at once. *iterator begins as 0; names: their names, one
 * behind another. Gives whole records: the number of members, 0: no more; -ENOBUFS: the next record has more
 * members than n, or longer names than names_size; -EBADMSG. */
struct primus_member {
        uint64_t record;     /* the record it is of, of those of this call */
        uint64_t data, size; /* where it begins in the block */
        uint64_t name_end;   /* in names; it begins where the one before ends */
};
int primus_block_members(struct primus *p, const struct primus_block *block, size_t *iterator,
                         struct primus_member *ret, size_t n, char *names, size_t names_size);

/* The header line of the CSV file that the latest record is of, without its newline. 1; 0: there is none (in
 * stdin mode it comes as the first record). */
int primus_header(const struct primus *p, const void **ret, size_t *ret_size);

enum primus_format {
        PRIMUS_TEXT,
        PRIMUS_RAW,
        PRIMUS_FIXED,
        PRIMUS_TFRECORD,
        PRIMUS_TAR,
        PRIMUS_CSV,
        PRIMUS_MESSAGE
};
/* Of a source, as primus_record and primus_block name it. */
enum primus_format primus_source_format(const struct primus *p, uint32_t source);

enum primus_ack_mode {
        PRIMUS_ACK_LAG,
        PRIMUS_ACK_EXIT,
        PRIMUS_ACK_READ,
        PRIMUS_ACK_RELEASE,
        PRIMUS_ACK_EXPLICIT,
        PRIMUS_ACK_CHECKPOINT
};
/* The job's input.ack. */
enum primus_ack_mode primus_get_ack_mode(const struct primus *p);
enum primus_mode primus_get_mode(const struct primus *p);
/* Readable (poll, epoll) when primus_next() would probably not block. Belongs to the library. */
int primus_get_fd(struct primus *p);
/* Microseconds that this handle has waited for data. */
uint64_t primus_waited_usec(const struct primus *p);
/* Why the last call failed, in one line; "" when none has. p NULL: of primus_open() in this thread. */
const char *primus_error(const struct primus *p);

/* The checksum that a TFRecord has of its length and of its data, for who writes some: CRC-32C, masked as
 * TensorFlow does it. Needs no handle. */
uint32_t primus_tfrecord_checksum(const void *data, size_t size);

/* Checkpoints of a training, as primus.checkpoints of Python keeps them, and either reads the other's: in a
 * directory that a later attempt sees as well.
 *
 *     struct primus_store *s;
 *     struct primus_saved *c = NULL;
 *     const char *directory;
 *     if (primus_store_open("/shared/checkpoints", NULL, &s) < 0) ...
 *     if (primus_store_latest(s, 0, &c) > 0)
 *             ... read what is below primus_saved_path(c), go on from primus_saved_step(c) + 1
 *     ...
 *     if (primus_store_begin(s, step, NULL, &directory) >= 0) {
 *             ... write DIRECTORY/model
 *             primus_store_commit(s, (const char *[]){ "loss" }, &loss, 1, NULL);
 *     }
 *
 * What is written between begin and commit is a checkpoint when all of it is on disk, and before that it is
 * nothing: files are written beside, flushed and summed (SHA-256), and one rename makes it one. Of several
 * ranks each saves its part, of the same step, into the same directory; the checkpoint is there when all
 * parts are. In an executor of Primus rank 0 tells masterd of each, from a thread. A store is used by one
 * thread. */
struct primus_store;

#define PRIMUS_STORE_LOOKS 1u  /* only looks, while another process may be saving here as this rank */
#define PRIMUS_STORE_LARGER 2u /* the highest metric is the best */
struct primus_store_options {
        uint32_t size;        /* sizeof(struct primus_store_options), for later additions */
        uint32_t flags;       /* PRIMUS_STORE_... */
        uint32_t keep;        /* so many of the latest stay, 0: 2; rank 0 removes the others */
        uint32_t keep_best;   /* and so many of the best by metric */
        const char *metric;   /* NULL: none */
        uint32_t rank, world; /* world 0: $RANK and $WORLD_SIZE */
};
/* Makes the directory. Without PRIMUS_STORE_LOOKS this is that rank, started again, and what it had begun
 * before is taken away. -EPROTONOSUPPORT: a bucket, which Python's alone know. */
int primus_store_open(const char *directory, const struct primus_store_options *options,
                      struct primus_store **ret);
/* Waits up to ten seconds until masterd knows of all. What is begun is given up. */
void primus_store_close(struct primus_store *s);
/* Why the last call failed, in one line. s NULL: of primus_store_open() in this thread. */
const char *primus_store_error(const struct primus_store *s);

/* *ret_directory: write into it. feed (NULL: none, stays open as long as the store): where the data stood is
 * part of the checkpoint, and is acknowledged once that is whole (input.ack checkpoint). -EEXIST: there is
 * one of this step or of a later one; -EBUSY: another is begun. */
int primus_store_begin(struct primus_store *s, uint64_t step, struct primus *feed,
                       const char **ret_directory);
/* It is on disk, or this rank's part of it; else nothing of it is left. n metrics; metadata: JSON, or NULL.
 * -EINVAL: there is something in it that is neither a file nor a directory, or metadata is no JSON. What
 * primus_store_settle() fails with: it is on disk, and that has to be called again. */
int primus_store_commit(struct primus_store *s, const char *const names[], const double values[], size_t n,
                        const char *metadata);
/* Gives it up: nothing of it is left. */
int primus_store_abandon(struct primus_store *s);
/* Makes a checkpoint of the parts when all ranks have saved theirs, and acknowledges its data: 1, also where
 * nothing is left to be done; 0: not yet. The other calls do that too; call it before the trainer ends, until
 * it is 1, where ranks do not wait for each other anyway. */
int primus_store_settle(struct primus_store *s);
/* Removes those of later steps, before a training goes on from an earlier one. Rank 0, while no other saves.
 */
int primus_store_forget_after(struct primus_store *s, uint64_t step);

/* A checkpoint that is whole, as one rank sees it. */
struct primus_saved;

#define PRIMUS_STORE_VERIFY 1u /* every file is read, and held against its sum */
/* The latest, or the best by the store's metric: 1; 0: there is none. What is broken is passed over, with a
 * line on standard error. *ret is for primus_saved_free(). */
int primus_store_latest(struct primus_store *s, uint32_t flags, struct primus_saved **ret);
int primus_store_best(struct primus_store *s, uint32_t flags, struct primus_saved **ret);
/* The one that the job is to begin from ($PRIMUS_FROM, 'primusctl submit --from'), or that path: as rank 0 of
 * another training saved it. 1; 0: there is none; -EBADMSG: it is not whole. */
int primus_saved_open(const char *path, struct primus_saved **ret);
void primus_saved_free(struct primus_saved *c);
/* The directory of this rank's part; NULL where fewer ranks have written it than there are now. Like all
 * other texts, it belongs to c. */
const char *primus_saved_path(const struct primus_saved *c);
uint64_t primus_saved_step(const struct primus_saved *c);
/* Seconds since 1970. */
double primus_saved_time(const struct primus_saved *c);
/* So many ranks have written it. */
uint32_t primus_saved_world(const struct primus_saved *c);
/* NaN: it has none of that name. */
double primus_saved_metric(const struct primus_saved *c, const char *name);
/* JSON, "null" where there is none; NULL: no memory. */
const char *primus_saved_metadata(struct primus_saved *c);
/* Where the data stood, for primus_open(); NULL: it was not said. */
const void *primus_saved_data(const struct primus_saved *c, size_t *ret_size);

/* Whether this executor was told to end (SIGTERM): a job that gives way, is suspended or killed, a host that
 * is drained, a trial that is behind the others. 1; 0. The first call takes the signal over, so that it does
 * not end the process any more; a handler that was there is called as well. Who hears 1 saves what it has and
 * exits, within the job's stopGrace, behind which SIGKILL comes. Works the same outside of Primus. Negative:
 * the signal could not be taken over. */
int primus_should_stop(void);

/* A few words between the processes of a training: who is ready, a number from each, a path to all. Not for
 * tensors. Values are JSON, at most 16 MiB of text each; all ranks call the same, in the same order, and
 * those that use primus.distributed of Python may be among them. Processes of one executor meet on a Unix
 * socket, which no other user can connect to; those of several hosts at $MASTER_ADDR and $MASTER_PORT, where
 * each proves that it has the job's secret "group" (primusctl submit --secret group=FILE); what they say
 * behind that is not encrypted. A group is used by one thread. */
struct primus_group;

struct primus_group_options {
        uint32_t size;         /* sizeof(struct primus_group_options), for later additions */
        uint32_t rank, world;  /* world 0: $RANK and $WORLD_SIZE */
        uint32_t local_world;  /* processes of this executor; 0: $LOCAL_WORLD_SIZE, or world */
        const char *name;      /* NULL: "group"; a second group of the same processes needs another */
        const char *host;      /* NULL: $MASTER_ADDR; of several hosts */
        uint16_t port;         /* 0: $MASTER_PORT; a second group needs another */
        uint64_t timeout_usec; /* 0: ten minutes */
};
/* options: NULL. Waits until all have met: -ETIMEDOUT; -EINVAL: it is not said where. */
int primus_group_open(const struct primus_group_options *options, struct primus_group **ret);
/* The others may hear that this one has ended. */
void primus_group_close(struct primus_group *g);
uint32_t primus_group_rank(const struct primus_group *g);
uint32_t primus_group_size(const struct primus_group *g);
/* Returns when all have called it. All of these: -ECONNRESET: another rank has gone; -EPROTO: it calls
 * something else; -EINVAL: value is no JSON; -E2BIG. Behind any of them the group is of no use any more. */
int primus_group_barrier(struct primus_group *g);
/* value NULL: null. (*ret)[rank]: the value of each; gather: in rank 0, elsewhere *ret is NULL. All of it
 * belongs to the group, until the next call. */
int primus_group_gather(struct primus_group *g, const char *value, const char *const **ret);
int primus_group_allgather(struct primus_group *g, const char *value, const char *const **ret);
/* Rank 0's value, of the same lifetime. */
int primus_group_broadcast(struct primus_group *g, const char *value, const char **ret);
/* Why the last call failed, in one line. g NULL: of primus_group_open() in this thread. */
const char *primus_group_error(const struct primus_group *g);

/* How far the trainer is: a number that rises, such as its step. Needs no data and no handle; any thread and
 * any process of the executor may call it, as often as it likes (some 50 ns, no system call). `primusctl top`
 * shows steps per second, and health tells by it who hangs or lags. With a watchdog of the role
 * (primus-job(5)) it feeds that too, and so does the library while it waits for data after the first call.
 * Outside of Primus it does nothing. */
void primus_progress(uint64_t step);

/* What a trainer says of its training: values of so many names (letters, digits and _ - . / : of ASCII, at
 * most 64 bytes) behind that step. Any executor's process may, at any time and from any thread; `primusctl
 * metrics` and the page show them. Never waits: a thread sends about once a second. Of a name that has been
 * reported often, what comes within one of those is one point, with its count, last, lowest, highest and
 * mean. Where host or master are away for long, points become coarser; at the most those of the last second
 * are lost. A step lower than the one before begins again from there: what was beyond it is forgotten. Of
 * several processes of an executor, as torchrun and mpirun start them, each has its own. Outside of Primus it
 * does nothing. -EINVAL: that is no name; -ENOSPC: more than 128 names; -ECHILD: in a forked child, which has
 * to be another program. The other values are taken all the same. */
int primus_report(uint64_t step, const char *const names[], const double values[], size_t n);
/* Waits until primus-agentd has them all: -ETIMEDOUT. At the end of the program that is done for up to 2 s.
 */
int primus_report_flush(uint64_t timeout_usec);

/* A trial of a search (the job's search, primus-job(5)): $PRIMUS_TRIAL is its number, $PRIMUS_TRIAL_PARAMS
 * its parameters as a JSON object, $PRIMUS_TRIAL_SEED a seed for what it draws. It reports how good it is,
 * and may be stopped for it (SIGTERM, as any stop). Needs no data and no other handle. */
struct primus_trial;

/* -ENOENT: this is no trial. Starts a thread, which speaks with primus-agentd. */
int primus_trial_open(struct primus_trial **ret);
/* A result of the search's metric (NaN: it is no number) behind so many units of training, each step higher
 * than the one before; a trial that went back to a checkpoint may say again what it has said. Returns at
 * once, whether or not agentd and masterd are there: it is sent until masterd has it on disk. (It waits while
 * 1024 are not.) One process of the trial does that. -ECHILD: in a forked child. */
int primus_trial_report(struct primus_trial *t, uint64_t step, double metric);
/* The parameters make no sense: the trial is stopped, does not count, and (but of a grid or a list) there is
 * another one instead. */
int primus_trial_invalid(struct primus_trial *t);
/* Waits until masterd has all of them on disk: before the trainer exits. -ETIMEDOUT; -EREMOTEIO: one was
 * refused, primus_trial_error() says why. */
int primus_trial_flush(struct primus_trial *t, uint64_t timeout_usec);
const char *primus_trial_error(const struct primus_trial *t);
/* Gives up what is not flushed. */
void primus_trial_close(struct primus_trial *t);

/* The searcher of a search (the role "searcher" of a job with search, primus-job(5)): it says which trials
 * there are to be, and hears how they do. primus(3), SEARCHERS, has the questions and answers, JSON objects
 * of at most 60 KiB; primus.search and primus.optuna of Python speak them. */
struct primus_searcher;

/* -ENOENT: this is none. */
int primus_searcher_open(struct primus_searcher **ret);
/* The same of any executor, which may tell masterd of checkpoints (primus(3), CHECKPOINTS; primus.checkpoints
 * of Python does). -ENOENT: it is not one of Primus. */
int primus_questions_open(struct primus_searcher **ret);
/* Waits for the answer, which stays valid until the next call; asks again, and as long as it takes, while
 * agentd and masterd are started anew: what was asked before changes nothing. -EREMOTEIO: it is refused,
 * primus_searcher_error() says why; -E2BIG; -EINTR: a signal's handler has run; the same question again waits
 * on. Not for several threads. */
int primus_searcher_ask(struct primus_searcher *s, const char *question, const char **ret_answer);
const char *primus_searcher_error(const struct primus_searcher *s);
void primus_searcher_close(struct primus_searcher *s);

/* Who is in the job now. Executors come and go while it runs; whenever who is where has changed, the job's
 * epoch rises. A trainer that can adapt reads again, at once (below), or when it gets the signal of the job's
 * rendezvous.signal. */
struct primus_rendezvous;

/* What holds now. -ENOENT: not in an executor of Primus (PRIMUS_RENDEZVOUS_FILE). */
int primus_rendezvous_read(struct primus_rendezvous **ret);
/* The same once the epoch is higher than after: 1; 0: the time is over first (UINT64_MAX: it never is);
 * -EINTR: a signal's handler has run. */
int primus_rendezvous_wait(uint64_t after, uint64_t timeout_usec, struct primus_rendezvous **ret);
void primus_rendezvous_free(struct primus_rendezvous *r);
/* From 1 on. */
uint64_t primus_rendezvous_epoch(const struct primus_rendezvous *r);
/* The value of RANK, WORLD_SIZE, MASTER_ADDR, TF_CONFIG ...; NULL: there is none. */
const char *primus_rendezvous_get(const struct primus_rendezvous *r, const char *name);
/* All of them, NAME=VALUE one after another; line NULL: the first. NULL: no more. */
const char *primus_rendezvous_next(const struct primus_rendezvous *r, const char *line);

#ifdef __cplusplus
}
#endif
#endif
