/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of watch share. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/burst.h"
#include "masterd/checkpoint/models.h"
#include "masterd/checkpoint/registry.h"
#include "masterd/job/series.h"
#include "masterd/metric/metrics.h"

struct watch {
        struct series_budget histories; /* telemetry.c: what the roles' histories take */
        /* training.c: what they take, of whom, and what is not written yet */
        struct metric_budget metrics;
        struct metric_user *metric_users;
        struct metric_source *metrics_dirty;
        uint64_t metrics_due;       /* what was said before that is written in the next rounds */
        uint64_t metrics_round;     /* when the last one was */
        uint64_t metrics_before;    /* what came before that is on disk, and was told last */
        struct burst metrics_lines; /* of the log */
        uint32_t metrics_unsaid;    /* nodes that wait to hear what is on disk */
        sd_event_source *metrics_timer;
        struct checkpoints *checkpoints; /* checkpoints.c */
        struct models *models;           /* models.c */
        sd_event_source *health_timer;   /* healing.c: when executors are judged */
        uint32_t peek_first; /* healing-peek.c: the job whose threads are looked at first the next time */
};
