/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: nothing in memory or in the store names a removed node's struct. */
#include "masterd/fleet/removal.h"

#include <utlist.h>

#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/gpus-off.h"
#include "masterd/fleet/maintenance.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/attempts.h"
#include "masterd/link/identity.h"
#include "masterd/link/link.h"
#include "masterd/queue/placement.h"

int removal_of_node(struct manager *m, struct node *node) {
        struct executor *e, *next;
        struct job *j, *j_next;
        int r = identity_remove(m, node);

        if (r < 0)
                return r;
        link_drop(node, "the node was removed from the cluster");
        nodes_unwatch(&m->nodes, node);
        node->state = NODE_LOST;
        DL_FOREACH_SAFE2 (node->executors, e, next, node_next)
                attempts_node_lost(m, e, true);
        feeding_node_gone(m, node, false);
        stuck_forget(m, node);
        gpus_off_forget(node);
        placement_node_removed(m, node);
        maintenance_forget(m, node);
        store_delete_node(m->store, node->name);
        /* Executors that have ended still name it; forget that first. */
        HASH_ITER (hh, m->jobs.by_number, j, j_next)
                job_forget_node(j, node);
        nodes_remove(&m->nodes, node);
        manager_schedule(m);
        return 0;
}
