/* SPDX-License-Identifier: Apache-2.0 */
/* From a submission to a job. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/job/job.h"

struct manager;

#define SECRETS_MAX 256u
#define SECRET_BYTES_MAX (1u << 20)

struct submission {
        uint32_t owner;
        const char *config; /* borrowed, or of_its_own */
        char *of_its_own;   /* or NULL */
        size_t config_size;
        char *name;             /* NULL: the configuration's */
        char *savepoint;        /* NULL: from the beginning; else masterd/admit/restore.h */
        char *key;              /* masterd/admit/keys.h; or NULL */
        bool trial;             /* it is only to be seen what would become of it */
        uint32_t parent;        /* the job that it comes from inside of; 0: of none */
        bool with_parent;       /* it ends with that */
        json_t *overrides;      /* masterd/admit/submit-options.h; or NULL */
        struct job_given given; /* cwd NULL: the configuration's, else the job's own directory */
};

void submission_done(struct submission *s);

#define SUBMIT_GOES_ON 1

/* The number of a job that is only tried. */
#define TRIAL_JOB UINT32_MAX

/* Makes a job of a submission; takes over what is given with it. On refusal sets the D-Bus error (BadConfig,
 * Refused, Busy) and returns its negative errno.
 * SUBMIT_GOES_ON: nothing was made; s->savepoint, which was not given, is where the user's progress of the
 * same stagingDir stands, and it is for restore_job(). Of a trial there is none of that: its job would go on
 * from s->savepoint, which is not looked into. It has the number TRIAL_JOB, needs no files, and is only to be
 * freed.
 *
 * A job that was made is known to nobody; what it waits for is looked up (depend_ask()), and it is admitted,
 * or freed (revive_job_free()). */
int submit_make(struct manager *m, struct submission *s, struct job **ret, sd_bus_error *error);
/* Puts it into the table, the open batch and the queue. Returns it. */
struct job *submit_admit(struct manager *m, struct job *j);

/* Both in one, for a job that waits for none that has left memory. */
int submit_job(struct manager *m, struct submission *s, struct job **ret, sd_bus_error *error);
