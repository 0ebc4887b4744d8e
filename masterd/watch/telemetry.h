/* SPDX-License-Identifier: Apache-2.0 */
/* What agents measure of the executors that run: the latest two samples of each, and a bounded history of
 * each role (masterd/job/series.h). Nothing of it is stored: a master that comes up is told anew within
 * seconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/job/job.h"
#include "masterd/job/sample.h"
#include "masterd/job/series.h"

struct manager;
struct node;

/* All histories together; 23 KiB for a role with several executors that runs longer than two minutes. Roles
 * that come when it is used up have their latest samples, and no history. */
#define TELEMETRY_HISTORY_MAX (16u << 20)

/* Samples nearer to each other than that are passed over, */
#define TELEMETRY_APART_USEC (200 * USEC_PER_MSEC)
/* and so is what a node sends beyond this within a second. */
#define TELEMETRY_NODE_MAX 8192u

/* A Telemetry message of the node, read up to its end. Samples of executors that do not run there are passed
 * over. 1 when the node says more than it has to, and should be read more slowly; negative: not usable. */
int telemetry_received(struct manager *m, struct node *node, sd_bus_message *message);

/* The executor's attempt is over. */
void telemetry_ended(struct executor *e);
/* The job has ended, or begins again: its histories are over, and go to the store in the open batch. */
void telemetry_job_ended(struct manager *m, struct job *j);

const struct telemetry_latest *telemetry_of(const struct executor *e); /* NULL: nothing yet */

/* What its latest two samples come to. False (and all NAN) where there are none. */
bool telemetry_rates(const struct executor *e, float ret[static _SERIES_MAX]);

/* Over the executors of a role, or of a whole job. */
struct telemetry_total {
        uint32_t running, measured;
        uint32_t n[_SERIES_MAX]; /* of which that is known */
        double sum[_SERIES_MAX];
        float max[_SERIES_MAX]; /* NAN: of none */
        double cpu;             /* cores that they may use together; 0: one of them has no limit */
        uint64_t memory;        /* bytes, the same */
        uint32_t gpus;
};
void telemetry_total_clear(struct telemetry_total *t);
/* Adds one that holds a place, with its rates (all NAN: not measured). */
void telemetry_total_add(struct telemetry_total *t, const struct executor *e,
                         const float rates[static _SERIES_MAX]);
