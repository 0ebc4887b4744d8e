/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a job's data. masterd/feed/ changes it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/wire/input.h"
#include "masterd/data/data.h"
#include "masterd/data/takers.h"

struct node;
struct sums;
struct feeding_syncing;

#define RATE_SAMPLES 32u /* a rate is taken over so many samples, one a second */

struct rate_sample {
        uint64_t usec, bytes, records;
};

struct source {
        bool scanned;
        char *cursor;      /* path of the last file listed, or NULL */
        uint64_t batch;    /* of that file */
        uint64_t passed;   /* what is still to come is of this batch or later */
        char *waiting_for; /* what the listing waits for, or NULL */
        char *text;        /* as feeders are told it, where it was added; NULL: not made yet */
        struct node *node; /* where it is being scanned; NULL: nowhere */
        uint32_t attempt;  /* of its unit */
        bool reported;     /* the node has said in its registration that the unit is there */
        uint32_t failures;
        sd_event_source *retry;
        struct rate_sample samples[RATE_SAMPLES]; /* a ring */
        uint32_t n_samples;                       /* taken so far */
};

struct job_data {
        struct data *data;      /* NULL once the job has ended */
        struct input *input;    /* as executors are told it */
        char *input_text;       /* the same as JSON: their private file */
        struct source *sources; /* input->n_sources */
        bool finished;          /* enough tasks are done */
        uint64_t read_boot;     /* all that there is is read since then; 0: it is not, or nobody has looked */
        struct sums *sums;      /* of a job that is over: all that is kept of it in memory */

        struct takers takers;                     /* feeders with credits, and whose turn it is */
        uint64_t granted_since, n_granted, ahead; /* how fast tasks go: so many are made ahead */
        uint32_t n_unread;  /* leased tasks that are not read to their end: they may come back */
        uint32_t n_to_tell; /* feeders that are connected and have not been promised the end of file */
        uint32_t n_unknown; /* executors whose leases_unknown is set */
        uint32_t unknown;   /* index of one that is waited for, to be looked at first */
        struct task *limbo; /* may be held by executors on LOST hosts: leased to nobody */
        bool in_limbo;

        uint64_t pending_since; /* tasks are pending since then, as far as anybody has looked; 0: none are */
        uint64_t starved_since; /* people have been told that somebody waits beside them; 0: nobody does */
        uint64_t starved_look;  /* when to look again */

        bool durable_wanted;          /* feeding_run() is called when what has been recorded is on disk */
        sd_event_source *flush_timer; /* what has changed goes to disk then */
        sd_event_source *wake_timer;  /* what was deferred may be granted then; what is slow be split */
        uint64_t wake_usec;           /* when; 0: not armed */
        uint64_t still_since; /* nothing has been read since then while executors wait for data; 0: not looked
                                 at */
        uint64_t still_read;  /* what had been read then */
        uint64_t sampled_usec;
        uint64_t trimmed_usec; /* when slow tasks were looked for last */
        uint32_t n_events;     /* of tasks, since this master came up */
        uint64_t sync_number;
        struct feeding_syncing *syncing; /* feeding_sync() calls that are not answered */
};
