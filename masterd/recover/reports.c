/* SPDX-License-Identifier: Apache-2.0 */
/* What a host that registers has of executors: those that ended, those that run. Invariants: what the agent
 * reports wins over what we remember about its units; what we remember wins over the agent about what should
 * be: a unit of an attempt that is over for us is stopped. */
#include "masterd/recover/reports.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/exits.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/attempts.h"
#include "masterd/link/orders.h"

static void unit_reported(struct manager *m, struct node *node, const struct unit_report *u, uint64_t epoch) {
        struct job *j = manager_job(m, u->id.job);
        struct executor *e;

        if (stuck_reported(node, &u->id))
                return;
        if (j && !sd_id128_equal(j->uid, u->id.job_uid))
                j = NULL;
        if (j && strcmp(u->id.role, SCAN_ROLE) == 0) {
                if (!feeding_scan_reported(j, node, &u->id))
                        (void)orders_stop_stale_later(m, node, &u->id);
                return;
        }
        e = j ? job_attempt(j, u->id.role, u->id.index, u->id.attempt) : NULL;
        if (!e || !executor_state_holds(e->state) || e->node != node) {
                if (node_may_log(node, now_boot()))
                        log_full(LOG_NOTICE, 0, &(struct log_fields){ .job = u->id.job, .node = node->name },
                                 "%s still runs job %u %s/%u attempt %u, which is over: stopping it",
                                 node->name, u->id.job, u->id.role, u->id.index, u->id.attempt);
                (void)orders_stop_stale_later(m, node, &u->id);
                return;
        }
        e->orders.confirmed = true;
        e->epoch = epoch;
        if (e->state == EXECUTOR_STOPPING)
                (void)orders_stop_later(m, e);
        else if (u->state == UNIT_STARTING)
                (void)orders_start_later(m, e); /* idempotent; its answer tells when it runs */
        else
                attempts_found_running(m, e, u->invocation, u->started_real);
}

void reports_take(struct manager *m, struct node *node, const struct registration *g) {
        for (size_t i = 0; i < g->n_exits; i++)
                exit_reported(m, node, g->exits + i);
        for (size_t i = 0; i < g->n_units; i++)
                unit_reported(m, node, g->units + i, g->epochs ? g->epochs[i] : 0);
}
