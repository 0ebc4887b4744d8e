/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a replay: numbers, and a picture of who was where when. */
#pragma once

#include <stdio.h>

#include "sim/searches.h"
#include "sim/trace.h"
#include "sim/world.h"

/* A run of an executor. */
struct segment {
        size_t job;
        uint32_t host, cpu_milli, gpus;
        uint64_t from, to;
};

struct recorder {
        const struct searches *searches;
        struct segment *list;
        size_t n, allocated;
        int error;
};
/* For world.segment, with the recorder as world.userdata. */
void recorder_segment(void *userdata, size_t job, const struct sched_hold *hold, uint64_t from, uint64_t to);

int report_text(FILE *f, const struct trace *t, const struct world *w, const struct recorder *r);
int report_json(FILE *f, const struct trace *t, const struct world *w, const struct recorder *r);
/* A line for each job, CSV. */
int report_jobs(FILE *f, const struct trace *t, const struct world *w);
/* Hosts from top to bottom, time from left to right. */
int report_svg(FILE *f, const struct trace *t, const struct world *w, const struct recorder *r);
