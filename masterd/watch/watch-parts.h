/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of watch share. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "masterd/job/series.h"

struct watch {
        struct series_budget histories; /* telemetry.c: what the roles' histories take */
        sd_event_source *health_timer;  /* healing.c: when executors are judged */
        uint32_t peek_first; /* healing-peek.c: the job whose threads are looked at first the next time */
};
