/* SPDX-License-Identifier: Apache-2.0 */
/* The address of masterd's own host. Invariant: it is one at which some other host has reached us, and one
 * that this host still has; until there is one, the node of this host is alone and loopback is good. */
#include "masterd/ownhost.h"

#include <sys/socket.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "masterd/api/api.h"
#include "masterd/epochs.h"
#include "masterd/job/peers.h"
#include "masterd/link.h"
#include "masterd/manager.h"
#include "masterd/placement.h"
#include "masterd/record.h"

/* This host has the address: it can be bound. What needs a scope cannot, and is of no use to others. */
static bool is_ours(const struct addr *a) {
        struct sockaddr_storage ss;
        socklen_t size = addr_to_sockaddr(a, &ss);
        _cleanup_close_ int fd = socket(a->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd >= 0 && bind(fd, (struct sockaddr *)&ss, size) >= 0;
}

struct addr ownhost_address(const struct manager *m, const struct node *node, const struct addr *reported) {
        /* What it had before masterd was started again is good until others are back. */
        const struct addr *known = m->reached.family != AF_UNSPEC ? &m->reached : &node->address;

        if (!addr_is_loopback(reported) || known->family == AF_UNSPEC || addr_is_loopback(known) ||
            !is_ours(known))
                return *reported;
        return *known;
}

static void move(struct manager *m, struct node *node) {
        struct addr address = ownhost_address(m, node, &node->inventory.address);
        char text[ADDR_TEXT_MAX];
        struct executor *e;

        if (addr_equal(&address, &node->address))
                return;
        node->address = address;
        DL_FOREACH2(node->executors, e, node_next)
        job_peers_drop(e->job);
        record_node(m, node);
        log_full(LOG_INFO, 0, &(struct log_fields){ .node = node->name },
                 "Node %s, on this host, meets the others at %s", node->name, addr_format(&address, text));
        if (placement_node_changed(m, node) < 0)
                log_oom();
        api_node_changed(m, node);
        epochs_registered(m, node);
}

void ownhost_registered(struct manager *m, struct node *node) {
        struct node *other, *next;
        struct addr local = {};

        if (!node->link)
                return;
        peer_local_address(node->link->peer, &local);
        local.port = 0;
        if (local.family == AF_UNSPEC || addr_is_loopback(&local) ||
            addr_is_loopback(&node->inventory.address) || addr_equal(&local, &m->reached) || !is_ours(&local))
                return;
        m->reached = local;
        HASH_ITER (hh, m->nodes.by_name, other, next)
                if (addr_is_loopback(&other->inventory.address))
                        move(m, other);
}
