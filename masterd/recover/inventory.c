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
#include "masterd/job/peers.h"
#include "masterd/link/link.h"
#include "masterd/queue/placement-describe.h"
#include "masterd/queue/serving.h"

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

int inventory_take(struct manager *m, struct node *node, const struct inventory *new) {
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
