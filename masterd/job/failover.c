/* SPDX-License-Identifier: Apache-2.0 */
/* What to do when an executor ended. Invariant: only EXECUTOR_EVENT_FAILED is ever counted. */
#include "masterd/job/failover.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

uint32_t failover_count(const struct failover_policy *p, struct failover_history *h, uint64_t now) {
        uint32_t drop = 0;

        if (p->window_usec == USEC_INFINITY)
                return h->n_failures + h->n_older;
        while (drop < h->n_failures && usec_sub(now, h->failures[drop]) > p->window_usec)
                drop++;
        if (drop > 0) {
                /* Older ones than the oldest dated are out of the window as well. */
                h->n_older = 0;
                h->n_failures -= drop;
                memmove(h->failures, h->failures + drop, h->n_failures * sizeof(h->failures[0]));
        }
        return h->n_failures + h->n_older;
}

static void remember(struct failover_history *h, uint64_t now) {
        if (h->n_failures == FAILOVER_REMEMBERED) {
                memmove(h->failures, h->failures + 1, (FAILOVER_REMEMBERED - 1) * sizeof(h->failures[0]));
                h->n_failures--;
                h->n_older++;
        }
        h->failures[h->n_failures++] = now;
}

static uint64_t next_delay(const struct failover_policy *p, struct failover_history *h, uint64_t started,
                           uint64_t now) {
        uint64_t delay = p->backoff_initial_usec;

        if (started > 0 && usec_sub(now, started) > p->backoff_max_usec)
                h->consecutive = 0;
        if (h->consecutive++ == 0)
                return 0;
        for (uint32_t i = 2; i < h->consecutive && delay < p->backoff_max_usec; i++)
                delay = usec_add(delay, delay);
        return MIN(delay, p->backoff_max_usec);
}

enum failover_action failover_decide(const struct failover_policy *p, struct failover_history *h,
                                     enum executor_event event, uint64_t started, uint64_t now,
                                     uint64_t *ret_delay_usec) {
        switch (event) {
        case EXECUTOR_EVENT_SUCCEEDED:
                if (p->restart != RESTART_ALWAYS)
                        return FAILOVER_DONE;
                break;
        case EXECUTOR_EVENT_FAILED:
                remember(h, now);
                if (p->restart == RESTART_NEVER)
                        return FAILOVER_LEAVE;
                if (failover_count(p, h, now) >= MAX(p->max_failures, 1u))
                        return p->exhausted == FAILURE_FAIL_APP       ? FAILOVER_FAIL_APP
                               : p->exhausted == FAILURE_FAIL_ATTEMPT ? FAILOVER_FAIL_ATTEMPT
                                                                      : FAILOVER_LEAVE;
                break;
        default: /* killed by somebody on the host, or lost with it: not its fault */
                break;
        }
        *ret_delay_usec = next_delay(p, h, started, now);
        return FAILOVER_RESTART;
}
