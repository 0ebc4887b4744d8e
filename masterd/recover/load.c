/* SPDX-License-Identifier: Apache-2.0 */
/* A new master's memory, from the store. Invariant: a host that was well has the LOST time to come back. */
#include "masterd/recover/load.h"

#include <errno.h>
#include <stdio.h>

#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/revive.h"
#include "masterd/node/gpus.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"

static int load_node(void *userdata, const struct node_record *r) {
        struct manager *m = userdata;
        struct node *node;
        int k = r->port_first > UINT16_MAX || r->port_last > UINT16_MAX
                        ? -EUCLEAN
                        : nodes_add(&m->nodes, r->name, &node);

        if (k < 0)
                return k;
        snprintf(node->serial, sizeof(node->serial), "%s", r->serial);
        node->epoch = r->epoch;
        if (sd_id128_from_string(r->boot_id, &node->boot_id) < 0)
                node->boot_id = SD_ID128_NULL;
        /* One that was well has the LOST time to come back; see liveness_start(). */
        node->state = r->state == NODE_JOINING || r->state == NODE_LOST || r->state >= _NODE_STATE_MAX
                              ? (enum node_state)(r->state % _NODE_STATE_MAX)
                              : NODE_SUSPECT;
        if (*r->address)
                (void)addr_parse(r->address, 0, &node->address);
        node->inventory.cpus = r->cpus;
        node->inventory.memory = r->memory;
        node->seen.real = r->seen_real;
        node->joined.real = r->joined_real;
        if (*r->joined_from)
                (void)addr_parse(r->joined_from, 0, &node->joined.from);
        node->joined.by = r->joined_by;
        node->joined.taken_over = r->taken_over;
        node->inventory.port_first = (uint16_t)r->port_first;
        node->inventory.port_last = (uint16_t)r->port_last;
        k = gpus_named(r->gpus, &node->inventory);
        if (k >= 0)
                k = placement_node_changed(m, node);
        return k;
}

int recover_load(struct manager *m) {
        int r = store_load_nodes(m->store, load_node, m);

        r = r < 0 ? r : TELL_LOADED(m, nodes_loaded);
        if (r >= 0)
                r = revive_load(m);
        if (r >= 0)
                r = feeding_load(m);
        if (r >= 0)
                r = queueing_load(m);
        r = r < 0 ? r : TELL_LOADED(m, jobs_loaded);
        return r < 0 ? r : revive_resume(m);
}
