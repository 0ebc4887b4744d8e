/* SPDX-License-Identifier: Apache-2.0 */
/* Data of a job: scanning its sources, leasing tasks to executors, following them. Leases are soft: only what
 * is done, given up or acknowledged is on disk. After a restart of masterd nothing is granted for a job until
 * each of its executors that may hold tasks has reported them or has ended, so no task is granted twice while
 * a lease lives. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/messages.h"
#include "masterd/data/tasks.h"
#include "masterd/job/job.h"

struct manager;
struct node;

#define SCAN_ROLE "_scan" /* role of the executors that list a source; its index is the source */
#define SCAN_ATTEMPTS 3u

struct source {
        bool scanned;
        char *cursor;      /* path of the last file listed, or NULL */
        struct node *node; /* where it is being scanned; NULL: nowhere */
        uint32_t attempt;  /* of its unit */
        bool reported;     /* the node has said in its registration that the unit is there */
        uint32_t failures;
        sd_event_source *retry;
};

struct job_data {
        struct task_table table;
        struct source *sources; /* spec->n_inputs */
        size_t n_durable;       /* tasks up to this number are on disk, and so may be granted */
        bool finished;          /* enough tasks are done */
};

/* Makes j->data where the job has input. */
int feeding_new(struct job *j);
void feeding_free(struct job *j);

/* The job has executors on nodes: list what is not listed yet. */
void feeding_start(struct manager *m, struct job *j);
/* Another attempt of the job begins; done stays done. */
void feeding_restart(struct manager *m, struct job *j);
void feeding_stop(struct manager *m, struct job *j);
/* The job was loaded: what follows from its sources and tasks. */
void feeding_restored(struct job *j);
void feeding_opened(struct manager *m, struct node *node, const struct executor_id *id, uint32_t credits);
void feeding_reported(struct manager *m, struct node *node, const struct executor_id *id,
                      const struct feed_report *report);
void feeding_scanned(struct manager *m, struct node *node, const struct executor_id *id,
                     const struct scan_batch *batch);
/* True when the exit was that of a scan. */
bool feeding_scan_exited(struct manager *m, struct job *j, struct node *node,
                         const struct exit_report *report);
/* The executor holds nothing any more: its tasks go back. */
void feeding_gone(struct manager *m, struct executor *e);
/* Without inputManager.gracefulShutdown, the end of the data is the job's success: all tasks are over, and so
 * are the executors that were fed. */
bool feeding_decides(const struct job *j);
/* Grants what can be granted. */
void feeding_run(struct manager *m, struct job *j);
/* The node is LOST, or has registered anew (back) and reported its units: what it no longer lists is listed
 * again, there or on another one. */
void feeding_node_gone(struct manager *m, struct node *node, bool back);
/* A unit of a scan that an agent reported: true when it is the one we know. */
bool feeding_scan_known(struct job *j, struct node *node, const struct executor_id *id);
/* The same, for units in a registration. */
bool feeding_scan_reported(struct job *j, struct node *node, const struct executor_id *id);

/* What follows from the end of the executor is decided (executor.gone). */
void feeding_settled(struct manager *m, struct executor *e);
/* j->data->data has been changed from outside: it goes to disk, and what follows is done. */
void feeding_changed(struct manager *m, struct job *j);

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
/* Asks all feeders for what they know; done (from the loop, never before this returns) says whether all have
 * answered within the time. It is called once in any case: at the latest, with false, when the job leaves
 * memory. -ENODATA; -ENOMEM. */
int feeding_sync(struct manager *m, struct job *j, uint64_t timeout_usec,
                 void (*done)(void *userdata, bool all), void *userdata);

struct feeding_source_view {
        const char *name; /* of the configuration; borrowed */
        const char *kind; /* source_kind_to_string(); borrowed */
        uint64_t files, tasks, done, failed, leased, bytes, acked, records;
        double rate, record_rate; /* bytes (messages of Kafka) and records a second, over the last 30 s */
        uint64_t eta_usec;        /* UINT64_MAX: not known */
        bool scanned;
        const char *waiting_for; /* "" = nothing; borrowed */
};
/* -ENODATA: no such source. */
int feeding_source_view(struct job *j, uint32_t source, struct feeding_source_view *ret);
/* Executors that have no task and want one. */
uint32_t feeding_waiting(const struct job *j);
/* Whether this one does. */
static inline bool feeding_idle(const struct executor *e) {
        return e->wants && e->n_leases == 0;
}
/* Share of the tasks that are done, failed or skipped: 0..1; < 0: not known yet. */
double feeding_progress(const struct job *j);
