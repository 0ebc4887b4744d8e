/* SPDX-License-Identifier: Apache-2.0 */
/* What to do when an executor ended. Invariant: only EXECUTOR_EVENT_FAILED is ever counted. */
#include "masterd/job/failover.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static void remove_entries(struct failover_history *h, uint32_t first, uint32_t n) {
        uint32_t behind = h->n_failures - first - n;

        memmove(h->failures + first, h->failures + first + n, behind * sizeof(h->failures[0]));
        memmove(h->n_at + first, h->n_at + first + n, behind * sizeof(h->n_at[0]));
        h->n_failures -= n;
}

uint32_t failover_count(const struct failover_policy *p, struct failover_history *h, uint64_t now) {
        uint32_t drop = 0, sum = 0;

        while (p->window_usec != USEC_INFINITY && drop < h->n_failures &&
               usec_sub(now, h->failures[drop]) > p->window_usec)
                drop++;
        remove_entries(h, 0, drop);
        for (uint32_t i = 0; i < h->n_failures; i++)
                sum += h->n_at[i];
        return sum;
}

void failover_remember(struct failover_history *h, uint64_t when) {
        if (h->n_failures == FAILOVER_REMEMBERED) {
                uint32_t closest = 1;
                for (uint32_t i = 2; i < h->n_failures; i++)
                        if (h->failures[i] - h->failures[i - 1] <
                            h->failures[closest] - h->failures[closest - 1])
                                closest = i;
                h->n_at[closest - 1] += h->n_at[closest];
                remove_entries(h, closest, 1);
        }
        h->failures[h->n_failures] = when;
        h->n_at[h->n_failures++] = 1;
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
                (void)failover_count(p, h, now); /* what left the window makes room */
                failover_remember(h, now);
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
