/* SPDX-License-Identifier: Apache-2.0 */
/* What a host is made of, as its agent says it when it registers. Invariant: whoever holds a GPU holds the
 * same one afterwards, wherever it now stands in the list. */
#include "masterd/recover/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/strv.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/ownhost.h"
#include "masterd/fleet/stuck.h"
#include "masterd/job/peers.h"
#include "masterd/link/link.h"
#include "masterd/node/gpus.h"
#include "masterd/queue/placement-describe.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/serving.h"

/* GPUs are held by position; the agent may list them in another order than last time, or without one that
 * has fallen off its bus. Executors for which that changes something; in the scheduler's books they hold
 * nothing until take_again(). */
struct moved {
        struct executor **executors;
        size_t n;
};

static void let_go(struct manager *m, struct node *node, const struct inventory *new, struct moved *moved) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next) {
                uint64_t gpus = gpus_remap(&node->inventory, new, e->place.gpus);
                if (gpus == e->place.gpus)
                        continue;
                placement_suspend_hold(m, e);
                e->place.gpus = gpus;
                moved->executors[moved->n++] = e;
        }
        stuck_let_go(m, node, new);
}

/* The node has its new list. */
static void take_again(struct manager *m, struct node *node, const struct moved *moved) {
        if (moved->n > 0 || node->stuck)
                (void)placement_node_changed(m, node); /* logged; registering tries it again */
        for (size_t i = 0; i < moved->n; i++)
                placement_resume_hold(m, moved->executors[i]);
        stuck_take_again(m, node);
}

int inventory_take(struct manager *m, struct node *node, const struct inventory *new) {
        struct inventory copy = *new;
        struct addr before = node->address;
        struct moved moved = {};
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
        moved.executors = calloc(node->n_executors + 1, sizeof(*moved.executors));
        if (!copy.networks || !moved.executors ||
            strings_copy(new->labels, strings_count(new->labels), &copy.labels) < 0 ||
            strings_copy(new->numa, strings_count(new->numa), &copy.numa) < 0 ||
            placement_add_labels(node->name, &copy) < 0 || node_merge_labels(node, copy.labels) < 0) {
                inventory_done(&copy);
                free(moved.executors);
                return -ENOMEM;
        }
        let_go(m, node, &copy, &moved);
        inventory_done(&node->inventory);
        node->inventory = copy;
        take_again(m, node, &moved);
        free(moved.executors);
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
