/* SPDX-License-Identifier: Apache-2.0 */
/* A host registers: the store's truth against what its agent reports. Invariant: an end is never invented;
 * what neither of them knows is begun again only where it cannot have begun before. */
#include "masterd/recover/registered.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/host-event.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/liveness.h"
#include "masterd/life/attempts.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/recover/inventory.h"
#include "masterd/recover/reports.h"

/* Ends of jobs that the host has missed: its files of them can go. */
static void drop_ended(struct manager *m, struct node *node, const struct registration *g) {
        for (size_t i = 0; i < g->n_work; i++) {
                const struct work *w = g->work + i;
                struct job *j = manager_job(m, w->job);

                if (!j || job_state_ended(j->state) || memcmp(&j->uid, &w->uid, 4) != 0)
                        (void)orders_drop_job_later(m, node, w->uid, w->job);
        }
}

int recover_registered(struct manager *m, struct node *node, struct link *link,
                       const struct registration *g) {
        bool rebooted = !sd_id128_equal(node->boot_id, g->boot_id);
        enum node_state was = node->state;
        struct executor *e, *next;
        int r = inventory_take(m, node, &g->inventory);

        if (r < 0)
                return r;
        node->boot_id = g->boot_id;
        link->registered = true;
        /* It is here: what ends below on a host that was LOST is stopped by its agent, not given up. */
        node->state = NODE_READY;
        DL_FOREACH2 (node->executors, e, node_next) {
                e->orders.confirmed = false;
                e->orders.starting = false;
                e->orders.asked = NULL;
        }
        reports_take(m, node, g);
        DL_FOREACH_SAFE2 (node->executors, e, next, node_next) {
                if (e->orders.confirmed)
                        continue;
                if ((e->state == EXECUTOR_PLACED || e->state == EXECUTOR_STARTING) && !rebooted) {
                        /* Never begun there. After a reboot nobody knows: the order may have arrived before,
                         * and an attempt does not run twice. */
                        e->orders.confirmed = true;
                        (void)orders_start_later(m, e);
                } else
                        attempts_vanished(m, e);
        }
        liveness_watch(m, node);
        record_node(m, node);
        r = placement_node_changed(m, node);
        if (r < 0)
                return r;
        notice_node_changed(m, node);
        if (node_may_log(node, now_boot()))
                host_event(m, node, LOG_NOTICE, "registered",
                           "registered (%s, %u CPUs, %zu units, %zu endings%s)",
                           was == NODE_READY || was == NODE_SUSPECT ? "back" : "new", node->inventory.cpus,
                           g->n_units, g->n_exits, rebooted ? ", new boot" : "");
        TELL(m, node_registered, m, node, g);
        drop_ended(m, node, g);
        /* What waited for this node's word may go on. */
        DL_FOREACH2 (node->executors, e, node_next)
                if (!e->node_next || e->node_next->job != e->job) {
                        feeding_start(m, e->job);
                        feeding_run(m, e->job);
                }
        manager_schedule(m);
        return 0;
}
