/* SPDX-License-Identifier: Apache-2.0 */
/* What to do when an executor ended: upstream's failover policies with right meanings. Pure; time is an
 * argument.
 *
 * - A failure counts within a sliding window; a success, a stop that somebody asked for, and a lost node do
 * not count.
 * - maxFailureTimes = N: the N-th failure within the window brings maxFailurePolicy (upstream: N = 1 is "no
 * restart").
 * - Restarts wait with exponential back-off: none before the first, then initial, doubling to max; a run
 * longer than max starts afresh. */
#pragma once

#include <stdint.h>

#include "masterd/job/states.h"
#include "masterd/spec/spec.h"

struct failover_policy {
        enum restart_type restart;
        uint32_t max_failures; /* >= 1 */
        enum failure_policy exhausted;
        uint64_t window_usec; /* USEC_INFINITY: for ever */
        uint64_t backoff_initial_usec, backoff_max_usec;
};

/* Kept per executor (role, index), over its attempts. Zero-initialised. */
#define FAILOVER_REMEMBERED 12
struct failover_history {
        uint64_t failures[FAILOVER_REMEMBERED]; /* times, newest last */
        uint32_t n_at[FAILOVER_REMEMBERED];     /* failures that this time stands for */
        uint32_t n_failures;                    /* entries used */
        uint32_t consecutive; /* restarts without a run longer than backoff_max in between */
};

enum failover_action {
        FAILOVER_DONE,
        FAILOVER_RESTART,
        FAILOVER_LEAVE,
        FAILOVER_FAIL_ATTEMPT,
        FAILOVER_FAIL_APP
};

/* event: how the attempt ended. now, started: the same clock, usec; started 0: it never ran. On
 * FAILOVER_RESTART *ret_delay_usec says how long to wait. Updates history. */
enum failover_action failover_decide(const struct failover_policy *policy, struct failover_history *history,
                                     enum executor_event event, uint64_t started, uint64_t now,
                                     uint64_t *ret_delay_usec);

/* Enters a failure of that time (not before those entered earlier). Where there is no room, the two entries
 * that are closest to each other become one, dated as the earlier. */
void failover_remember(struct failover_history *history, uint64_t when);

/* Failures within the window at that time: exact up to FAILOVER_REMEMBERED of them, and with an infinite
 * window; beyond that at most by a gap between two entries too few, never too many. */
uint32_t failover_count(const struct failover_policy *policy, struct failover_history *history, uint64_t now);
