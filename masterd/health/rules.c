/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts' names and defaults. */
#include "masterd/health/internal.h"

#define MINUTES(n) ((n)*60 * SECOND)
#define HOURS(n) MINUTES(60 * UINT64_C(n))

static const char *const names[_VERDICT_MAX] = {
        [VERDICT_HUNG] = "hung",       [VERDICT_STRAGGLER] = "straggler",   [VERDICT_IDLE] = "idle",
        [VERDICT_STARVED] = "starved", [VERDICT_THRASHING] = "thrashing",   [VERDICT_LEAKING] = "leaking",
        [VERDICT_OOM] = "oom",         [VERDICT_CRASH_LOOP] = "crash-loop",
};

const char *verdict_kind_to_string(enum verdict_kind k) {
        return k < 0 || k >= _VERDICT_MAX ? NULL : names[k];
}

const struct health_rules health_defaults = {
        .of = {
                [VERDICT_HUNG] = { .after_usec = MINUTES(10) },
                [VERDICT_STRAGGLER] = { .after_usec = MINUTES(10), .share_milli = 500 },
                [VERDICT_IDLE] = { .after_usec = MINUTES(30), .share_milli = 10 },
                [VERDICT_STARVED] = { .after_usec = MINUTES(10), .share_milli = 800 },
                [VERDICT_THRASHING] = { .after_usec = MINUTES(5), .share_milli = 400 },
                [VERDICT_LEAKING] = { .after_usec = MINUTES(30), .within_usec = HOURS(12) },
                [VERDICT_OOM] = { .after_usec = 0 },
                [VERDICT_CRASH_LOOP] = { .count = 3, .within_usec = MINUTES(30) },
        },
};
