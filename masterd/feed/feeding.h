/* SPDX-License-Identifier: Apache-2.0 */
/* Data of a job: the flows that join its pure state (masterd/data/data.h), the store and the agents. A source
 * is listed by a unit on one of the job's hosts (feeding-scan.c); tasks are granted to executors that want
 * some (feeding-grants.c); what these report is counted (feeding-reports.c) and becomes durable in batches
 * (feeding-flush.c); and people and the scheduler steer it (feeding-control.c). Leases are soft: on disk is
 * what is done, given up or acknowledged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/wire/input.h"
#include "lib/wire/messages.h"
#include "masterd/data/data.h"
#include "masterd/job/job-data.h"
#include "masterd/job/job.h"

struct manager;
struct node;
struct data_file_record;
struct data_state_record;

#define SCAN_ATTEMPTS 3u

/* ---- the life of the job */

/* Makes j->data where the job has input. */
int feeding_new(struct job *j);
void feeding_free(struct job *j);
/* The job has executors on nodes: list what is not listed yet. */
void feeding_start(struct manager *m, struct job *j);
/* Another attempt of the job begins; done stays done. */
void feeding_restart(struct manager *m, struct job *j);
void feeding_stop(struct manager *m, struct job *j);
/* The job has ended: what is known of its data goes to disk, what nobody needs any more goes. */
void feeding_ended(struct manager *m, struct job *j);
/* Its sums, of a job that was over when it was loaded. -EUCLEAN: this is not what feeding_ended() wrote. */
int feeding_restore_sums(struct job *j, const struct data_state_record *r);
/* Before the loop runs, and behind the jobs and executors: data of active jobs from the store. */
int feeding_load(struct manager *m);
/* The row as the data takes it; its path is allocated. -ENOMEM. */
int feeding_file_of(const struct data_file_record *r, struct data_file *ret);
/* An executor that holds its node may hold tasks that this master does not know of. */
void feeding_unknown(struct executor *e);
/* This master came up while it was between two attempts: under checkpoint, tasks may be its own that nobody
 * but its trainer's checkpoint knows of. They are kept from others until its next attempt has told of them.
 */
void feeding_between(struct executor *e);
/* The job is about to succeed, and fewer tasks are done than stopPolicy.taskSuccessPercent asks for: the
 * reason why it fails, into buf. Where it was not given, and where the data has no end, there is nothing to
 * be short of. */
bool feeding_short(const struct job *j, char *buf, size_t size);
#define FEEDING_SHORT_MAX (TASK_TEXT_MAX + 256u)

/* Without inputManager.gracefulShutdown, the end of the data is the job's success: all tasks are over, and so
 * are the executors that were fed. */
bool feeding_decides(const struct job *j);
/* Whether enough tasks are done. */
bool feeding_over(const struct job *j);
/* Grants what can be granted, and makes more where that is little. */
void feeding_run(struct manager *m, struct job *j);
/* j->data->data has been changed from outside: it goes to disk, and what follows is done. */
void feeding_changed(struct manager *m, struct job *j);

/* ---- what agents say */

void feeding_opened(struct manager *m, struct node *node, const struct executor_id *id,
                    const struct feed_opened *opened);
void feeding_reported(struct manager *m, struct node *node, const struct executor_id *id,
                      const struct feed_report *report);
void feeding_scanned(struct manager *m, struct node *node, const struct executor_id *id,
                     const struct scan_batch *batch);
/* True when the exit was that of a scan. */
bool feeding_scan_exited(struct manager *m, struct job *j, struct node *node,
                         const struct exit_report *report);
/* The attempt of the executor is over: its tasks go back; under input.ack checkpoint they are kept for its
 * next attempt, until feeding_settled() says that there will be none. */
void feeding_gone(struct manager *m, struct executor *e);
/* What follows from the end of the executor is decided (executor.gone). */
void feeding_settled(struct manager *m, struct executor *e);
/* What is listed on the node is listed elsewhere from now on: the node is to be left. */
void feeding_leave(struct manager *m, struct node *node);
/* The node is LOST, or has registered anew (back) and reported its units: what it no longer lists is listed
 * again, there or on another one. */
void feeding_node_gone(struct manager *m, struct node *node, bool back);
/* A unit of a scan that an agent reported: true when it is the one we know. */
bool feeding_scan_known(struct job *j, struct node *node, const struct executor_id *id);
/* The same, for units in a registration. */
bool feeding_scan_reported(struct job *j, struct node *node, const struct executor_id *id);

/* ---- what people and other modules ask for */

/* The job's state has changed to or from SUSPENDED: feeders are told to hold back, or to go on. One that
 * connects later is told as well. */
void feeding_suspend(struct manager *m, struct job *j);
void feeding_resume(struct manager *m, struct job *j);
/* Tries failed tasks again with a new budget, from where they were acknowledged; task 0: all of them. 0;
 * -ENODATA: the job has no data, or is over; -ENOENT: no such task, or it has not failed. */
int feeding_retry(struct manager *m, struct job *j, uint64_t task, uint64_t *ret_changed);
/* Counts a task as done without its being read (further): failed, pending or leased; task 0: all that have
 * failed. Returns the same. */
int feeding_skip(struct manager *m, struct job *j, uint64_t task, uint64_t *ret_changed);
/* Steers a source of a job that is not over. What executors have of it they read to its end. 0; -ENODATA: the
 * job has no data, or all of it is through; -ENOENT: no such source; -ENOTUNIQ: two of that name;
 * as data_steer(). */
enum feeding_source_state {
        FEEDING_SOURCE_AS_IT_IS,
        FEEDING_SOURCE_RUNNING,
        FEEDING_SOURCE_PAUSED,
        FEEDING_SOURCE_ENDED,   /* for ever: it brings no more than it has by now */
        FEEDING_SOURCE_REMOVED, /* for ever */
};
struct feeding_steering {
        enum feeding_source_state state;
        uint32_t weight; /* 0: as it is; at most INPUT_WEIGHT_MAX */
};
int feeding_steer(struct manager *m, struct job *j, const char *name, const struct feeding_steering *how);
/* Sources that a configuration has behind those of now. 0: feeding_grow() follows in this turn, once the
 * configuration is recorded, and takes the growth over; -EPERM: *why* tells the reason, a part of a sentence;
 * -ENOMEM. */
#define FEEDING_WHY_MAX 384u
struct feeding_growth;
int feeding_may_grow(struct job *j, const struct job_spec *after, struct feeding_growth **ret,
                     char why[static FEEDING_WHY_MAX]);
void feeding_grow(struct manager *m, struct job *j, struct feeding_growth *g);
struct feeding_growth *feeding_growth_free(struct feeding_growth *g);
DEFINE_CLEANUP(struct feeding_growth *, feeding_growth_free)
/* Asks all feeders for what they know; done (from the loop, never before this returns) says whether all have
 * answered within the time. It is called once in any case: at the latest, with false, when the job leaves
 * memory. -ENODATA; -ENOMEM. */
int feeding_sync(struct manager *m, struct job *j, uint64_t timeout_usec,
                 void (*done)(void *userdata, bool all), void *userdata);

/* Of all sources, also when the job is over and was loaded from the store. -ENODATA. */
int feeding_totals(const struct job *j, struct data_totals *ret);
bool feeding_scanned_all(const struct job *j);

struct feeding_source_view {
        const char *name; /* of the configuration; borrowed */
        const char *kind; /* source_kind_to_string(); borrowed */
        uint64_t files, tasks, done, failed, leased, bytes, acked, records;
        double rate, record_rate; /* bytes (messages of Kafka) and records a second, over the last 30 s */
        uint64_t eta_usec;        /* UINT64_MAX: not known */
        bool scanned;
        const char *waiting_for;       /* "" = nothing; borrowed */
        struct data_steering steering; /* of a job that is over: nothing */
};
/* The day or hour up to which all is through, of each source, UINT64_MAX: there is none; to be freed. NULL:
 * that cannot be told, or no memory. And in words, of sources of days or hours alone: "": there is none. */
uint64_t *feeding_time_points(const struct job *j);
char *feeding_time_point(const struct job *j, uint32_t source, uint64_t batch,
                         char buf[static TIME_POINT_MAX]);
/* -ENODATA: no such source. */
int feeding_source_view(struct job *j, uint32_t source, struct feeding_source_view *ret);
/* Who holds the task; NULL: nobody, or nobody who is known (after a restart, an executor on a LOST host). */
struct executor *feeding_holder(const struct job *j, const struct task *t);
/* Executors that have no task and want one. */
uint32_t feeding_waiting(const struct job *j);
/* Whether this one does. */
static inline bool feeding_idle(const struct executor *e) {
        return e->feed.taker.list != TAKER_OUT && e->feed.n_leases == 0;
}
/* Why somebody waits for data since some seconds, one line. False: nobody does. */
bool feeding_why(struct manager *m, struct job *j, char *buf, size_t size);
/* Share of the tasks that are done, failed or skipped: 0..1; < 0: not known yet. */
double feeding_progress(const struct job *j);
