/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a network. Invariant: where anything is not known, the usual addresses are used. */
#include "masterd/node/network.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/node/node.h"

#define FASTER 2u /* so many times, or it is not worth to leave the network that is known to work */

static const struct network_info *within(const struct node *node, const struct addr_cidr *network) {
        for (size_t i = 0; i < node->inventory.n_networks; i++) {
                const struct network_info *w = node->inventory.networks + i;
                if (w->bits == network->bits && w->address.family == network->base.family &&
                    addr_cidr_contains(network, &w->address))
                        return w;
        }
        return NULL;
}

static bool is_well(const struct node *node, const struct network_info *w) {
        const struct node_condition *c = node_condition_find(node, CONDITION_LINK, w->name);

        return !c || c->c.severity < CONDITION_WARN;
}

/* Of the link that has the host's usual address; 0: not known. */
static uint32_t usual_speed(const struct node *node) {
        for (size_t i = 0; i < node->inventory.n_networks; i++)
                if (addr_equal(&node->inventory.networks[i].address, &node->address))
                        return node->inventory.networks[i].mbps;
        return 0;
}

/* The slowest host's speed in it; 0: not all are in it, or two have the same address there, as bridges of the
 * hosts' own making do. */
static uint32_t speed_of(const struct node *const *nodes, size_t n, const struct node *first,
                         const struct addr_cidr *network) {
        const struct network_info *own = within(first, network);
        uint32_t slowest = own->mbps;

        for (size_t i = 0; i < n; i++) {
                const struct network_info *w = nodes[i] ? within(nodes[i], network) : own;
                if (!w || w->mbps == 0 || (nodes[i] && !is_well(nodes[i], w)) ||
                    (nodes[i] && nodes[i] != first && addr_equal(&w->address, &own->address)))
                        return 0;
                slowest = MIN(slowest, w->mbps);
        }
        return slowest;
}

bool network_choose(const struct node *const *nodes, size_t n, struct addr_cidr *ret) {
        const struct node *first = NULL;
        uint32_t usual = UINT32_MAX, best = 0;
        bool several = false;

        for (size_t i = 0; i < n; i++) {
                if (!nodes[i])
                        continue;
                several |= first && nodes[i] != first;
                first = first ?: nodes[i];
                usual = MIN(usual, usual_speed(nodes[i]));
        }
        if (!several || usual == 0 || usual > UINT32_MAX / FASTER)
                return false;
        for (size_t i = 0; i < first->inventory.n_networks; i++) {
                const struct network_info *w = first->inventory.networks + i;
                const struct addr_cidr network = { w->address, w->bits };
                uint32_t speed;
                if (w->address.family != first->address.family || w->mbps / FASTER < usual)
                        continue;
                speed = speed_of(nodes, n, first, &network);
                if (speed / FASTER >= usual && speed > best) {
                        best = speed;
                        *ret = network;
                }
        }
        return best > 0;
}

const struct addr *network_address(const struct node *node, const struct addr_cidr *network) {
        const struct network_info *w = within(node, network);

        return w ? &w->address : &node->address;
}
