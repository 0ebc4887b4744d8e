/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts about executors (masterd/health) carried out: events, what people see, and what the job's
 * configuration says is to be done. A verdict that stands is a row of the store from its beginning to its
 * end, with what was done about it; so a master that comes up again, and finds the same anew, neither says
 * nor does it twice. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/telemetry-fields.h"
#include "masterd/health/health.h"
#include "masterd/job/job.h"

struct manager;
struct looking;

/* A verdict that stands. */
struct episode {
        enum verdict_kind kind;
        uint32_t role, index;           /* role EPISODE_ALL: all of the job */
        uint32_t suspect_role, suspect; /* of all: the odd one out; EPISODE_ALL: none stands out */
        uint32_t attempt;               /* of the executor, or of the job */
        uint64_t since_real, begun_real, acted_real;
        enum health_action action;
        char *text;
        struct health_number numbers[HEALTH_NUMBERS_MAX]; /* none after a restart of the master */
        size_t n_numbers;
        uint64_t recalled_boot;  /* from the store, and not found again yet; else 0 */
        struct looking *looking; /* its threads are being asked for */
        struct episode *next, *prev;
};
#define EPISODE_ALL UINT32_MAX

/* What is known of a job that runs. */
struct job_health {
        struct health_gang *gang;
        struct episode *episodes; /* oldest first */
        struct job_spec *spec;    /* that its rules are of; only compared; NULL: it has none yet */
        uint64_t version;
        bool paused;
        uint32_t peeked; /* the executor that is the first to be looked at the next time */
};

/* The executor that it is about; of all: the odd one out. NULL: none, or it is gone. */
struct executor *healing_executor(const struct job *j, const struct episode *p);

/* Behind the jobs and their executors. */
int healing_load(struct manager *m);
/* Judges from now on. */
int healing_start(struct manager *m);
void healing_stop(struct manager *m);

/* A sample of an executor that runs, as its agent sent it. now_usec: CLOCK_BOOTTIME. */
void healing_observe(struct manager *m, struct executor *e, uint64_t now_usec,
                     const uint64_t values[static _TELEMETRY_MAX]);
/* What the timer does: judges all jobs. */
void healing_judge(struct manager *m, uint64_t now_usec);
/* The attempt has failed, and its history says so. */
void healing_failed(struct manager *m, struct executor *e);
/* The attempt is over. */
void healing_ended(struct manager *m, struct executor *e);
/* The job has ended, or begins again. */
void healing_job_ended(struct manager *m, struct job *j);
/* The job leaves memory. */
void healing_forget(struct job *j);

/* The action of a verdict about the role: the role's, the job's, or the site's. */
enum health_action healing_action(const struct manager *m, const struct job *j, uint32_t role,
                                  enum verdict_kind k);
