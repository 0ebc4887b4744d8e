/* SPDX-License-Identifier: Apache-2.0 */
/* The latest samples of an executor. masterd/watch/telemetry.h takes them. */
#pragma once

#include "masterd/job/job.h"
#include "masterd/job/series.h"

struct telemetry_latest {
        uint64_t before_usec, now_usec; /* the host's boot clock; before_usec 0: there is one sample */
        uint64_t received_boot;         /* ours */
        uint64_t before[_TELEMETRY_MAX], now[_TELEMETRY_MAX];
};

/* Microseconds of GPUs that the attempt has used, over restarts of its agent too. */
struct telemetry {
        struct telemetry_latest latest;
        uint64_t gpu_busy_usec; /* TELEMETRY_UNKNOWN: not measured */
};

/* Microseconds of GPUs that it has used so far; TELEMETRY_UNKNOWN where nobody has measured that. */
static inline uint64_t sample_gpu_used(const struct executor *e) {
        return e->watch.telemetry ? e->watch.telemetry->gpu_busy_usec : TELEMETRY_UNKNOWN;
}
