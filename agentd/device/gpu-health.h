/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a GPU is well, judged by its counters. Pure: no clock. */
#pragma once

#include "agentd/device/gpu-state.h"
#include "agentd/device/gpu-xid.h"

#define GPU_HEALTH_TEXT_MAX 256u

/* What is kept of a GPU between looks. Zeroed at first. */
struct gpu_health {
        unsigned throttled; /* looks in a row */
        uint64_t replays;   /* at the last look, and when it began to grow fast */
        bool known;
        unsigned replaying;
};

/* So many looks in a row before a clock that is held back, or a link that repeats itself, is said. */
#define GPU_HEALTH_LOOKS 3u
#define GPU_HEALTH_REPLAYS 50u /* between two looks */

/* The worst of what is to be said of it; text is "" where that is GPU_FINE. */
enum gpu_severity gpu_health_judge(struct gpu_health *h, const struct gpu_state *now,
                                   char text[static GPU_HEALTH_TEXT_MAX]);
