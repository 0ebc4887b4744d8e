/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart. Invariants: what the agent reports wins over what we remember about its units; what we
 * remember wins over the agent about what should be: a unit of an attempt that is over for us is stopped. */
#include "masterd/recover/recover.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/exits.h"
#include "masterd/fleet/liveness.h"
#include "masterd/fleet/ownhost.h"
#include "masterd/fleet/stuck.h"
#include "masterd/job/peers.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/revive.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/node/gpus.h"
#include "masterd/queue/placement-describe.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"
#include "masterd/queue/serving.h"

/* ---- from the store ---- */

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

        for (const struct listener *const *l = m->listeners; r >= 0 && l && *l; l++)
                if ((*l)->nodes_loaded)
                        r = (*l)->nodes_loaded(m);
        if (r >= 0)
                r = revive_load(m);
        if (r >= 0)
                r = feeding_load(m);
        if (r >= 0)
                r = queueing_load(m);
        for (const struct listener *const *l = m->listeners; r >= 0 && l && *l; l++)
                if ((*l)->jobs_loaded)
                        r = (*l)->jobs_loaded(m);
        return r < 0 ? r : revive_resume(m);
}

/* ---- against what an agent reports ---- */

/* GPUs are held by position; the agent may list them in another order than last time. */
static void remap_gpus(struct node *node, const struct inventory *old, const struct inventory *new) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next) {
                uint64_t mask = 0;
                for (size_t i = 0; i < old->n_gpus && i < 64; i++)
                        for (size_t k = 0; (e->place.gpus & (UINT64_C(1) << i)) && k < new->n_gpus &&k < 64;
                             k++)
                                if (strcmp(old->gpus[i].uuid, new->gpus[k].uuid) == 0)
                                        mask |= UINT64_C(1) << k;
                e->place.gpus = mask;
        }
}

static int take_inventory(struct manager *m, struct node *node, const struct inventory *new) {
        struct inventory copy = *new;
        struct addr before = node->address;
        struct executor *e;
        int r;

        copy.labels = copy.numa = NULL;
        copy.networks = NULL;
        r = serving_copy(&copy.serves, &new->serves);
        copy.hostname = strdup(new->hostname);
        copy.kernel = strdup(new->kernel);
        copy.os = strdup(new->os);
        copy.gpus = calloc(new->n_gpus + 1, sizeof(*copy.gpus));
        copy.n_gpus = 0;
        if (r < 0 || !copy.hostname || !copy.kernel || !copy.os || !copy.gpus) {
                inventory_done(&copy);
                return -ENOMEM;
        }
        for (size_t i = 0; i < new->n_gpus; i++, copy.n_gpus++)
                copy.gpus[i] =
                        (struct gpu_info){ .uuid = strdup(new->gpus[i].uuid),
                                           .model = strdup(new->gpus[i].model),
                                           .memory = new->gpus[i].memory,
                                           .nodes = strdup(new->gpus[i].nodes),
                                           .mig = new->gpus[i].mig ? strdup(new->gpus[i].mig) : NULL,
                                           .parent = new->gpus[i].parent ? strdup(new->gpus[i].parent) : NULL,
                                           .links = new->gpus[i].links,
                                           .numa = new->gpus[i].numa };
        copy.networks = calloc(new->n_networks + 1, sizeof(*copy.networks));
        if (copy.networks && new->n_networks > 0)
                memcpy(copy.networks, new->networks, new->n_networks * sizeof(*copy.networks));
        if (!copy.networks || strings_copy(new->labels, strings_count(new->labels), &copy.labels) < 0 ||
            strings_copy(new->numa, strings_count(new->numa), &copy.numa) < 0 ||
            placement_add_labels(node->name, &copy) < 0 || node_merge_labels(node, copy.labels) < 0) {
                inventory_done(&copy);
                return -ENOMEM;
        }
        remap_gpus(node, &node->inventory, &copy);
        inventory_done(&node->inventory);
        node->inventory = copy;
        serving_registered(m, node);
        if (copy.address.family != AF_UNSPEC)
                node->address = ownhost_address(m, node, &copy.address);
        else if (node->link)
                peer_address(node->link->peer, &node->address);
        node->address.port = 0;
        if (!addr_equal(&before, &node->address))
                DL_FOREACH2 (node->executors, e, node_next)
                        job_peers_drop(e->job);
        return 0;
}

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
                lifecycle_found_running(m, e, u->invocation, u->started_real);
}

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
        int r = take_inventory(m, node, &g->inventory);

        if (r < 0)
                return r;
        node->boot_id = g->boot_id;
        link->registered = true;
        /* It is here: what ends below on a host that was LOST is stopped by its agent, not given up. */
        node->state = NODE_READY;
        DL_FOREACH2 (node->executors, e, node_next) {
                e->orders.confirmed = false;
                e->orders.starting = false;
        }
        for (size_t i = 0; i < g->n_exits; i++)
                exit_reported(m, node, g->exits + i);
        for (size_t i = 0; i < g->n_units; i++)
                unit_reported(m, node, g->units + i, g->epochs ? g->epochs[i] : 0);
        DL_FOREACH_SAFE2 (node->executors, e, next, node_next) {
                if (e->orders.confirmed)
                        continue;
                if ((e->state == EXECUTOR_PLACED || e->state == EXECUTOR_STARTING) && !rebooted) {
                        /* Never begun there. After a reboot nobody knows: the order may have arrived before,
                         * and an attempt does not run twice. */
                        e->orders.confirmed = true;
                        (void)orders_start_later(m, e);
                } else
                        lifecycle_vanished(m, e);
        }
        liveness_watch(m, node);
        record_node(m, node);
        r = placement_node_changed(m, node);
        if (r < 0)
                return r;
        notice_node_changed(m, node);
        if (node_may_log(node, now_boot()))
                log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name },
                         "Node %s registered (%s, %u CPUs, %zu units, %zu endings%s)", node->name,
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
