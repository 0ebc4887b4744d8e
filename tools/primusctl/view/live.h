/* SPDX-License-Identifier: Apache-2.0 */
/* The block of lines that shows a running job and is redrawn in place. No bus in here; the time is an
 * argument. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/primusctl/bus/job.h"

struct live {
        FILE *out;
        bool color;
        unsigned lines; /* on the screen just now */
        double rate;    /* units a second, smoothed; < 0: not known yet */
        uint64_t last_units, last_usec, drawn_usec;
};

/* Takes a new reading of the data for the rate. now_usec: any clock that only goes forward. */
void live_sample(struct live *l, const struct data_status *d, uint64_t now_usec);

/* "data [####----] 12/30 tasks  1.2G of 3G  12M/s  ETA 30s", without colours. Into buf, which is returned. */
char *live_data_text(const struct live *l, const struct data_status *d, char *buf, size_t size);

/* "waiting for /data/x/_SUCCESS (hourly) and 2 more": what sources wait for; "" when none does. The same way.
 */
char *live_waiting_text(const struct data_status *d, char *buf, size_t size);

/* Draws the block over the old one; not more often than every 50 ms by now_boot, except for the first time.
 */
void live_draw(struct live *l, const struct job_properties *p, const struct job_status *s,
               const struct executor *executors, size_t n, uint64_t now_real, uint64_t now_boot);

/* Takes the block off the screen. */
void live_wipe(struct live *l);
