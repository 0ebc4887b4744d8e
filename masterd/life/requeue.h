/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that give way and wait again, for no fault of their own: preempted, at the end of their time slot,
 * because they asked for it, or because a person did. They keep their number, their data that is
 * acknowledged, and maxAppAttempts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "masterd/job/job.h"

struct manager;
struct node;
struct exit_report;

/* On disk: new ones at the end. */
enum requeue_cause {
        REQUEUE_NONE,
        REQUEUE_PREEMPTED,
        REQUEUE_TIME,  /* its time limit, with requeue */
        REQUEUE_ASKED, /* an executor ended with exit status 75 */
        REQUEUE_PERSON,
        REQUEUE_HELD,   /* a person holds it (masterd/life/suspension.h) */
        REQUEUE_PARKED, /* its search does */
        _REQUEUE_CAUSE_MAX,
};

#define REQUEUE_TEXT_MAX 256

/* At most so long from the decision until nothing of the job runs any more. */
uint64_t requeue_time_needed(const struct job *j);

/* The job has to go for another one: its signal, if it has one, then its stop. */
void requeue_preempt(struct manager *m, struct job *j, uint32_t by);
/* by goes, is held or has got its places: whoever was told to make room for it, and has not been stopped yet,
 * goes on. */
void requeue_not_needed(struct manager *m, struct job *by);
/* Its time limit is over. */
void requeue_time(struct manager *m, struct job *j);
/* Whether this end (judge_exit()) says that the job is to be requeued; then requeue_asked() before the end is
 * handled. */
bool requeue_asks(const struct executor *e);
void requeue_asked(struct manager *m, struct executor *e);
/* A person wants it. 0; or, with a sentence in text: -ESRCH it is over, -EALREADY it waits, -EINVAL an array,
 * -EAGAIN it is being stopped. */
int requeue_person(struct manager *m, struct job *j, uint32_t uid, const char *reason,
                   char text[static REQUEUE_TEXT_MAX]);

/* To be held: stopped at once. Only of one that is starting or runs. cause: REQUEUE_HELD, REQUEUE_PARKED. */
void requeue_to_hold(struct manager *m, struct job *j, enum requeue_cause cause);

/* The stop is through and the job QUEUED: what is to be counted and told. */
void requeue_begin(struct manager *m, struct job *j);
/* Another attempt begins for another reason: what was planned was for the one before. */
void requeue_plan_over(struct job *j);
/* It has been decided that the job is stopped, or it has ended: nothing of a former plan comes any more. */
void requeue_drop_timers(struct job *j);

/* The signal before the time limit. */
void requeue_arm_signal(struct manager *m, struct job *j);
/* Of a job that was loaded. */
void requeue_restored(struct manager *m, struct job *j);
/* The node is back: its executors may have missed their signal. */
void requeue_registered(struct manager *m, struct node *node);

/* Whether the job may not be tried yet; then it is tried again when it may. */
bool requeue_holds(struct manager *m, struct job *j);
