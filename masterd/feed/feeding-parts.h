/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of masterd/feed/feeding.h are to each other. */
#pragma once

#include "masterd/feed/feeding.h"
#include "masterd/node/node.h"
#include "masterd/store/store.h"

/* ---- feeding-scan.c */

/* The source is listed no further, and counts as listed to its end. */
void feeding_scan_over(struct manager *m, struct job *j, uint32_t source);

/* ---- feeding-flush.c: to disk, and rows of files back from there */

/* Writes what has changed; when it is on disk, feeding_run(). To be called before what an agent is told to
 * forget goes to disk. */
void feeding_flush(struct manager *m, struct job *j);
/* The same a little later, or at once where grants wait for it. */
void feeding_flush_soon(struct manager *m, struct job *j);
/* feeding_run() when what has been recorded so far is on disk. */
void feeding_run_later(struct manager *m, struct job *j);
void feeding_put_source(struct manager *m, struct job *j, uint32_t source);
/* Asks for the rows of files that data_prepare() lacks. */
void feeding_ask_files(struct manager *m, struct job *j);

/* ---- feeding-grants.c: who holds what */

/* Around everything that changes a task that may be leased: keeps the counts of those that are not read to
 * their end, and of the holder. */
struct task_before {
        struct executor *holder; /* NULL: nobody, or nobody who is known */
        bool unread;
};
struct task_before task_before(const struct job_data *d, const struct task *t);
void task_after(struct job_data *d, struct task_before before, const struct task *t); /* NULL: it is gone */

void feeding_adopt(struct job *j, struct task *t, struct executor *e); /* PENDING, or in limbo */
void feeding_give_back(struct job *j, struct executor *e); /* all its tasks: PENDING, first in the queue */
struct task **feeding_leases_of(struct job *j, const struct task *t); /* of its holder; NULL: not LEASED */
/* What task.told is when e tells of it now: it changes with each registration of its host, with which feeders
 * connect anew. Not 0. */
static inline uint64_t feeding_told(const struct executor *e) {
        return e->node->epoch + 1;
}
/* What its feeder says that it takes, and who waits there. */
void feeding_set_credits(struct executor *e, const struct taker_word *w);
/* It wants nothing, until it says anything. */
void feeding_wants_nothing(struct executor *e);
static inline struct executor *executor_of_taker(struct taker *t) {
        return (struct executor *)((char *)t - offsetof(struct executor, feed.taker));
}
/* Says the tasks that it holds once more, but for those that it has told of since its host registered: others
 * may have come to an end of which word was lost. */
void feeding_grant_again(struct executor *e);
/* The executor is not unknown any more. */
void feeding_known(struct executor *e);

/* ---- feeding-starved.c */

/* Tells people of those who wait for data although some is pending. When to look again; UINT64_MAX: no need.
 */
uint64_t feeding_look_for_starved(struct manager *m, struct job *j, uint64_t now);

/* ---- feeding-grow.c */

/* The executor's feeder is told of those sources that it does not know, before any task of them. Whether it
 * knows all. */
bool feeding_tell_sources(struct executor *e);

/* ---- feeding-control.c */

/* Nobody can do anything with its data any more, or it has none. */
static inline bool feeding_is_gone(const struct job *j) {
        return !j->data || job_state_ended(j->state) || j->state == JOB_STOPPING;
}

/* A message to the executor's feeder, which is not answered, up to the id. -ENOTCONN: its host is away. */
int feeding_message(const struct executor *e, const char *member, sd_bus_message **ret);
int feeding_control(struct executor *e, enum feed_control op, uint64_t task, uint64_t value);
/* The executor has answered all that was asked up to number, or will not answer. */
void feeding_synced(struct executor *e, uint64_t number);
void feeding_control_free(struct job *j);
/* Asks holders of slow tasks to give a part of them up, for executors that are idle. In how many microseconds
 * to look again. */
uint64_t feeding_trim(struct manager *m, struct job *j);

/* ---- feeding-reports.c */

/* Whether one more event of a single task is recorded: jobs have millions of these. */
bool feeding_may_tell(struct manager *m, struct job *j);
/* Whether no more is to be granted: enough is done, or too much has failed; and what follows. */
bool feeding_check(struct manager *m, struct job *j);

/* ---- feeding-history.c */

void feeding_source_totals(const struct job *j, uint32_t source, struct data_totals *ret);

/* ---- feeding-view.c */

void feeding_sample(struct job *j); /* the rates; called often, does something once a second */
